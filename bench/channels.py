"""Cost of chats: memory of a gateway with 300 chats on Telegram against one with 100."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from bench.figures import Figure
from bench.places import scratch
from bench.turns import provider, rss
from clew.testing.telegram import FakeTelegram

if TYPE_CHECKING:
    from pathlib import Path

#: Chats of the two gateways, and messages in each chat.
FEW, MANY = 100, 300
MESSAGES = int(os.environ.get("CLEW_BENCH_MESSAGES", "200"))
#: Messages that are said before their answers are waited for.
_AT_ONCE = 20
#: Seconds without an answer after which a gateway is taken to stand still.
_PATIENCE = 60.0

#: Lines of the gateway's log that tell why it stands still.
_LAST_LINES = 20

#: ``clew``, with a Telegram that asks for no pauses: at its own pace 60,000 answers take an hour.
_PROGRAM = """
from dataclasses import replace
from clew.cli import main
from clew.gateway.channels.telegram import channel
channel.CAPABILITIES = replace(channel.CAPABILITIES, chat_pause=None, account_pause=0.0)
main()
"""


async def measure() -> list[Figure]:
    """Resident memory after ``MESSAGES`` messages in each chat."""
    return await asyncio.to_thread(_compare)


def _compare() -> list[Figure]:
    few, many = (_memory(chats) for chats in (FEW, MANY))
    return [
        Figure(
            name=f"memory of {MANY} chats less that of {FEW}, after {MESSAGES} messages in each",
            value=many - few,
            unit="MB",
            target=5,
        ),
        Figure(name=f"memory, {MANY} chats", value=many, unit="MB"),
    ]


def _memory(chats: int) -> float:
    with provider() as asked, scratch() as folder, FakeTelegram() as telegram:
        settings = {
            "model.name": "openai-chat:fake-model",
            "model.base_url": asked,
            "api.port": "0",
            "session.double_text": "queue",
            "channels.telegram.token": telegram.token,
            "channels.telegram.base_url": telegram.base_url,
            "channels.telegram.allow": "*",
            "channels.telegram.stream": "false",
        }
        flags = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        command = [sys.executable, "-c", _PROGRAM, "--home", str(folder / "home"), *flags, "serve"]
        with (
            (folder / "gateway.log").open("wb") as errors,
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors) as process,
        ):
            try:
                _talk(telegram, chats)
                return rss(process.pid)
            except TimeoutError as error:
                code = process.poll()
                state = "the gateway runs" if code is None else f"the gateway ended with {code}"
                raise RuntimeError(f"{error}; {state}:\n{_tail(folder)}") from error
            finally:
                process.kill()


def _tail(folder: Path) -> str:
    """Return the end of the gateway's log."""
    lines = (folder / "gateway.log").read_text(encoding="utf-8").splitlines()
    return "\n".join(lines[-_LAST_LINES:])


def _talk(telegram: FakeTelegram, chats: int) -> None:
    """Everybody writes in rounds, as many at once in both gateways: chats count, not crowds."""
    users = range(1, chats + 1)
    said = 0
    for number in range(1, MESSAGES + 1):
        for user in users:
            telegram.post_message(f"message {number}", user=user)
            said += 1
            if said % _AT_ONCE == 0:
                _until_answered(telegram, said)


def _until_answered(telegram: FakeTelegram, count: int) -> None:
    ends = time.monotonic() + _PATIENCE
    while len(telegram.messages) < count:
        if time.monotonic() > ends:
            raise TimeoutError(f"{len(telegram.messages)} of {count} answers")
        time.sleep(0.05)
