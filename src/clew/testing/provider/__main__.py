"""
The fake provider as its own process, which survives when the tested process is killed.

``python -m clew.testing.provider --port P --script NAME --log FILE``; the script is
``echo``, ``counter`` or ``package.module:attribute``. It prints its base URL once it is
ready.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from clew.testing.provider.scripts import load_script
from clew.testing.provider.server import FakeProvider


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="clew.testing.provider")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--script", default="echo", help="echo, counter or module:attribute")
    parser.add_argument("--log", type=Path, help="a JSON line per request that ended")
    options = parser.parse_args()
    signals = {signal.SIGTERM, signal.SIGINT}
    # Blocked before the server's thread starts, so that it inherits the mask.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with FakeProvider(load_script(options.script), port=options.port, log=options.log) as provider:
        sys.stdout.write(f"{provider.url}\n")
        sys.stdout.flush()
        signal.sigwait(signals)


if __name__ == "__main__":
    main()
