"""Program: ``python -I -S start.py FOLDER``, with an order on its standard input."""

from __future__ import annotations

import sys


def main() -> None:
    """Supervise a command, with the modules of this package and without what it usually loads."""
    package = type(sys)("clew")
    package.__path__ = [__file__.removesuffix("/sandbox/supervisor/start.py")]
    sys.modules["clew"] = package
    from clew.sandbox.supervisor.program import run_program  # noqa: PLC0415  (found from now on)

    run_program(sys.argv[1])


if __name__ == "__main__":
    main()
