"""``python -m tests.soak NAME``."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import TYPE_CHECKING

from tests import soak

if TYPE_CHECKING:
    from collections.abc import Sequence


def names() -> list[str]:
    """Each module of this package is a soak; ``state_machine`` is called ``state-machine``."""
    found = (module.name for module in pkgutil.iter_modules(soak.__path__))
    return sorted(name.replace("_", "-") for name in found if not name.startswith("_"))


def main(args: Sequence[str]) -> int:
    if len(args) != 1 or args[0] not in names():
        print(f"make soak NAME, where NAME is one of: {', '.join(names())}")
        return 2
    module = importlib.import_module(f"tests.soak.{args[0].replace('-', '_')}")
    made: soak.Table | tuple[soak.Table, ...] = module.run()
    tables = made if isinstance(made, tuple) else (made,)
    print("\n\n".join(table.markdown() for table in tables))
    return 0 if all(table.passed for table in tables) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
