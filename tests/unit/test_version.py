"""What ``clew --version`` and the software bill of materials say."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from clew.cli.commands import root
from clew.cli.version import find_commit, find_feature_schemas, format_version
from clew.distribution import VERSION
from clew.plugin.loading import load_named_features
from clew.store.migrate import load_migrations
from scripts.sbom import LOCK, VENDORED, build_sbom

ROOT = Path(__file__).parents[2]


def test_the_version_tells_the_commit_and_the_schemas_of_the_store(tmp_path: Path) -> None:
    lines = format_version().splitlines()
    newest = load_migrations("sqlite")[-1].number
    features = load_named_features(home=tmp_path, flags={}, environ={})
    known = {
        schema.feature: max(one.number for one in schema.load_migrations())
        for schema in features.schemas
    }
    assert find_feature_schemas() == dict(sorted(known.items()))
    told = "".join(f", {name} {number}" for name, number in sorted(known.items()))
    assert lines[0] == f"clew {VERSION}"
    assert lines[1] == f"commit {find_commit() or 'unknown'}"
    assert lines[2] == f"store schema {newest}{told}"


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/install.md", "docs/how-to/upgrade.md"])
def test_every_command_of_a_page_exists_and_takes_its_options(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    blocks = blocks.replace("\\\n", " ")
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wanted = [line.split()[1] for line in re.findall(r"^make .*$", blocks, re.MULTILINE)]
    assert set(wanted) <= targets
    for line in re.findall(r"^clew .*$", blocks, re.MULTILINE):
        words = shlex.split(line, comments=True)[1:]
        # Parsed to the last command, which is not run.
        done = CliRunner().invoke(root, [*_without_arguments(words), "--help"])
        assert done.exit_code == 0, (line, done.output)


def _without_arguments(words: list[str]) -> list[str]:
    """Return a command line up to the name of its command; options before it have a value."""
    options = 0
    while words[options].startswith("--set") or words[options].startswith("--home"):
        options += 2
    return [] if words[options].startswith("-") else words[: options + 1]


def test_the_bill_of_materials_names_each_pin_and_each_vendored_package_and_is_repeatable() -> None:
    bill = build_sbom()
    named = {one["purl"].partition("@")[0]: one for one in bill["components"]}
    pins = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if "==" in line[:60]]
    vendored = json.loads(VENDORED.read_text(encoding="utf-8"))
    pinned = [line for line in pins if not line.startswith(" ")]
    assert len(bill["components"]) == len(pinned) + len(vendored)
    assert all(one["hashes"] for one in bill["components"])
    assert "pkg:npm/preact" in named
    assert "pkg:pypi/apsw" in named
    code = "import json; from scripts.sbom import build_sbom; print(json.dumps(build_sbom()))"
    again = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(again.stdout) == bill
