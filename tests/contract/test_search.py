"""Search: what was said is found, newest first, by those who may see it, whatever the query."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.core.entry import EntryKind, Role
from clew.core.scope import LOCAL, Scope
from clew.core.search import fold_text, split_units
from clew.errors import SearchNotReady, UsageError
from clew.store.maintenance import erase_conversation, update_index
from clew.store.opening import open_store
from clew.store.search import MAX_EXAMINED, MAX_UNINDEXED, index_batch, mark_damaged, start_rebuild
from clew.store.sqlite.search import SqliteSearchIndex
from clew.store.transactions.deletion import mark_deleted
from tests.contract.search_log import Log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from clew.store.contract import Store, Tx

ANN, BOB = Scope("person:telegram:dm:ann"), Scope("person:telegram:dm:bob")


TEXTS = st.text(
    st.one_of(
        st.sampled_from("aZ09_ \n.\"'+#修改服务ヴァ가각हिन्दीйßİﬁΣς👍🏽👩\u200d💻🇩🇪“”"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\x00"),
    ),
    min_size=1,
    max_size=40,
)


@st.composite
def texts_with_a_part(draw: st.DrawFn) -> tuple[str, str]:
    """A text, and what stands in it between two borders of its units."""
    text = draw(TEXTS)
    whole = split_units(fold_text(text))
    start = draw(st.integers(0, len(whole)))
    return text, "".join(whole[start : draw(st.integers(start, len(whole)))])


@pytest.fixture
async def store(store_url: str, tmp_path: Path) -> AsyncIterator[Store]:
    async with await open_store(store_url, home=tmp_path) as opened:
        yield opened


@pytest.fixture(params=["in the index", "not in the index"])
def indexed(request: pytest.FixtureRequest) -> bool:
    return request.param == "in the index"


async def settle(store: Store, *, indexed: bool) -> None:
    if indexed:
        await update_index(store)


async def count(store: Store) -> int:
    """Return the number of rows in the index."""

    def job(t: Tx) -> int:
        index, every = t.search_index, "\ue000\ue000"
        if isinstance(index, SqliteSearchIndex):  # this one cannot be walked through
            row = t.fetch_one(
                "SELECT count(*) FROM search_index WHERE search_index MATCH $1", every
            )
        else:
            row = t.fetch_one("SELECT count(*) FROM search_index")
        return 0 if row is None else int(row[0])

    return await store.read(job)


async def test_a_word_glued_to_another_script_is_found(store: Store, indexed: bool) -> None:
    log = await Log.open(store)
    await log.say("修改youer服务端", "nothing here")
    await settle(store, indexed=indexed)
    for query in ("youer", "YOUER", "修改", "服", "服务端", "修改youer", "改youer服"):
        assert await log.find(query) == [1], query
    assert await log.find("you") == []


async def test_punctuation_in_a_query_means_itself(store: Store, indexed: bool) -> None:
    log = await Log.open(store)
    symbols = string.punctuation
    await log.say("foo bar", *(f"see foo{symbol}bar" for symbol in symbols))
    await settle(store, indexed=indexed)
    for seq, symbol in enumerate(symbols, start=2):
        assert await log.find(f"foo{symbol}bar") == [seq], symbol
        assert await log.find(symbol) == [seq], symbol
    assert await log.find("foo bar") == [*range(len(symbols) + 1, 0, -1)]


@pytest.mark.parametrize(
    "query",
    [
        '"unbalanced',
        'unbalanced"',
        'NEAR("unbalanced")',
        "unbalanced AND",
        "OR unbalanced NOT (",
        "near",
        "* ^ unbalanced : - +",
        '""" unbalanced',
        "' unbalanced --",
        "%_\\ unbalanced",
    ],
)
async def test_operators_of_other_languages_are_only_words(store: Store, query: str) -> None:
    log = await Log.open(store)
    text = 'unbalanced AND or NOT near ( * ^ : - + \' -- """ %_\\ NEAR("unbalanced")'
    await log.say(text, "something else")
    assert await log.find(query) == [1]
    await update_index(store)
    assert await log.find(query) == [1]


@pytest.mark.parametrize("query", ["", "  ", "\n\u200b"])
async def test_a_query_without_anything_to_look_for_says_so(store: Store, query: str) -> None:
    log = await Log.open(store)
    with pytest.raises(UsageError, match="nothing to search for"):
        await log.find(query)


async def test_a_query_of_ten_kilobytes_is_answered(store: Store, indexed: bool) -> None:
    log = await Log.open(store)
    text = " ".join(f"word{n}" for n in range(1500))
    await log.say(text, text.replace("word700 ", ""))
    await settle(store, indexed=indexed)
    assert await log.find(text) == [1]
    assert await log.find("🎉" * 3000) == []
    assert await log.find("x" * 10_000) == []


@given(st.lists(texts_with_a_part(), min_size=1, max_size=4))
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_whatever_stands_in_a_message_finds_it(
    store: Store, indexed: bool, said: list[tuple[str, str]]
) -> None:
    log = await Log.open(store)
    await log.say(*(text for text, _ in said))
    await settle(store, indexed=indexed)
    for seq, (_, part) in enumerate(said, start=1):
        if part.strip():
            assert seq in await log.find(part)


async def test_search_finds_no_message_of_another_scope(store: Store, indexed: bool) -> None:
    ann, bob = await Log.open(store, ANN), await Log.open(store, BOB)
    await ann.say("a secret of ann")
    await bob.say("nothing", "a secret of bob")
    await settle(store, indexed=indexed)
    assert await ann.find("secret") == [1]
    assert await bob.find("secret") == [2]
    assert await ann.find("bob") == []
    assert await ann.find("secret", LOCAL) == [2, 1]
    assert await ann.find("secret", Scope("person:telegram:dm:eve")) == []


async def test_a_hit_names_conversation_and_seq_and_shows_the_place(store: Store) -> None:
    log = await Log.open(store)
    await log.say("first")
    await log.say("x " * 200 + "the needle is here" + " y" * 200, role=Role.ASSISTANT)
    (hit,) = (await log.page("needle")).items
    assert (hit.conversation_id, hit.seq, hit.role) == (log.id, 2, Role.ASSISTANT)
    assert "the needle is here" in hit.snippet
    assert len(hit.snippet) < 200


async def test_only_messages_are_found(store: Store, indexed: bool) -> None:
    log = await Log.open(store)
    await log.say("a word", kind=EntryKind.EVENT)
    await log.say("a word", kind=EntryKind.ATTEMPT)
    await log.say("a word", role=Role.TOOL)
    await settle(store, indexed=indexed)
    assert await log.find("word") == [3]


async def test_pages_are_newest_first_without_gap_or_repeat_while_more_is_said(
    store: Store,
) -> None:
    one, two = await Log.open(store), await Log.open(store)
    said: list[tuple[str, int]] = []
    for n in range(1, 26):
        for log in (one, two):
            await log.say(f"word {n}")
            said.append((log.id, n))
        if n == 15:
            await update_index(store)
    found: list[tuple[str, int]] = []
    cursor = None
    while len(found) < len(said):
        page = await one.page("word", limit=7, cursor=cursor)
        found += [(hit.conversation_id, hit.seq) for hit in page.items]
        cursor = page.next
        await one.say("word, said meanwhile")
        await store.write(index_batch, limit=3)
    assert found == said[::-1]
    assert cursor is None


@pytest.mark.parametrize("cursor", ["", "-1", "x", "1 OR 1", "9" * 30, "٣"])
async def test_a_cursor_that_is_not_ours_is_refused(store: Store, cursor: str) -> None:
    log = await Log.open(store)
    with pytest.raises(UsageError, match="cursor"):
        await log.page("word", cursor=cursor)


async def test_a_new_message_is_found_at_once(store: Store) -> None:
    log = await Log.open(store)
    await log.say("old word")
    await update_index(store)
    await log.say("new word")
    assert await log.find("word") == [2, 1]


async def test_indexing_in_small_slices_misses_nothing(store: Store) -> None:
    log = await Log.open(store)
    await log.say(*(f"word w{n}" for n in range(20)), "x" * 150_000, "long " * 50_000, "word end")
    while await store.write(index_batch, limit=3):
        assert len(await log.find("word")) == 21
    assert await count(store) == 23
    assert await log.find("long word") == []
    assert await log.find("end") == [23]


async def test_a_deleted_conversation_leaves_nothing_in_the_index(
    store: Store, indexed: bool
) -> None:
    kept, gone = await Log.open(store), await Log.open(store)
    await kept.say("a kept word")
    await settle(store, indexed=indexed)
    await gone.say(*(f"a lost word {n}" for n in range(60)))
    await settle(store, indexed=indexed)
    await gone.say("the newest word")
    await store.write(mark_deleted, gone.id)
    assert len(await kept.find("word")) == 1
    await erase_conversation(store, gone.id)
    assert len(await kept.find("word")) == 1
    await kept.say("another word")
    await update_index(store)
    assert len(await kept.find("word")) == 2
    assert await count(store) == 2


async def test_a_rare_phrase_of_common_words_takes_more_pages_but_is_found(store: Store) -> None:
    log = await Log.open(store)
    await log.say("left right")
    await log.say(*["right and left"] * (MAX_EXAMINED + 10))
    await update_index(store)
    first = await log.page('"left right"')
    assert first.items == ()
    assert first.next is not None
    assert await log.find('"left right"') == [1]


async def test_far_behind_the_index_says_so_until_it_has_caught_up(store: Store) -> None:
    log = await Log.open(store)
    for _ in range(10):
        await log.say(*["word"] * (MAX_UNINDEXED // 10))
    with pytest.raises(SearchNotReady, match="being built"):
        await log.page("word")
    await store.write(index_batch)
    assert len((await log.page("word")).items) == 20


async def test_catching_up_stops_after_so_many_slices(store: Store) -> None:
    log = await Log.open(store)
    await log.say(*["word"] * 600)
    await update_index(store, slices=1)
    assert await count(store) == 500
    await update_index(store, slices=5)
    assert await count(store) == 600


async def test_a_rebuilt_index_has_everything_once(store: Store) -> None:
    log = await Log.open(store)
    await log.say(*["word"] * 10)
    await update_index(store)
    await log.say("word")
    await store.write(mark_damaged)
    for job in (log.find("word"), store.write(index_batch)):
        with pytest.raises(SearchNotReady, match="rebuilt"):
            await job
    await store.write(start_rebuild)
    await log.say("word")
    await store.write(index_batch, limit=4)
    assert await log.find("word") == [*range(12, 0, -1)]
    await update_index(store)
    assert await log.find("word") == [*range(12, 0, -1)]
    assert await count(store) == 12


@pytest.mark.parametrize("query", ["iPhone", "15手机", "iphone15", "手机", "15"])
async def test_a_change_of_script_is_a_border_of_words(
    store: Store, indexed: bool, query: str
) -> None:
    log = await Log.open(store)
    await log.say("the new iPhone15手机 is here", "an iPod")
    if indexed:
        await update_index(store)
    assert await log.find(query) == [1]


async def test_an_index_of_an_older_version_is_rebuilt(store_url: str, tmp_path: Path) -> None:
    def forget(t: Tx) -> None:
        t.execute("DELETE FROM migration WHERE number = 4")

    async with await open_store(store_url, home=tmp_path) as store:
        log = await Log.open(store)
        await log.say("the new iPhone15手机 is here")
        await update_index(store)
        await store.write(forget)
    async with await open_store(store_url, home=tmp_path) as store:
        log.store = store
        with pytest.raises(SearchNotReady):
            await log.find("iPhone")
        await update_index(store)
        assert await log.find("iPhone") == [1]


async def test_a_check_of_the_index_sees_what_others_have_changed_meanwhile(
    store: Store, store_url: str, tmp_path: Path
) -> None:
    log = await Log.open(store)
    async with await open_store(store_url, home=tmp_path) as other:
        for n in range(24):
            await log.say(f"word {n} and more")
            await update_index(store)
            assert await other.read(lambda t: t.search_index.find_faults()) == []
