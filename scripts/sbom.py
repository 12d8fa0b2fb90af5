"""
Write the software bill of materials: CycloneDX 1.6, from the lock file and the vendored packages.

``python -m scripts.sbom [FILE]``. The same source gives the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from scripts.dist import source_date_epoch

ROOT: Final = Path(__file__).parents[1]
LOCK: Final = ROOT / "requirements" / "run.lock"
VENDORED: Final = ROOT / "src" / "clew" / "web" / "vendor" / "packages.json"
_PIN: Final = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+)(?: ; (?P<marker>.*?))? \\\n")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def build_sbom() -> dict[str, Any]:
    """Return the bill."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], project["version"]
    own = f"pkg:pypi/{name}@{version}"
    components = [*read_lock(LOCK.read_text(encoding="utf-8")), *_read_vendored()]
    made = json.dumps(components, sort_keys=True)
    when = datetime.fromtimestamp(source_date_epoch(), UTC)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, own + made)}",
        "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": name,
                "version": version,
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own,
            },
        },
        "components": components,
        "dependencies": [
            {"ref": own, "dependsOn": sorted(one["bom-ref"] for one in components)},
        ],
    }


def read_lock(text: str) -> list[dict[str, Any]]:
    """Return a component for each pin of a lock file, with the hashes that are accepted."""
    found: list[dict[str, Any]] = []
    for pin in re.split(r"\n(?=\S)", text):
        if (match := _PIN.match(pin)) is None:
            continue
        name, version = match["name"], match["version"]
        purl = f"pkg:pypi/{name}@{version}"
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "purl": purl,
            # Of each file that may be installed: wheels of several machines, and the sdist.
            "hashes": [{"alg": "SHA-256", "content": one} for one in _HASH.findall(pin)],
        }
        if match["marker"]:
            marker = {"name": "clew:marker", "value": match["marker"]}
            component["properties"] = [marker]
        found.append(component)
    return found


def _read_vendored() -> list[dict[str, Any]]:
    """Return a component for each package whose files are in the dashboard."""
    packages = json.loads(VENDORED.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = []
    for name, package in packages.items():
        purl = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
        algorithm, _, digest = package["integrity"].partition("-")
        found.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": package["version"],
                "purl": purl,
                "licenses": [{"expression": package["license"]}],
                "hashes": [
                    {
                        "alg": algorithm.upper().replace("SHA", "SHA-"),
                        "content": b64decode(digest).hex(),
                    }
                ],
            }
        )
    return found


if __name__ == "__main__":
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "sbom.cdx.json"
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(json.dumps(build_sbom(), indent=2) + "\n", encoding="utf-8")
    print(to)
