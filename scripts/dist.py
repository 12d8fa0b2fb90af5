"""
Build sdist and wheel twice and compare their bytes; the wheel is built from the sdist.

``python -m scripts.dist [FOLDER]``: needs what the group ``build`` installs, and no network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
#: Where neither git nor the environment says when: the first moment that a zip file can hold.
_NO_DATE: Final = 315532800


def source_date_epoch() -> int:
    """Return SOURCE_DATE_EPOCH, else the time of the commit."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    argv = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    try:
        return int(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return _NO_DATE


def build_once(folder: Path) -> list[Path]:
    """Build the sdist from this source, and the wheel from the sdist; return both."""
    folder.mkdir(parents=True, exist_ok=True)
    sdist = _build(ROOT, "sdist", folder)
    with tempfile.TemporaryDirectory() as unpacked, tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
        (source,) = Path(unpacked).iterdir()
        return [sdist, _build(source, "wheel", folder)]


def _build(source: Path, target: str, folder: Path) -> Path:
    before = set(folder.iterdir())
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(source_date_epoch())},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    (made,) = set(folder.iterdir()) - before
    return made


def build_twice(folder: Path) -> list[Path]:
    """
    Build into a folder.

    :raises SystemExit: if a second build has other bytes
    """
    shutil.rmtree(folder, ignore_errors=True)
    made = build_once(folder)
    with tempfile.TemporaryDirectory() as again:
        for first, second in zip(made, build_once(Path(again)), strict=True):
            if first.read_bytes() != second.read_bytes():
                raise SystemExit(f"{first.name}: a second build has other bytes")
    return made


if __name__ == "__main__":
    for file in build_twice(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        print(f"{digest}  {file.name}  {file.stat().st_size:,} bytes, the same twice")
