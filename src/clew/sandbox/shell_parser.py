"""
Reading of shell commands: a list of plain commands, or the reason why it is none.

Everything that is not known to be plain is a problem. Two readers must agree on the words:
tree-sitter's grammar of bash, and the standard library's lexer.
"""

from __future__ import annotations

import functools
import re
import shlex
from typing import TYPE_CHECKING, Final

from clew.core.command_shape import ParsedCommand, SimpleCommand
from clew.core.command_wrappers import UnknownOption, unwrap

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

#: Longer commands are not read.
MAX_LENGTH: Final = 20_000
#: Words with which bash begins something else than a command.
_RESERVED: Final = frozenset(
    (
        "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi",
        "for", "function", "if", "in", "select", "then", "until", "while",
    )
)  # fmt: skip
_SEPARATORS: Final = frozenset({";", "\n", "&&", "||", "|"})
_REDIRECTIONS: Final = frozenset({">", ">>", "<"})
_LITERAL: Final = re.compile(r"(?:[A-Za-z0-9_./:=@%+,^#!\x80-\U0010ffff-]|\\[^\n])+")
_QUOTED: Final = re.compile(r"(?:[^$`\\]|\\.)*", re.DOTALL)


class _NotPlain(Exception):
    """Part of a command of which it is not known what it runs."""


def parse_command(text: str) -> ParsedCommand:
    """Return the shape of a shell command; never fails."""
    try:
        return _read_command(text)
    except (_NotPlain, UnknownOption) as error:
        return ParsedCommand(problem=str(error))
    except RecursionError:
        return ParsedCommand(problem="it is nested too deeply")
    except ImportError as error:
        return ParsedCommand(problem=f"nothing can read it here ({error})")


def _read_command(text: str) -> ParsedCommand:
    _check_characters(text)
    tree = _get_parser().parse(text.encode())
    if tree.root_node.has_error:
        raise _NotPlain("it cannot be parsed")
    reader = _TreeReader()
    reader.read_list(tree.root_node)
    if not reader.commands:
        raise _NotPlain("it has no command")
    if reader.tokens != _split_again(text):
        raise _NotPlain("it can be read in two ways")
    return ParsedCommand(
        commands=tuple(unwrap(SimpleCommand(words=words)) for words in reader.commands),
        redirects=tuple(reader.redirects),
    )


def _check_characters(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise _NotPlain("it is too long to be read")
    for character in text:
        known = " " <= character <= "~" or character in "\n\t" or character.isalnum()
        if not known:
            raise _NotPlain(f"it has the character U+{ord(character):04X}")


@functools.cache
def _get_parser() -> Parser:
    # 50 ms and some memory: loaded only where a command is judged.
    import tree_sitter  # noqa: PLC0415
    import tree_sitter_bash  # noqa: PLC0415

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class _TreeReader:
    """Reader of a syntax tree that accepts only what is plain."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, ...]] = []
        self.redirects: list[str] = []
        #: Words and operators in their order, without ends of lines.
        self.tokens: list[str] = []

    def read_list(self, node: Node) -> None:
        for child in node.children:
            match child.type:
                case "list" | "pipeline":
                    self.read_list(child)
                case "command":
                    self._read_simple(child)
                case "redirected_statement":
                    self._read_redirected(child)
                case kind if kind in _SEPARATORS and not child.is_named:
                    if kind != "\n":
                        self.tokens.append(kind)
                case kind:
                    raise _NotPlain(f"it has more than plain commands ({_describe(kind, child)})")

    def _read_simple(self, node: Node) -> None:
        words: list[str] = []
        for child in node.children:
            if child.type == "command_name":
                [child] = child.children
            words.append(_read_word(child))
        if not words or not words[0]:
            raise _NotPlain("it has an empty command")
        if words[0] in _RESERVED or "=" in words[0]:
            raise _NotPlain(f"it has more than plain commands ({words[0]})")
        self.tokens += words
        self.commands.append(tuple(words))

    def _read_redirected(self, node: Node) -> None:
        body, *rest = node.children
        match body.type:
            case "command":
                self._read_simple(body)
            case "list" | "pipeline":
                self.read_list(body)
            case kind:
                raise _NotPlain(f"it has more than plain commands ({kind})")
        for child in rest:
            if child.type != "file_redirect":
                raise _NotPlain(f"it has more than plain commands ({child.type})")
            self._read_redirect(child)

    def _read_redirect(self, node: Node) -> None:
        parts = [_get_text(child) for child in node.children]
        *descriptor, operator, target = parts if len(parts) > 1 else ["", "", ""]
        if len(descriptor) > 1 or not all(one in ("0", "1", "2") for one in descriptor):
            raise _NotPlain("it has a redirection that is not plain")
        if operator in (">&", "<&"):
            if target not in ("1", "2"):
                raise _NotPlain("it has a redirection that is not plain")
        elif operator in _REDIRECTIONS:
            target = _read_word(node.children[-1])
            if target != "/dev/null":
                self.redirects.append(target)
        else:
            raise _NotPlain("it has a redirection that is not plain")
        self.tokens += [*descriptor, operator, target]


def _describe(kind: str, node: Node) -> str:
    return kind if node.is_named else f"`{kind}`"


def _read_word(node: Node) -> str:
    """Return the literal text of a word."""
    text = _get_text(node)
    match node.type:
        case "word" | "number" if _LITERAL.fullmatch(text) and text[0] not in "#!":
            return re.sub(r"\\(.)", r"\1", text)
        case "raw_string":
            return text[1:-1]
        case "string" if _QUOTED.fullmatch(text[1:-1]):
            return re.sub(r'\\([$`"\\])', r"\1", text[1:-1].replace("\\\n", ""))
        case "concatenation":
            if "".join(map(_get_text, node.children)) == text:
                return "".join(map(_read_word, node.children))
        case _:
            pass
    raise _NotPlain(f"it has an expansion ({text[:40]})")


def _get_text(node: Node) -> str:
    assert node.text is not None
    return node.text.decode()


def _split_again(text: str) -> list[str]:
    """Return the words and operators as another lexer sees them."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.commenters, lexer.whitespace_split = "", True
    try:
        return list(lexer)
    except ValueError:
        raise _NotPlain("it cannot be parsed") from None
