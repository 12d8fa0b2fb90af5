"""``python scripts/rpc_reference.py docs/reference``: write the page and the OpenRPC document."""

from __future__ import annotations

import sys
from pathlib import Path

from clew.api.builtin_operations import BUILTIN_OPERATIONS
from clew.distribution import VERSION
from clew.wire.openrpc import render_document, render_page

PAGE_NAME, DOCUMENT_NAME = "rpc.md", "rpc.json"


def main() -> None:
    """Write both files into the given folder."""
    folder, methods = Path(sys.argv[1]), BUILTIN_OPERATIONS.methods
    (folder / PAGE_NAME).write_text(render_page(methods), encoding="utf-8")
    (folder / DOCUMENT_NAME).write_text(render_document(VERSION, methods), encoding="utf-8")


if __name__ == "__main__":
    main()
