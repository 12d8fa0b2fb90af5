"""Program that limits itself, then becomes another one: ``limited_launcher.py PROGRAM``."""

from __future__ import annotations

import contextlib
import os
import resource
import runpy
import sys
import warnings

#: Seconds of the processor, bytes of memory, and bytes of a file that it writes.
_LIMITS = (
    (resource.RLIMIT_CPU, 10),
    (resource.RLIMIT_AS, 1024 * 1024 * 1024),
    (resource.RLIMIT_FSIZE, 0),
)
_DEPTH = 5_000


def main() -> None:
    """Set the limits, and run the program."""
    for kind, most in _LIMITS:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))
    os.nice(10)
    sys.setrecursionlimit(_DEPTH)
    warnings.simplefilter("ignore")
    runpy.run_path(sys.argv[1], run_name="__main__")


if __name__ == "__main__":
    main()
