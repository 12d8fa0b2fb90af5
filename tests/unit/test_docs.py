"""Published texts are valid on any machine: no local paths or indexes, no dead links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))

OURS = re.compile(r"(?<![\w.])/(?:work|root|home/\w+|opt/\w+)/|--(?:extra-)?index-url|--find-links")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def names(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


def test_a_page_names_no_path_or_index_of_the_machine_it_was_written_on() -> None:
    found = {page: OURS.findall(page.read_text(encoding="utf-8")) for page in PAGES}
    assert {page: ours for page, ours in found.items() if ours} == {}


def test_every_relative_link_of_a_page_leads_to_a_file() -> None:
    lost = {
        page: [link for link in _links(page) if not (page.parent / link).exists()] for page in PAGES
    }
    assert {page: links for page, links in lost.items() if links} == {}


def _links(page: Path) -> list[str]:
    targets = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    return [target for target in targets if "://" not in target and target[:7] != "mailto:"]


@pytest.mark.parametrize("lock", LOCKS, ids=names(LOCKS))
def test_a_lock_pins_every_package_by_hash_and_names_no_host(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert OURS.findall(text) == []
    pins = re.split(r"\n(?=\S)", text.strip())
    assert [pin.splitlines()[0] for pin in pins if "==" not in pin or "--hash=" not in pin] == []
