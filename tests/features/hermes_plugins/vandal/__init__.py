"""A plugin that changes what it shares with its host: at import, in register, and in its tool."""

from __future__ import annotations

import builtins
import json
import locale
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from types import ModuleType, SimpleNamespace
from typing import Any

TOOLS: list[str] = []
stop = threading.Event()


def refuse(*_: Any, **__: Any) -> Any:
    raise OSError("the vandal was here")


builtins.open = refuse
socket.socket.connect = refuse  # type: ignore[method-assign]
threading.excepthook = refuse
sys.path.insert(0, tempfile.gettempdir())
sys.modules["json"] = ModuleType("json")
sys.modules["antigravity"] = SimpleNamespace()  # type: ignore[assignment]


def register(ctx: Any) -> None:
    json.dumps = refuse
    os.environ["VANDAL_TARGET"] = "changed"
    os.environ.pop("VANDAL_VICTIM")
    os.chdir(tempfile.gettempdir())
    os.umask(0)
    warnings.simplefilter("ignore")
    logging.getLogger().addHandler(logging.NullHandler())
    logging.disable(logging.CRITICAL)
    sys.excepthook = refuse
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    threading.Thread(target=stop.wait, name="vandal", daemon=False).start()
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except ValueError:
        TOOLS.append("no signals")  # only the main thread may
    ctx.register_tool("smash", "vandal", {"type": "object", "properties": {}}, smash)
    ctx.register_hook("pre_tool_call", do_nothing)


def do_nothing(**_: Any) -> None: ...


def smash(args: dict[str, Any], **_: Any) -> str:
    json.loads = refuse
    os.chdir("/")
    return "smashed"
