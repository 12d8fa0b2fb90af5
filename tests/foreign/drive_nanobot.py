"""
Hold conversations with nanobot, through its own agent.

Run by ``generate_nanobot_runs`` with the Python that has ``nanobot-ai``: steps as JSON, and a file
that it writes the number of each step to.
"""
# pyright: basic

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path

from nanobot import Nanobot


async def main(steps: list[list[str]], progress: Path) -> None:
    """Do the steps: ``say KEY TEXT``, ``abort KEY TEXT``, ``fork KEY TO``."""
    bot = Nanobot.from_config()
    for number, (verb, key, text) in enumerate(steps):
        progress.write_text(str(number))
        if verb == "fork":
            bot._loop.sessions.fork_session_before_user_index(key, text, 1)
            continue
        channel, _, chat = key.partition(":")
        turn = asyncio.create_task(
            bot.run(text, session_key=key, channel=channel, chat_id=chat, sender_id="42")
        )
        if verb == "abort":
            # As its command /stop does.
            await asyncio.sleep(2)
            turn.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await turn
    progress.write_text("done")
    await bot._loop.aclose()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1]), Path(sys.argv[2])))
    os._exit(0)
