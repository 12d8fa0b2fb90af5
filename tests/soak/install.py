"""
The wheel is installed with pip, uv and pipx under every Python of this machine, and answers.

Needs the network, for the dependencies. ``CLEW_PYTHONS`` names interpreters, separated by ``:``;
without it those of pyenv and of the path are taken.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from clew.distribution import DISTRIBUTION_NAME, VERSION
from scripts.dist import build_twice
from tests.soak import Table

#: Of the first answer, with everything installed.
LIMIT: Final = 60.0
#: Longer than a greeting, which the offline model answers with what it is.
SAID: Final = "I sail to Naxos tomorrow."
SUPPORTED: Final = ("3.11", "3.12", "3.13", "3.14")
_ASK: Final = "import sys; print('%d.%d' % sys.version_info[:2], sys.version.split()[0])"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What all installations share: the wheel, and uv and pipx in an environment of their own."""

    wheel: Path
    tools: Path
    folder: Path

    def environ(self, home: Path) -> dict[str, str]:
        """A user who has nothing of Clew and no cache."""
        ours = ("CLEW_", "OPENAI_", "ANTHROPIC_", "VIRTUAL_ENV", "PYTHON")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
        places = {"PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin", "UV_TOOL_DIR": "tools"}
        made = {name: str(home / folder) for name, folder in places.items()}
        caches = {"UV_CACHE_DIR": str(home / "cache"), "PIP_NO_CACHE_DIR": "1"}
        return {**kept, **made, **caches, "UV_TOOL_BIN_DIR": str(home / "bin"), "HOME": str(home)}


#: Installs into a home with an interpreter; returns the program.
Way: TypeAlias = Callable[[Bench, str, Path], Path]


def _with_pip(bench: Bench, python: str, home: Path) -> Path:
    _run(bench, home, python, "-m", "venv", str(home / "venv"))
    _run(bench, home, str(home / "venv/bin/python"), "-m", "pip", "install", str(bench.wheel))
    return home / "venv/bin/clew"


def _with_extras(bench: Bench, python: str, home: Path) -> Path:
    _run(bench, home, python, "-m", "venv", str(home / "venv"))
    wanted = f"{DISTRIBUTION_NAME}[all] @ {bench.wheel.as_uri()}"
    _run(bench, home, str(home / "venv/bin/python"), "-m", "pip", "install", wanted)
    return home / "venv/bin/clew"


def _with_uv(bench: Bench, python: str, home: Path) -> Path:
    uv = str(bench.tools / "uv")
    _run(bench, home, uv, "tool", "install", "--python", python, str(bench.wheel))
    return home / "bin/clew"


def _with_pipx(bench: Bench, python: str, home: Path) -> Path:
    pipx = str(bench.tools / "pipx")
    _run(bench, home, pipx, "install", "--python", python, str(bench.wheel))
    return home / "bin/clew"


WAYS: Final[dict[str, Way]] = {
    "pip in a venv": _with_pip,
    "pip, extra all": _with_extras,
    "uv tool install": _with_uv,
    "pipx install": _with_pipx,
}


def _run(bench: Bench, home: Path, *argv: str) -> str:
    done = subprocess.run(
        argv, env=bench.environ(home), cwd=home, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr[-2000:]}")
    return done.stdout


def find_pythons() -> dict[str, str]:
    """Return an interpreter of each supported version, by its full version."""
    named = [one for one in os.environ.get("CLEW_PYTHONS", "").split(":") if one]
    pyenv = sorted(Path.home().glob(".pyenv/versions/3.1*/bin/python"))
    on_path = filter(None, (shutil.which(f"python{version}") for version in SUPPORTED))
    found: dict[str, tuple[str, str]] = {}
    for python in (*named, *map(str, pyenv), *on_path):
        told = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=False)
        if told.returncode == 0:
            minor, full = told.stdout.split()
            found.setdefault(minor, (full, python))
    return dict(found[minor] for minor in SUPPORTED if minor in found)


def run() -> Table:
    with tempfile.TemporaryDirectory(prefix="clew-install-") as made:
        folder = Path(made)
        _, wheel = build_twice(folder / "dist")
        subprocess.run([sys.executable, "-m", "venv", folder / "tools"], check=True)
        tools = folder / "tools/bin"
        subprocess.run([tools / "python", "-m", "pip", "install", "-q", "uv", "pipx"], check=True)
        bench = Bench(wheel=wheel, tools=tools, folder=folder)
        rows: list[tuple[object, ...]] = []
        for full, python in find_pythons().items():
            for way in WAYS:
                rows.append(_try(bench, full, python, way))
                print(*rows[-1], sep=" | ", flush=True)
        size = round(wheel.stat().st_size / 1e6, 2)
    return Table(
        title=f"Installation of the wheel ({size} MB)",
        columns=("python", "way", "install s", "first answer s", "installed MB", "wrong"),
        rows=tuple(rows),
        passed=all(row[-1] == "" for row in rows),
    )  # fmt: skip


def _try(bench: Bench, full: str, python: str, way: str) -> tuple[object, ...]:
    home = bench.folder / "home"
    home.mkdir()
    try:
        began = time.monotonic()
        clew = WAYS[way](bench, python, home)
        installing = time.monotonic() - began
        wrong = _find_wrong(bench, clew, home)
        began = time.monotonic()
        answer = _run(bench, home, str(clew), "chat", SAID)
        answering = time.monotonic() - began
        if answer.strip() != f"You said: {SAID}" or installing + answering > LIMIT:
            wrong.append(f"answered {answer.strip()!r} after {installing + answering:.0f} s")
        size = sum(one.lstat().st_size for one in home.rglob("site-packages/**/*") if one.is_file())
    except RuntimeError as error:
        print(error)
        return (full, way, "-", "-", "-", str(error).partition("\n")[0][:80])
    finally:
        shutil.rmtree(home)
    return (
        full,
        way,
        round(installing, 1),
        round(answering, 1),
        round(size / 1e6),
        "; ".join(wrong),
    )


def _find_wrong(bench: Bench, clew: Path, home: Path) -> list[str]:
    told = _run(bench, home, str(clew), "--version").splitlines()
    if told[0] != f"clew {VERSION}" or "unknown" in told[1] or "store schema" not in told[2]:
        return [f"--version tells {told}"]
    return []
