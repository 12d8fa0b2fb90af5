"""``clew sessions replay``: show a stored model request, or send it again."""

from __future__ import annotations

import difflib
import json
import sys
from typing import TYPE_CHECKING, Any

import click

from clew.cli.common import CliContext, format_examples, json_option, pass_cli_context, print_json
from clew.cli.output import get_outputs
from clew.cli.record_printer import resolve_conversation
from clew.cli.session_edit import NAME_ARGUMENT, open_engine, run_job
from clew.errors import NotFound, OperationRefused, UsageError

if TYPE_CHECKING:
    from clew.cli.output import Output
    from clew.engine.engine import Engine
    from clew.engine.recorded_requests import RecordedRequest
    from clew.engine.replay_service import ReplayResult


@click.command(
    epilog=format_examples(
        "clew sessions replay main 3 1",
        "clew sessions replay main 3 1 --model openai:gpt-5-mini --diff",
    )
)
@NAME_ARGUMENT
@click.argument("turn", metavar="TURN")
@click.argument("step", metavar="STEP", type=click.IntRange(min=1))
@click.option("--model", metavar="NAME", help="Send it again to this model, and print the answer.")
@click.option("--diff", is_flag=True, help="Send it again, and print how the answer differs.")
@json_option
@pass_cli_context
def replay(
    program: CliContext,
    *,
    name: str,
    turn: str,
    step: int,
    model: str | None,
    diff: bool,
    as_json: bool,
) -> None:
    """
    Print the request that was sent to a model, byte for byte.

    TURN is the turn's id or its number, STEP its model request, both from 1. With --model or --diff
    the request is sent once more; the conversation stays as it is, and no tool runs.
    """
    settings = program.load_settings()

    async def replay_request() -> None:
        async with open_engine(settings) as engine:
            sent = await _find_request(engine, name, turn, step)
            again = (
                await engine.replays.resend_request(sent, model=model) if model or diff else None
            )
            if as_json:
                print_json(_replay_json(sent, again))
            elif again is None:
                _print_request(sent)
            elif diff:
                _print_difference(sent, again, get_outputs()[0])
            else:
                get_outputs()[0].write(f"{again.now}\n")

    run_job(settings, replay_request())


async def _find_request(engine: Engine, name: str, turn: str, step: int) -> RecordedRequest:
    conversation = await resolve_conversation(engine, name)
    try:
        return await engine.replays.find_request(conversation, turn, step)
    except NotFound as error:
        raise UsageError(
            f"{error}: `clew sessions show {name} --json` shows the turn of each entry"
        ) from error


def _print_request(sent: RecordedRequest) -> None:
    if sent.body is None:
        raise OperationRefused(
            f"{sent.model or 'the model'} is not asked over the network, so there is no request: "
            "use --model to send it to another model"
        )
    out, _ = get_outputs()
    if out.is_terminal:
        out.write(sent.body.decode())
        out.end_line()
    else:
        sys.stdout.buffer.write(sent.body)


def _print_difference(sent: RecordedRequest, again: ReplayResult, out: Output) -> None:
    before = [] if again.stored is None else again.stored.splitlines()
    lines = difflib.unified_diff(
        before,
        again.now.splitlines(),
        fromfile=f"stored, {sent.model or 'unknown'}",
        tofile=f"now, {again.model}",
        lineterm="",
    )
    out.write("".join(f"{line}\n" for line in lines) or "the same answer\n")


def _replay_json(sent: RecordedRequest, again: ReplayResult | None) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "conversation": sent.entry.conversation_id,
        "turn": sent.turn,
        "step": sent.step,
        "seq": sent.entry.seq,
        "model": sent.model,
        "stream": sent.stream,
        "request": None if sent.body is None else json.loads(sent.body),
    }
    if again is not None:
        shape["stored"] = again.stored
        shape["now"] = {"model": again.model, "text": again.now, "same": again.now == again.stored}
    return shape
