"""Sandboxes for tests: those that CI must have, and others only where they work."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clew.sandbox.bubblewrap import BubblewrapSandbox
from clew.sandbox.landlock_launcher import SCOPES_SINCE, landlock_version
from clew.sandbox.request import CommandLimits, SandboxRequest, find_python

if TYPE_CHECKING:
    from pathlib import Path

#: Tests are skipped where it is missing; CI installs it.
needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None and not os.environ.get("CI"),
    reason="bubblewrap is not installed (apt install bubblewrap)",
)

needs_landlock = pytest.mark.skipif(
    sys.platform != "linux" or landlock_version() < SCOPES_SINCE,
    reason="this kernel has no Landlock, or one that does not confine signals",
)

#: Follows the arguments of docker; what runs in a container runs here, in a session of its own.
FAKE_DOCKER = """#!/usr/bin/env python3
import json, os, subprocess, sys
words = sys.argv[1:]
with open("STATE/calls", "a") as file:
    file.write(json.dumps(words) + "\\n")
if os.path.exists("STATE/broken"):
    sys.exit("cannot connect to the engine")
verb, *rest = words
if verb == "version":
    print("29.0")
elif verb == "inspect":
    print("true" if os.path.exists("STATE/container-" + rest[-1]) else "no such object")
elif verb == "run":
    open("STATE/container-" + rest[rest.index("--name") + 1], "w").close()
elif verb == "exec":
    folder, environment = "/", {"PATH": os.defpath}
    while rest[0].startswith("--"):
        option = rest.pop(0)
        if option == "--interactive":
            continue
        value = rest.pop(0)
        if option == "--workdir":
            folder = value
        elif option == "--env":
            name, given, text = value.partition("=")
            environment[name] = text if given else os.environ[name]
        else:
            sys.exit("unknown flag: " + option)
    assert os.path.exists("STATE/container-" + rest.pop(0))
    done = subprocess.run(rest, cwd=folder, env=environment, start_new_session=True)
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)
"""


def make_bubblewrap(folder: Path) -> BubblewrapSandbox:
    return BubblewrapSandbox(folder / "work")


def make_request(folder: Path, **limits: float) -> SandboxRequest:
    """A request in a workspace of its own, at small limits."""
    small = CommandLimits(memory=256 * 2**20, processes=32, seconds=60, output=10_000, disk=2**26)
    return SandboxRequest(
        workspace=folder / "work" / "local",
        limits=replace(small, **limits),  # pyright: ignore[reportArgumentType]
        readable=find_python().readable,
    )
