"""Random Markdown for every platform: all of it is read, in order, in messages that each takes."""

from __future__ import annotations

import os
import time
import traceback

from hypothesis import HealthCheck, given, settings

from clew.core.text import is_blank
from tests.outgoing import DOCUMENTS, PLATFORMS, Document, Platform, judge
from tests.soak import Table

#: Documents for each platform.
DOCUMENTS_EACH = int(os.environ.get("CLEW_SOAK_DOCUMENTS", "10000"))


def run() -> Table:
    rows = tuple((name, *_tried(platform)) for name, platform in PLATFORMS.items())
    return Table(
        title="Markdown as it is sent",
        columns=("platform", "documents", "messages", "seconds", "faults"),
        rows=rows,
        passed=not any(row[-1] for row in rows),
    )


def _tried(platform: Platform) -> tuple[int, int, int, int]:
    documents = messages = 0
    begun = time.monotonic()

    @settings(
        max_examples=DOCUMENTS_EACH,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(document=DOCUMENTS)
    def try_one(document: Document) -> None:
        nonlocal documents, messages
        if is_blank(document.text):
            return
        documents += 1
        messages += judge(document, platform)

    faults = 0
    try:
        try_one()
    except Exception:  # noqa: BLE001  (shown, and counted)
        traceback.print_exc()
        faults = 1
    return documents, messages, round(time.monotonic() - begun), faults
