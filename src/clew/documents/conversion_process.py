"""Conversion in a process of its own, so that content of strangers cannot exceed its limits."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from clew.background import kill_and_wait, start_child

if TYPE_CHECKING:
    from collections.abc import Mapping

_LAUNCHER: Final = Path(__file__).with_name("limited_launcher.py")
#: Seconds for a conversion, which has 10 of processor time.
SECONDS: Final = 20.0
#: Conversions that run at once: each may take a gigabyte.
_MAX_CONVERSIONS: Final = 2
#: By event loop.
_places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def convert_in_process(
    program: Path, head: Mapping[str, object], body: bytes, *, seconds: float = SECONDS
) -> dict[str, Any] | None:
    """
    Return the answer of a program for ``body``; ``None`` if it exceeds a limit.

    The program gets a line of JSON and the body, and answers with an object of JSON. It
    waits while too many others run.
    """
    loop = asyncio.get_running_loop()
    async with _places.setdefault(loop, asyncio.Semaphore(_MAX_CONVERSIONS)):
        return await _run_converter(program, head, body, seconds)


async def _run_converter(
    program: Path, head: Mapping[str, object], body: bytes, seconds: float
) -> dict[str, Any] | None:
    process = await start_child(
        *(sys.executable, "-I", "-B", str(_LAUNCHER), str(program)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    output = b""
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate(json.dumps(head).encode() + b"\n" + body)
    except TimeoutError:
        pass
    finally:
        await kill_and_wait(process)
    try:
        return json.loads(output)
    except ValueError:
        return None
