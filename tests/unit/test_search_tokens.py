"""Comparison in search: folding, units, tokens, queries and snippets."""

# ruff: noqa: RUF001  (confusable characters are what it is about)

from __future__ import annotations

import string
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.core.search import (
    MAX_QUERY_TOKENS,
    MAX_TOKEN_LENGTH,
    fold_text,
    parse_query,
    split_units,
    tokenize_text,
)
from clew.core.text import sanitize_text
from clew.errors import UsageError

#: Letters, marks, symbols and white space of many scripts, more often side by side than by chance.
TEXTS = st.text(
    st.one_of(
        st.sampled_from("aZ09_ \n.\"'+#修改服务ヴァ가각กิ่हिन्दीйßéİﬁΣς２Ａ👍🏽👩‍💻️🇩🇪\u00ad\u200b“”’"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
)


def found(query: str, text: str) -> bool:
    return parse_query(query).matches_text(text)


@given(TEXTS)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold_text(fold_text(text)) == fold_text(text)


@given(TEXTS)
def test_units_are_the_whole_text_but_for_the_kind_of_white_space(text: str) -> None:
    whole = "".join(split_units(fold_text(text)))
    assert whole.replace(" ", "") == "".join(c for c in fold_text(text) if not _is_space(c))


def _is_space(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Zs", "Zl", "Zp")


@given(TEXTS, st.data())
def test_whatever_stands_between_two_borders_of_a_text_finds_it(
    text: str, data: st.DataObject
) -> None:
    whole = split_units(fold_text(text))
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    part = "".join(whole[start:end])
    if part.strip():
        assert found(part, text)
        assert found(f'"{part}"', text) or '"' in part


@example("»\r0\x7f0", "")  # a control character beyond ASCII's first
@given(TEXTS, TEXTS)
def test_the_index_proposes_every_text_that_is_found(query: str, text: str) -> None:
    try:
        wanted = parse_query(query)
    except UsageError:
        return
    whole = sanitize_text(f"{text} {query}")
    assert wanted.matches_text(whole) or '"' in fold_text(query)
    if wanted.matches_text(whole):
        assert set(wanted.index_tokens()) <= tokenize_text(whole)


@given(TEXTS)
def test_a_query_is_refused_only_if_nothing_can_be_seen_in_it(query: str) -> None:
    try:
        parse_query(query)
    except UsageError:
        assert not "".join(c for c in fold_text(query) if not _is_space(c))


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u200b\u00ad", "\x08", "\ufeff"])
def test_a_query_with_nothing_in_it_is_refused_with_a_reason(query: str) -> None:
    with pytest.raises(UsageError, match="nothing to search for"):
        parse_query(query)


@pytest.mark.parametrize("symbol", string.punctuation)
def test_punctuation_between_words_means_itself(symbol: str) -> None:
    query = f"foo{symbol}bar"
    assert found(query, f"see foo{symbol}bar there")
    assert found(query, f"FOO{symbol}BAR")
    assert not found(query, "foo bar")
    assert not found(query, f"foo {symbol} bar")
    assert not found(query, f"xfoo{symbol}bar")


@pytest.mark.parametrize("symbol", string.punctuation)
def test_punctuation_alone_finds_itself(symbol: str) -> None:
    assert found(symbol, f"a {symbol} b")
    assert found(symbol, f"a{symbol}b")
    assert not found(symbol, "a b")
    assert found(symbol * 2, f"a{symbol * 2}b")
    assert not found(symbol * 2, f"a{symbol} {symbol}b")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("youer", "修改youer服务端"),
        ("iPhone", "iPhone15手机"),
        ("15手机", "iPhone15手机"),
        ("iphone15", "iPhone15手机"),
        ("15", "iPhone15手机"),
        ("手机", "iPhone15手机"),
        ("iPhone15手机", "die iPhone15手机!"),
        ("mp", "an MP3 file"),
        ("mp3", "an MP3 file"),
        ("3d", "a 3D-printer"),
        ("купить", "iPhoneкупить"),
        ("iPhone", "iPhoneкупить"),
        ("第3章", "见第3章节"),
        ("章", "第3章"),
        ("x" * MAX_TOKEN_LENGTH + "7", "x" * MAX_TOKEN_LENGTH + "7"),
        ("修改", "修改youer服务端"),
        ("服", "修改youer服务端"),
        ("修改youer", "修改youer服务端"),
        ("c++", "I like C++, really"),
        ("c#", "not c but C#"),
        ("foo.bar", "call foo.bar(x)"),
        ("session_id", "the session_id column"),
        ("session", "the session_id column"),
        ("@", "mail me @ home"),
        ("@bob", "ask @Bob about it"),
        ("don't", "I don’t know"),
        ("don’t", "I don't know"),
        ('"hello world"', "say hello\n  world!"),
        ("“hello world”", "say Hello World"),
        ("hello, world!", "world says hello"),
        ("(see", "as you see"),
        ("ＡＢＣ１", "abc1"),
        ("strasse", "die STRAßE"),
        ("ﬁn", "FIN"),
        ("σας", "ΣΑΣ"),
        ("हिन्दी", "यह हिन्दी है"),
        ("ไทย", "ภาษาไทยง่าย"),
        ("ｶﾞ", "ガラス"),
        ("👩", "👩‍👩‍👧 family"),
        ("👍", "great 👍🏽"),
        ("❤", "I ❤️ it"),
        ("می‌خواهم", "میخواهم"),
        ("NEAR", "far and near"),
        ("AND OR NOT", "and or not"),
        ("a\ud800", "a\N{REPLACEMENT CHARACTER}"),
        ('say "foo', "foo, say"),
        ('foo"bar', 'x foo"bar'),
        ("x" * (MAX_TOKEN_LENGTH + 10), "x" * (MAX_TOKEN_LENGTH + 10)),
    ],
)
def test_typed_queries_find_the_intended_messages(query: str, text: str) -> None:
    assert found(query, text)
    assert set(parse_query(query).index_tokens()) <= tokenize_text(text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("you", "修改youer服务端"),
        ("改服", "修改youer服务端"),
        ("iphone1", "iPhone15手机"),
        ("phone15", "iPhone15手机"),
        ("iphone 15手机", "iPhone 14手机"),
        ("word7", "word77"),
        ("5手机", "iPhone15手机"),
        ('"hello world"', "hello big world"),
        ('"world hello"', "hello world"),
        ("hello world", "hello"),
        ("foo.bar", "foo bar"),
        ("c++", "c + +"),
        ("x" * MAX_TOKEN_LENGTH, "x" * (MAX_TOKEN_LENGTH + 1)),
    ],
)
def test_absent_text_is_not_found(query: str, text: str) -> None:
    assert not found(query, text)


def test_a_long_query_asks_the_index_for_few_tokens_but_compares_all() -> None:
    words = " ".join(f"word{n}" for n in range(1500))
    assert len(words) > 10_000
    assert len(parse_query(words).index_tokens()) == MAX_QUERY_TOKENS
    assert found(words, words)
    assert not found(words, words.replace("word700 ", ""))


def test_a_snippet_shows_the_place_in_the_words_of_the_text() -> None:
    text = "x " * 300 + "The  Ｑuick\nbrown fox" + " y" * 300
    line = parse_query("quick").make_snippet(text)
    assert "The Ｑuick brown fox" in line
    assert line.startswith("…")
    assert line.endswith("…")
    assert len(line) <= 162


def test_a_snippet_of_a_short_text_is_the_text() -> None:
    assert parse_query("fox").make_snippet("A  fox.") == "A fox."


@pytest.mark.parametrize(
    "before", ["ﬁﬃ" * 200, "İ" * 300, "e\u0301" * 300, "\u200b" * 300, "㍿" * 300]
)
def test_a_snippet_shows_the_place_where_folding_changes_the_length(before: str) -> None:
    assert "needle" in parse_query("needle").make_snippet(before + " needle " + "z" * 300)


@given(TEXTS, st.integers(10, 200))
def test_a_snippet_is_one_short_line(text: str, width: int) -> None:
    line = parse_query("a").make_snippet(text, width)
    assert len(line) <= width + 2
    assert "\n" not in line
