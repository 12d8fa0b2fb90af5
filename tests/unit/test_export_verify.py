"""An export says by itself what was changed, lost or moved in it."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.export_format.id_remap import compute_entry_hash
from clew.core.export_format.schema import decode_line, encode_line
from clew.core.export_format.sealed_lines import VERSION, LineSealer
from tests.exported import conversation, found, made, said_in, sealed, verified

if TYPE_CHECKING:
    from typing import Any

EXPORT = made(6, 5, 0, tombstones=1)
LINES = io.BytesIO(EXPORT).readlines()


def place(line: int) -> tuple[int, str | None, int | None]:
    """Return the place that a finding about this line must name."""
    said = json.loads(LINES[line - 1])
    seq = said["seq"] if said["type"] == "entry" else None
    return line, said.get("conversation"), seq


ENTRIES = [at for at, line in enumerate(LINES, 1) if json.loads(line)["type"] == "entry"]
OTHERS = [at for at in range(1, len(LINES) + 1) if at not in ENTRIES]


def test_an_export_as_it_was_written_is_clean() -> None:
    verifier = verified(EXPORT)
    assert verifier.findings == []
    assert [(one.conversation, one.entries) for one in verifier.conversations] == [
        ("cnv_0000", 6), ("cnv_0001", 5), ("cnv_0002", 0),
    ]  # fmt: skip
    assert [grave["conversation"] for grave in verifier.tombstones] == ["cnv_gone0"]
    for outline in verifier.conversations:
        assert EXPORT[outline.offset :].startswith(b'{"n":')
        assert json.loads(EXPORT[outline.offset :].splitlines()[0])["id"] == outline.conversation


@settings(max_examples=300)
@given(at=st.integers(0, len(EXPORT) - 1), bit=st.integers(0, 7))
def test_any_bit_that_is_flipped_is_found_and_its_line_named(at: int, bit: int) -> None:
    changed = bytearray(EXPORT)
    changed[at] ^= 1 << bit
    line = EXPORT.count(b"\n", 0, at) + 1
    first = found(bytes(changed))[0]
    assert first[0] == line
    if line in ENTRIES:
        assert first == place(line)


def test_each_entry_that_is_removed_is_found_and_named() -> None:
    for line in ENTRIES:
        assert found(b"".join(LINES[: line - 1] + LINES[line:])) == [place(line)]


def test_each_other_line_that_is_removed_is_found() -> None:
    for line in OTHERS[:-1]:
        findings = found(b"".join(LINES[: line - 1] + LINES[line:]))
        assert [one[0] for one in findings] == [line]


@pytest.mark.parametrize("left", [1, 5, len(LINES) - 1])
def test_an_export_that_was_cut_off_is_found(left: int) -> None:
    (finding,) = verified(b"".join(LINES[:left])).findings
    assert (finding.line, finding.detail) == (left, "the export was cut off after this line")
    broken = verified(b"".join(LINES[:left]) + LINES[left][:-20]).findings
    assert broken[-1].line == left + 1


@settings(max_examples=150)
@given(st.data())
def test_any_two_lines_that_change_places_are_found_and_one_is_named(data: st.DataObject) -> None:
    one = data.draw(st.integers(0, len(LINES) - 2))
    other = data.draw(st.integers(one + 1, len(LINES) - 1))
    lines = list(LINES)
    lines[one], lines[other] = lines[other], lines[one]
    findings = verified(b"".join(lines)).findings
    moved = [f for f in findings if "moved here" in f.detail]
    assert 1 <= len(moved) <= 2
    assert {f.line for f in moved} <= {one + 1, other + 1}
    assert [f for f in findings if "moved" not in f.detail] == []


def test_two_entries_that_change_places_are_named() -> None:
    for one, other in pairwise(ENTRIES):
        lines = list(LINES)
        lines[one - 1], lines[other - 1] = lines[other - 1], lines[one - 1]
        findings = verified(b"".join(lines)).findings
        assert all("it was moved here" in f.detail for f in findings)
        named = {(f.conversation, f.seq) for f in findings}
        assert named & {place(one)[1:], place(other)[1:]}


def test_a_line_that_stands_twice_is_found() -> None:
    for line in range(1, len(LINES) + 1):
        findings = found(b"".join([*LINES[:line], LINES[line - 1], *LINES[line:]]))
        assert len(findings) == 1
        assert findings[0][0] in (line, line + 1)


def resealed(*, rehashed: bool = False, **changes: object) -> bytes:
    """An export in which entry 3 of the first conversation was changed, and all sums made anew."""
    said = said_in(EXPORT)
    at = next(at for at, (kind, line) in enumerate(said) if kind == "entry" and line["seq"] == 3)
    line = {**said[at][1], **changes}
    if rehashed:
        record = decode_line("entry", line)
        line = encode_line("entry", record | {"hash": compute_entry_hash(record)})
    said[at] = ("entry", line)
    return b"".join(sealed(said))


def test_recomputed_checksums_do_not_fix_the_hash() -> None:
    forged = resealed(text="never said")
    ((line, *named),) = found(forged)
    assert named == ["cnv_0000", 3]
    assert json.loads(forged.splitlines()[line - 1])["text"] == "never said"


def test_a_recomputed_hash_breaks_the_chain() -> None:
    ((_, *named),) = found(resealed(text="never said", rehashed=True))
    assert named == ["cnv_0000", 4]


def test_a_redaction_breaks_no_chain_and_is_recorded() -> None:
    verifier = verified(resealed(text="********", withheld=True))
    assert verifier.findings == []
    assert [one.withheld for one in verifier.conversations] == [True, False, False]


def test_an_export_whose_lines_come_from_two_is_found() -> None:
    other = io.BytesIO(made(6, 5, 1, tombstones=1)).readlines()
    assert found(b"".join([*LINES[:-4], *other[-8:]])) != []
    said = said_in(EXPORT)
    assert found(b"".join(sealed([said[0], *said[2:]]))) != []  # a session less, all sums anew


@pytest.mark.parametrize(
    ("kind", "changed", "told"),
    [
        ("conversation", {"entries": 7}, "states other entries"),
        ("conversation", {"created_at": "yesterday"}, "'created_at' is not a time"),
        ("session", {"opened_seq": 1}, "did not open after entry 0"),
        ("session", {"base": [{"first": 1, "last": 9}]}, "names entries after it"),
        ("session", {"base": 7}, "'base' is not a list"),
        ("session", {"base": ["x"]}, "'base' is not a list"),
        ("session", {"predecessor": "other"}, "does not follow the one before it"),
        ("turn", {"first_seq": 2}, "does not come before its first entry"),
        ("turn", {"outcome": "won"}, "'outcome' is not"),
        ("input", {"turn": "other"}, "led to a turn that is not in the export"),
        ("input", {"text": "a\0b"}, "'text' is not text"),
        ("entry", {"seq": 2}, "it is missing before this line"),
        ("entry", {"prev_hash": "00"}, "'prev_hash' is not a sha256"),
        ("end", {"turns": 9}, "states other turns"),
        ("unheard", {}, "no line has the type"),
        ("header", {}, "the first line of an export is its header"),
    ],
)
def test_an_inconsistent_line_with_correct_checksums_is_found(
    kind: str, changed: dict[str, Any], told: str
) -> None:
    said = said_in(EXPORT)
    at = next((at for at, (each, _) in enumerate(said) if each == kind), 3)
    said[at] = (kind, {**said[at][1], **changed})
    assert any(told in str(one) for one in verified(b"".join(sealed(said))).findings)


def test_a_session_that_did_not_end_has_no_successor() -> None:
    said = said_in(EXPORT)
    said[1] = (said[1][0], {**said[1][1], "ended_at": None})
    assert "did not end" in str(verified(b"".join(sealed(said))).findings[0])


def test_a_newer_format_is_distinguished_from_damage() -> None:
    newer = EXPORT.replace(b'"version":%d' % VERSION, b'"version":%d' % (VERSION + 1))
    lines = [json.loads(line) for line in newer.splitlines()]
    said = {key: lines[0][key] for key in ("format", "version")}
    first = LineSealer().seal_line("header", said)
    assert "made by a newer Clew" in str(verified(first + b"".join(LINES[1:])).findings[0])


@pytest.mark.parametrize("text", [b"", b"hello\n", b'{"role":"user"}\n' * 3, bytes(1000)])
def test_another_file_is_reported_in_one_sentence(text: bytes) -> None:
    (finding,) = verified(text).findings
    assert finding.detail == "the file is not an export of Clew"


def test_a_conversation_without_entries_has_a_session() -> None:
    assert [kind for kind, _ in conversation(0, 0)] == ["conversation", "session", "session", "end"]
