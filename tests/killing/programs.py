"""The programs that people start, ``clew serve`` and many ``clew chat``, on one home."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.killing.campaign import NotAsPlanned
from tests.killing.plans import Say
from tests.killing.records import Acknowledged, Ended, Handed

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tests.killing.child import Job

_CLEW = (sys.executable, "-c", "from clew.cli import main; main()")


def chats(job: Job, *, clients: int, messages: int) -> None:
    """
    Let clients say one message after the other each, every one with a process of its own.

    :raises NotAsPlanned: if one of them fails
    """
    with _served(job), ThreadPoolExecutor(clients) as threads:
        says = [
            [Say(key=f"c1m{100 * n + i}") for i in range(messages)] for n in range(1, clients + 1)
        ]
        for done in [threads.submit(_client, job, each) for each in says]:
            done.result()
    _chat(job, Say(key="c1m9999"))


def _client(job: Job, says: Sequence[Say]) -> None:
    for say in says:
        _chat(job, say)


def _chat(job: Job, say: Say) -> None:
    job.fronts.add(Handed(key=say.key, text=say.text, rule="queue"))
    command = [*_command(job), "chat", "-c", say.conversation, "--json", say.text]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    if done.returncode != 0:
        raise NotAsPlanned(f"{say.key}: exit code {done.returncode}\n{done.stderr[-4000:]}")
    told = json.loads(done.stdout)
    job.fronts.add(
        Acknowledged(
            key=say.key,
            inbox_id=told["turn"],
            conversation=told["conversation"],
            duplicate=False,
        )
    )
    job.fronts.add(
        Ended(
            key=say.key,
            outcome="turn",
            turn=told["turn"],
            turn_outcome="answered",
            text=told["text"],
        )
    )


@contextmanager
def _served(job: Job) -> Generator[None]:
    with (job.folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [*_command(job), "serve"], stdout=subprocess.PIPE, stderr=log, env=_environment()
        )
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()
    if process.returncode != 0:
        raise NotAsPlanned(f"serve: exit code {process.returncode}")


def _command(job: Job) -> list[str]:
    settings = {
        "model.name": "openai-chat:fake-model",
        "model.base_url": job.provider,
        "store.url": job.store_url,
        "api.port": "0",
    }
    flags = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    return [*_CLEW, "--home", str(job.folder), *flags]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("CLEW_")}
