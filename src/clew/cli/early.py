"""Ctrl-C before there is anything to stop: the program ends at once, without a word."""

from __future__ import annotations

import signal
import threading


def loading() -> bool:
    """Have Ctrl-C end the process while the rest is loaded; whether that is changed here."""
    changes = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if changes:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return changes


def loaded() -> None:
    """From here on whoever runs is told of it."""
    if CHANGED:
        signal.signal(signal.SIGINT, signal.default_int_handler)


#: Imported before all else, because Python would print where the import was interrupted.
CHANGED = loading()
