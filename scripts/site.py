"""
Write what the site is built from: the pages of ``docs``, with a navigation.

``python -m scripts.site FOLDER``.

A link of a page to a file of the source leads to a copy of that file in the site.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
_LINK: Final = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#\s])")
_CODE: Final = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
#: The how-to pages by what people are at; each page has a place.
HOW_TO: Final = {
    "Begin": (
        "install set-up terminal use-the-dashboard give-it-tools approvals run-commands "
        "search-the-web send-files voice"
    ),
    "Chat platforms": (
        "connect-telegram connect-discord connect-slack connect-mattermost "
        "connect-whatsapp connect-signal connect-mail connect-a-webhook "
        "several-agents"
    ),
    "Let it work": "schedule-work delegate-work pursue-a-goal remember skills use-mcp-servers",
    "Other programs": (
        "openai-clients clients openai-responses use-ag-ui use-an-editor use-clew-over-mcp "
        "write-a-client"
    ),
    "Operate": (
        "run-around-the-clock troubleshooting check-and-repair back-up-and-restore upgrade "
        "export-import replay move-to-postgresql scale-out trace-turns"
    ),
    "Move in": (
        "move-in move-from-hermes move-from-openclaw move-from-nanobot move-from-claude-code "
        "move-from-codex move-from-opencode move-from-open-webui move-from-chatgpt"
    ),
    "Extend": (
        "use-your-own-agent write-a-tool write-a-plugin run-hermes-plugins use-clew-as-a-library"
    ),
}
EXPLANATION: Final = (
    "message-to-turn security-model sandbox costs-and-limits compare performance scaling glossary "
    "architecture find-your-way"
)


def list_navigation() -> list[dict[str, Any]]:
    """
    Return the navigation: tutorial first, then how-to, explanation, reference, evidence, decisions.

    :raises SystemExit: if a page has no place
    """
    how_to = [{group: _pages("how-to", names)} for group, names in HOW_TO.items()]
    reference = sorted(DOCS.glob("reference/*.md"), key=_read_title)
    evidence = sorted(DOCS.glob("evidence/[!R]*.md"), key=_read_title)
    navigation: list[dict[str, Any]] = [
        {"Home": "index.md"},
        {"Tutorial": [_page(DOCS / "tutorial" / "first-conversation.md")]},
        {"How-to": how_to},
        {"Explanation": _pages("explanation", EXPLANATION)},
        {"Reference": [_page(file) for file in reference]},
        {"Evidence": ["evidence/index.md", *(_page(file) for file in evidence)]},
        {"Decisions": ["decisions/index.md", *map(_page, sorted(DOCS.glob("decisions/0*.md")))]},
        {"Changes": "changelog.md"},
    ]
    _reject_forgotten(json.dumps(navigation))
    return navigation


def _pages(folder: str, names: str) -> list[dict[str, str]]:
    return [_page(DOCS / folder / f"{name}.md") for name in names.split()]


def _page(file: Path) -> dict[str, str]:
    title = _read_title(file).replace("`", "").removeprefix("make soak ")
    return {title: file.relative_to(DOCS).as_posix()}


def _read_title(file: Path) -> str:
    match = _TITLE.search(file.read_text(encoding="utf-8"))
    if match is None:
        raise SystemExit(f"{file}: a page begins with its title")
    return match[1]


def _reject_forgotten(navigation: str) -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    there = {page for page in pages if page.endswith("README.md") or f'"{page}"' in navigation}
    if forgotten := pages - there:
        raise SystemExit(f"scripts/site.py: no place in the navigation: {sorted(forgotten)}")


def write_source(folder: Path) -> None:
    """Write pages, images, copies of linked files, and the configuration."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder / "docs")
    for page in (folder / "docs").rglob("*.md"):
        origin = DOCS / page.relative_to(folder / "docs")
        _write_page(page, origin.read_text(encoding="utf-8"), origin, folder / "docs")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    # As if it stood in docs.
    changes = re.sub(r"\]\((?!\w+:|docs/)", "](../", changes).replace("](docs/", "](")
    _write_page(folder / "docs" / "changelog.md", changes, DOCS / "changelog.md", folder / "docs")
    for readme in (folder / "docs").rglob("README.md"):
        readme.rename(readme.with_name("index.md"))
    config = {**CONFIG, "nav": list_navigation()}
    # JSON is YAML.
    (folder / "mkdocs.yml").write_text(json.dumps(config, indent=1), encoding="utf-8")


def _write_page(page: Path, text: str, origin: Path, docs: Path) -> None:
    """Write a page with links that lead somewhere in the site."""

    def lead(match: re.Match[str]) -> str:
        return _lead(match[1], origin, docs)

    parts = _CODE.split(text)
    # A link's text may be code, as [`a`](b): the address comes in the part after it.
    parts = [one if one.startswith("`") else _LINK.sub(lead, one) for one in parts]
    page.write_text("".join(parts), encoding="utf-8")


def _lead(target: str, origin: Path, docs: Path) -> str:
    if "://" in target or target.startswith("mailto:"):
        return target
    wanted = (origin.parent / target).resolve()
    up = "../" * (len(origin.relative_to(DOCS).parts) - 1)
    if wanted.is_relative_to(DOCS):
        return re.sub(r"README\.md$", "index.md", target)
    if wanted == ROOT / "CHANGELOG.md":
        return f"{up}changelog.md"
    # A server would offer a program to be saved: as text it is shown.
    inner = wanted.relative_to(ROOT).as_posix()
    copy = docs / "source" / f"{inner}.txt"
    copy.parent.mkdir(parents=True, exist_ok=True)
    if wanted.is_dir():
        names = sorted(one.name for one in wanted.iterdir() if not one.name.startswith("__"))
        copy.write_text("\n".join(names) + "\n", encoding="utf-8")
    else:
        shutil.copy(wanted, copy)
    return f"{up}source/{inner}.txt"


_SCHEMES: Final = (("default", "weather-night", "dark"), ("slate", "weather-sunny", "light"))
CONFIG: Final[dict[str, Any]] = {
    "site_name": "Clew",
    "site_description": (
        "A self-hosted gateway for an AI agent that cannot lose, double or scramble a conversation."
    ),
    "docs_dir": "docs",
    "site_dir": "built",
    "use_directory_urls": False,
    "theme": {
        "name": "material",
        "font": False,
        "features": [
            "content.code.copy", "navigation.footer", "navigation.indexes", "navigation.prune",
            "navigation.tabs", "navigation.top", "search.highlight", "toc.follow",
        ],
        "palette": [
            {
                "scheme": scheme,
                "media": f"(prefers-color-scheme: {'dark' if scheme == 'slate' else 'light'})",
                "primary": "black" if scheme == "slate" else "indigo",
                "toggle": {"icon": f"material/{icon}", "name": f"Switch to {other} colours"},
            }
            for scheme, icon, other in _SCHEMES
        ],
        "icon": {"logo": "material/link-variant"},
    },
    "plugins": ["search"],
    "markdown_extensions": [
        "admonition", "attr_list", "md_in_html", "tables", {"toc": {"permalink": True}},
        {"pymdownx.highlight": {"anchor_linenums": True}}, "pymdownx.superfences", "sane_lists",
    ],
}  # fmt: skip


if __name__ == "__main__":
    write_source(Path(sys.argv[1]))
