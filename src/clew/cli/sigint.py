"""Default SIGINT handling during imports: Ctrl-C ends the program at once and silently."""

from __future__ import annotations

import signal
import threading


def use_default_sigint() -> bool:
    """Let Ctrl-C end the process during imports; return whether the handler was changed."""
    changes = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if changes:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return changes


def restore_sigint() -> None:
    """Restore Python's SIGINT handler."""
    if HANDLER_CHANGED:
        signal.signal(signal.SIGINT, signal.default_int_handler)


#: Set on import, before all other imports: Python would print a traceback of the import.
HANDLER_CHANGED = use_default_sigint()
