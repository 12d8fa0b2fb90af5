"""
``clew`` as a shell finds it on its path, without an interpreter that imports everything anew.

It hands what it is started with to the test that runs, which forks the program.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from tests.acceptance.program import CLEW
from tests.forking import Forked

if TYPE_CHECKING:
    from collections.abc import Generator

#: What runs in the background is the program itself: a shell must be able to kill it.
_SCRIPT = """\
#!{python} -IS
import json, os, socket, sys
if "serve" in sys.argv:
    os.execv({clew!r}, [{clew!r}, *sys.argv[1:]])
told = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]) + "\\n"
with socket.socket(socket.AF_UNIX) as test:
    test.connect({place!r})
    socket.send_fds(test, [told[:1].encode()], [0, 1, 2])
    test.sendall(told[1:].encode())
    sys.exit(int(test.recv(16)))
"""


@contextmanager
def programs() -> Generator[Path]:
    """A folder with ``clew`` for the path of a shell."""
    with tempfile.TemporaryDirectory(prefix="clew-") as name:
        folder = Path(name)
        with socket.socket(socket.AF_UNIX) as listening:
            _offer(folder, listening)
            try:
                yield folder
            finally:
                listening.shutdown(socket.SHUT_RDWR)


def _offer(folder: Path, listening: socket.socket) -> None:
    place = str(folder / "socket")
    text = _SCRIPT.format(python=sys.executable, clew=CLEW, place=place)
    (folder / "clew").write_text(text, encoding="utf-8")
    (folder / "clew").chmod(0o700)
    listening.bind(place)
    listening.listen()
    Thread(target=_answer, args=(listening,), daemon=True).start()


def _answer(listening: socket.socket) -> None:
    while True:
        try:
            asking, _ = listening.accept()
        except OSError:
            return
        # Who asks may be gone by then.
        with asking, suppress(OSError):
            asking.sendall(str(_run(asking)).encode())


def _run(asking: socket.socket) -> int:
    """Run what is asked for with the streams of who asks; its exit code."""
    told, streams, _, _ = socket.recv_fds(asking, 1, 3)
    with asking.makefile(encoding="utf-8") as rest:
        args, environ, folder = json.loads(told.decode() + rest.readline())
    process = Forked(args, environ=environ, streams=streams, folder=Path(folder))
    for stream in streams:
        os.close(stream)
    return process.wait()
