"""``python -m clew.api.rpc.reference docs/reference``: write the page and the OpenRPC document."""

from __future__ import annotations

import sys
from pathlib import Path

from clew.distribution import VERSION
from clew.wire.describe import render_document, render_page

PAGE, DOCUMENT = "rpc.md", "rpc.json"


def main() -> None:
    """Write both files into the folder that is named."""
    folder = Path(sys.argv[1])
    (folder / PAGE).write_text(render_page(), encoding="utf-8")
    (folder / DOCUMENT).write_text(render_document(VERSION), encoding="utf-8")


if __name__ == "__main__":
    main()
