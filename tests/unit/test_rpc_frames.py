"""JSON-RPC without a connection: frames, calls and their answers, what was heard."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import NotFound, StoreUnavailable
from clew.wire import framing, methods
from clew.wire.client_protocol import (
    ClientProtocol,
    EntryGapError,
    ErrorReceived,
    EventReceived,
    ResultReceived,
    SubscriptionState,
)
from clew.wire.errors import ERROR_TEXTS, ErrorCode, RpcError
from clew.wire.event_models import AnyNotice, EntryNotice, parse_notice
from clew.wire.framing import FrameError, RpcErrorResponse, RpcRequest, RpcResponse
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
        ("", ErrorCode.PARSE, None),
        ("{", ErrorCode.PARSE, None),
        (b"\xff\xfe", ErrorCode.PARSE, None),
        ("[" * 100_000, ErrorCode.PARSE, None),
        ("NaN", ErrorCode.PARSE, None),
        ("1", ErrorCode.INVALID_REQUEST, None),
        ("[]", ErrorCode.INVALID_REQUEST, None),
        ('[{"jsonrpc": "2.0", "id": 1, "method": "x"}]', ErrorCode.INVALID_REQUEST, None),
        ('{"id": 1, "method": "x"}', ErrorCode.INVALID_REQUEST, 1),
        ('{"jsonrpc": "1.0", "id": "a", "method": "x"}', ErrorCode.INVALID_REQUEST, "a"),
        ('{"jsonrpc": "2.0", "id": 1}', ErrorCode.INVALID_REQUEST, 1),
        ('{"jsonrpc": "2.0", "id": 1, "method": 2}', ErrorCode.INVALID_REQUEST, 1),
        ('{"jsonrpc": "2.0", "id": null, "method": "x"}', ErrorCode.INVALID_REQUEST, None),
        ('{"jsonrpc": "2.0", "id": true, "method": "x"}', ErrorCode.INVALID_REQUEST, None),
        ('{"jsonrpc": "2.0", "id": 1.5, "method": "x"}', ErrorCode.INVALID_REQUEST, None),
        ('{"jsonrpc": "2.0", "id": 1, "method": "x", "params": []}', ErrorCode.INVALID_PARAMS, 1),
        (" " * (framing.MAX_FRAME_BYTES + 1), ErrorCode.INVALID_REQUEST, None),
    ],
)
def test_an_invalid_message_is_answered_with_the_fault_and_the_fix(
    frame: str | bytes, code: ErrorCode, id_: object
) -> None:
    with pytest.raises(FrameError) as caught:
        framing.parse_frame(frame)
    failure = caught.value.failure
    assert (failure.error.code, failure.id) == (code.value, id_)
    assert failure.error.next_step == ERROR_TEXTS[code][1]
    told = json.loads(framing.write_message(failure))
    assert told["error"]["data"]["name"] == code.name.lower()


@given(st.binary(max_size=60) | JSON.map(json.dumps))
def test_any_bytes_are_a_message_or_an_answer_that_says_why_not(frame: str | bytes) -> None:
    try:
        message = framing.parse_frame(frame)
    except FrameError as error:
        message = error.failure
    assert framing.parse_frame(framing.write_message(message)) is not None


@given(st.text(), st.dictionaries(st.text(), JSON), st.none() | st.integers() | st.text())
def test_a_request_comes_out_as_it_went_in(
    method: str, params: dict[str, object], id_: str | int | None
) -> None:
    sent = RpcRequest(method=method, params=params, id=id_)
    frame = framing.write_message(sent)
    assert "\n" not in frame
    if "\\u0000" not in frame:
        assert framing.parse_frame(frame) == sent


def test_answers_find_their_calls_in_any_order() -> None:
    caller = ClientProtocol()
    first, _ = caller.call(methods.STATUS, Named(conversation="a"))
    second, frame = caller.call(methods.OPEN, OpenParams(conversation="b"))
    sent = framing.parse_frame(frame)
    assert sent == RpcRequest(
        method="conversation.open", params={"conversation": "b"}, id=second.id
    )
    error = RpcError.from_exception(NotFound("conversation", "b"))
    (failed,) = caller.feed(framing.write_message(RpcErrorResponse(id=second.id, error=error)))
    assert failed == ErrorReceived(call=second, error=error)
    assert error.code == ErrorCode.NOT_FOUND
    (answered,) = caller.feed(framing.write_message(RpcResponse(id=first.id, result={"x": 1})))
    assert answered == ResultReceived(call=first, result={"x": 1})
    assert caller.feed(framing.write_message(RpcResponse(id=first.id, result={}))) == []
    assert caller.connection_lost() == []


def test_a_lost_connection_fails_what_was_not_answered() -> None:
    caller = ClientProtocol()
    call, _ = caller.call(methods.STATUS, Named(conversation="a"))
    (failed,) = caller.connection_lost()
    assert failed.call is call
    assert failed.error.code == ErrorCode.DISCONNECTED


def test_an_error_that_passes_says_that_it_may_be_sent_again() -> None:
    assert RpcError.from_exception(StoreUnavailable("for now")).data["retry"] is True
    assert RpcError.from_exception(NotFound("turn", "x")).data["retry"] is False


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
    (happened,) = ClientProtocol().feed(framing.write_event(told))
    assert isinstance(happened, EventReceived)
    assert isinstance(happened.notice, EntryNotice)
    return happened.notice


def _piece(kind: str, text: str) -> AnyNotice:
    told = {"conversation": "c", "session": "s", "seq": 1, "type": kind, "turn": "t", "text": text}
    notice = parse_notice({**told, **({"kind": "text"} if kind == "delta" else {}), "newer": 1})
    assert notice is not None
    return notice


def test_a_received_event_is_not_repeated_and_a_gap_is_noticed() -> None:
    heard = SubscriptionState("c")
    assert heard.accept_notice(_entry(1))
    assert not heard.accept_notice(_entry(1))
    assert not heard.accept_notice(_entry(2, "other"))
    assert heard.accept_notice(_piece("snapshot", "a"))
    assert heard.accept_notice(_piece("delta", "b"))
    assert (heard.seq, heard.text) == (1, "ab")
    with pytest.raises(EntryGapError):
        heard.accept_notice(_entry(3))
    again = heard.subscribe_params()
    assert (again.after, heard.text) == (1, "")


def test_kinds_of_events_that_are_not_known_are_passed_over() -> None:
    told = {"conversation": "c", "session": "s", "seq": 1, "type": "of the future"}
    assert ClientProtocol().feed(framing.write_event(told)) == []
