"""JSON-RPC without a connection: frames, calls and their answers, what was heard."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import NotFound, StoreUnavailable
from clew.wire import framing, methods
from clew.wire.caller import Answered, Caller, Failed, GapError, Happened, Heard
from clew.wire.errors import MEANINGS, Code, Error
from clew.wire.framing import Failure, FrameError, Request, Response
from clew.wire.notices import AnyNotice, EntryNotice, read_notice
from clew.wire.params import Named, OpenParams

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("frame", "code", "id_"),
    [
        ("", Code.PARSE, None),
        ("{", Code.PARSE, None),
        (b"\xff\xfe", Code.PARSE, None),
        ("[" * 100_000, Code.PARSE, None),
        ("NaN", Code.PARSE, None),
        ("1", Code.INVALID_REQUEST, None),
        ("[]", Code.INVALID_REQUEST, None),
        ('[{"jsonrpc": "2.0", "id": 1, "method": "x"}]', Code.INVALID_REQUEST, None),
        ('{"id": 1, "method": "x"}', Code.INVALID_REQUEST, 1),
        ('{"jsonrpc": "1.0", "id": "a", "method": "x"}', Code.INVALID_REQUEST, "a"),
        ('{"jsonrpc": "2.0", "id": 1}', Code.INVALID_REQUEST, 1),
        ('{"jsonrpc": "2.0", "id": 1, "method": 2}', Code.INVALID_REQUEST, 1),
        ('{"jsonrpc": "2.0", "id": null, "method": "x"}', Code.INVALID_REQUEST, None),
        ('{"jsonrpc": "2.0", "id": true, "method": "x"}', Code.INVALID_REQUEST, None),
        ('{"jsonrpc": "2.0", "id": 1.5, "method": "x"}', Code.INVALID_REQUEST, None),
        ('{"jsonrpc": "2.0", "id": 1, "method": "x", "params": []}', Code.INVALID_PARAMS, 1),
        (" " * (framing.LARGEST + 1), Code.INVALID_REQUEST, None),
    ],
)
def test_what_is_no_message_is_answered_with_what_is_wrong_and_what_to_do(
    frame: str | bytes, code: Code, id_: object
) -> None:
    with pytest.raises(FrameError) as caught:
        framing.parse(frame)
    failure = caught.value.failure
    assert (failure.error.code, failure.id) == (code.value, id_)
    assert failure.error.next == MEANINGS[code][1]
    told = json.loads(framing.write(failure))
    assert told["error"]["data"]["name"] == code.name.lower()


@given(st.binary(max_size=60) | JSON.map(json.dumps))
def test_any_bytes_are_a_message_or_an_answer_that_says_why_not(frame: str | bytes) -> None:
    try:
        message = framing.parse(frame)
    except FrameError as error:
        message = error.failure
    assert framing.parse(framing.write(message)) is not None


@given(st.text(), st.dictionaries(st.text(), JSON), st.none() | st.integers() | st.text())
def test_a_request_comes_out_as_it_went_in(
    method: str, params: dict[str, object], id_: str | int | None
) -> None:
    sent = Request(method=method, params=params, id=id_)
    frame = framing.write(sent)
    assert "\n" not in frame
    if "\\u0000" not in frame:
        assert framing.parse(frame) == sent


def test_answers_find_their_calls_in_any_order() -> None:
    caller = Caller()
    first, _ = caller.call(methods.STATUS, Named(conversation="a"))
    second, frame = caller.call(methods.OPEN, OpenParams(conversation="b"))
    sent = framing.parse(frame)
    assert sent == Request(method="conversation.open", params={"conversation": "b"}, id=second.id)
    error = Error.of_error(NotFound("conversation", "b"))
    (failed,) = caller.feed(framing.write(Failure(id=second.id, error=error)))
    assert failed == Failed(call=second, error=error)
    assert error.code == Code.NOT_FOUND
    (answered,) = caller.feed(framing.write(Response(id=first.id, result={"x": 1})))
    assert answered == Answered(call=first, result={"x": 1})
    assert caller.feed(framing.write(Response(id=first.id, result={}))) == []
    assert caller.lost() == []


def test_a_lost_connection_fails_what_was_not_answered() -> None:
    caller = Caller()
    call, _ = caller.call(methods.STATUS, Named(conversation="a"))
    (failed,) = caller.lost()
    assert failed.call is call
    assert failed.error.code == Code.DISCONNECTED


def test_an_error_that_passes_says_that_it_may_be_sent_again() -> None:
    assert Error.of_error(StoreUnavailable("for now")).data["retry"] is True
    assert Error.of_error(NotFound("turn", "x")).data["retry"] is False


def _entry(seq: int, conversation: str = "c") -> AnyNotice:
    told: dict[str, object] = {
        "conversation": conversation,
        "session": "s",
        "seq": seq,
        "type": "entry",
        "kind": "message",
        "turn": None,
        "role": "user",
        "text": "hello",
        "message": {},
        "created_at": "2026-01-31T12:00:00.000Z",
    }
    (happened,) = Caller().feed(framing.write_event(told))
    assert isinstance(happened, Happened)
    assert isinstance(happened.notice, EntryNotice)
    return happened.notice


def _piece(kind: str, text: str) -> AnyNotice:
    told = {"conversation": "c", "session": "s", "seq": 1, "type": kind, "turn": "t", "text": text}
    notice = read_notice({**told, **({"kind": "text"} if kind == "delta" else {}), "newer": 1})
    assert notice is not None
    return notice


def test_what_was_heard_is_not_heard_twice_and_a_gap_is_noticed() -> None:
    heard = Heard("c")
    assert heard.is_new(_entry(1))
    assert not heard.is_new(_entry(1))
    assert not heard.is_new(_entry(2, "other"))
    assert heard.is_new(_piece("snapshot", "a"))
    assert heard.is_new(_piece("delta", "b"))
    assert (heard.seq, heard.text) == (1, "ab")
    with pytest.raises(GapError):
        heard.is_new(_entry(3))
    again = heard.subscription()
    assert (again.after, heard.text) == (1, "")


def test_kinds_of_events_that_are_not_known_are_passed_over() -> None:
    told = {"conversation": "c", "session": "s", "seq": 1, "type": "of the future"}
    assert Caller().feed(framing.write_event(told)) == []
