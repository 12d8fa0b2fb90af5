"""``python scripts/rpc_reference.py docs/reference``: write the page and the OpenRPC document."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from clew.api.builtin_operations import build_operations
from clew.distribution import VERSION
from clew.plugin.loading import load_features
from clew.wire.openrpc import render_document, render_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.wire.methods import AnyRpcMethod

PAGE_NAME, DOCUMENT_NAME = "rpc.md", "rpc.json"


def list_methods() -> Sequence[AnyRpcMethod]:
    """Return the methods of Clew and of its own features."""
    return build_operations(load_features(folder=Path())).methods


def main() -> None:
    """Write both files into the given folder."""
    folder, methods = Path(sys.argv[1]), list_methods()
    (folder / PAGE_NAME).write_text(render_page(methods), encoding="utf-8")
    (folder / DOCUMENT_NAME).write_text(render_document(VERSION, methods), encoding="utf-8")


if __name__ == "__main__":
    main()
