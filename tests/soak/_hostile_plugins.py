"""Plugins for Hermes Agent that do harm, each beside a turn of the program, and what is left."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from textwrap import dedent
from typing import Final

from clew.features.hermes.deaths import MAX_DEATHS
from clew.record import Record
from clew.testing import FakeProvider
from tests.acceptance.program import CLEW, Clew
from tests.features.delegation_world import do, obey
from tests.soak import Table

#: Seconds for a command.
_LIMIT: Final = 90
#: Exit code for settings that cannot be used.
_REFUSED: Final = 2
_TOOL: Final = do(("harm", {}))
_HOOKS: Final = (
    "on_session_start", "on_session_end", "on_session_finalize", "on_session_reset",
    "pre_llm_call", "post_llm_call", "pre_tool_call", "post_tool_call", "pre_api_request",
    "post_api_request", "transform_tool_result", "transform_llm_output", "pre_gateway_dispatch",
)  # fmt: skip
_BEGIN: Final = """
import builtins, ctypes, json, logging, os, signal, socket, sys, threading, time
HOOKS = {hooks}
EMPTY = {{"type": "object", "properties": {{}}}}
def offer(ctx, handler):
    ctx.register_tool("harm", "harm", EMPTY, handler)
def observe(ctx, callback):
    for hook in HOOKS:
        ctx.register_hook(hook, callback)
def refuse(*_, **__):
    raise OSError("of a plugin")
def register(ctx):
    offer(ctx, lambda args, **_: "done no harm")
"""


class Harm(Record, kw_only=False):
    """What a plugin does: code after the usual beginning."""

    name: str
    code: str
    said: str = "hello"


def _in_tool(name: str, code: str) -> Harm:
    return Harm(
        f"{name} in a tool",
        f"def harm(args, **_):\n    {code}\ndef register(ctx):\n    offer(ctx, harm)\n",
        _TOOL,
    )


def _in_hooks(name: str, code: str) -> Harm:
    return Harm(
        f"{name} in each hook",
        f"def harm(**_):\n    {code}\n"
        "def register(ctx):\n    offer(ctx, len)\n    observe(ctx, harm)\n",
    )


HARMS: Final = (
    Harm("raises at import", "raise ValueError('as ever')"),
    Harm("exits at import", "sys.exit(3)"),
    Harm("os._exit at import", "os._exit(7)"),
    Harm("hangs at import", "time.sleep(600)"),
    Harm("raises in register", "def register(ctx):\n    raise ValueError('as ever')"),
    _in_hooks("raises", "raise ValueError('as ever')"),
    _in_hooks("exits", "sys.exit(3)"),
    _in_hooks("hangs", "time.sleep(600)"),
    _in_hooks("os._exit", "os._exit(7)"),
    _in_hooks("returns 100 MB", "return 'x' * 100_000_000"),
    _in_hooks("floods the log", "[logging.warning('flood %s', n) for n in range(100_000)]"),
    _in_tool("raises", "raise ValueError('as ever')"),
    _in_tool("exits", "sys.exit(3)"),
    _in_tool("os._exit", "os._exit(7)"),
    _in_tool("kill -9", "os.kill(os.getpid(), signal.SIGKILL)"),
    _in_tool("a crash", "ctypes.string_at(0)"),
    _in_tool("hangs", "time.sleep(600)"),
    _in_tool("returns 100 MB", "return 'x' * 100_000_000"),
    _in_tool("a thread without end", "threading.Thread(target=time.sleep, args=(600,)).start()"),
    Harm(
        "a thread without end at import",
        "threading.Thread(target=time.sleep, args=(600,), daemon=False).start()",
    ),
    Harm(
        "patches Python at import",
        "builtins.open = json.dumps = json.loads = socket.socket.connect = refuse\n"
        "os.environ['HOME'] = '/nowhere'; sys.path.insert(0, '/nowhere'); os.chdir('/')\n"
        "sys.modules['sqlite3'] = os.environ; os.umask(0); logging.disable(50)\n",
    ),
    _in_tool(
        "patches Python",
        "builtins.open = json.dumps = json.loads = time.sleep = refuse; os.chdir('/')",
    ),
)


def make_table() -> Table:
    """Run each of them."""
    rows: list[tuple[str, ...]] = []
    for harm in HARMS:
        rows.append((harm.name, *_run(harm)))
        print(rows[-1])
    columns = ("a plugin", "the turn beside it", "seconds", "the next turn", "the log", "sound")
    passed = all(row[-1] == "yes" for row in rows)
    return Table(title="Hostile plugins", columns=columns, rows=tuple(rows), passed=passed)


def _run(harm: Harm) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder, FakeProvider(obey) as provider:
        home = Path(folder)
        place = home / "hermes" / "plugins" / "harm"
        place.mkdir(parents=True)
        (place / "plugin.yaml").write_text("name: harm\n")
        begin = dedent(_BEGIN.format(hooks=_HOOKS))
        (place / "__init__.py").write_text(f"{begin}\n{harm.code}\n")
        calm = Clew(home).asking(provider)
        hostile = calm.with_env(
            {
                "CLEW_HERMES__ENABLED_PLUGINS": "harm",
                "CLEW_HERMES__TRUSTED_PLUGINS": "harm",
                "CLEW_HERMES__TIMEOUT": "1s",
                "CLEW_TOOLS__CALL_TIMEOUT": "3s",
            }
        )
        begun = time.monotonic()
        first = _say(hostile, harm.said)
        seconds = f"{time.monotonic() - begun:.0f}"
        answer, second = _go_on(hostile, calm)
        logged = _read_log(home)
        clean = calm.data("fsck")["clean"]
    is_sound = clean and answer.startswith("answered")
    return first, seconds, second, logged, "yes" if is_sound else "no"


def _go_on(hostile: Clew, calm: Clew) -> tuple[str, str]:
    """Say more until it is answered; return the answer, and how it came to it."""
    said = [_say(hostile, "and now?")]
    while not said[-1].startswith("answered") and len(said) < MAX_DEATHS:
        said.append(_say(hostile, "and now?"))
    if said[-1].startswith("answered"):
        return said[-1], said[-1] if len(said) == 1 else f"{said[-1]}, at attempt {len(said)}"
    without = _say(calm, "and now?")
    return without, f"{said[-1]}; without it: {without}"


def _say(clew: Clew, text: str) -> str:
    command = [CLEW, "chat", "-c", "talk", text]
    try:
        done = subprocess.run(
            command,
            env=clew.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "did not end"
    if done.returncode == 0:
        return f"answered: {_shorten(done.stdout, 40)}"
    last = done.stderr.strip().splitlines()[-1:] if done.returncode == _REFUSED else []
    why = f": {_shorten(last[0].removeprefix('clew: '), 120)}" if last else ""
    return f"ended with {done.returncode}{why}"


def _read_log(home: Path) -> str:
    """Return what the log says of the plugin, each once."""
    file = home / "logs" / "chat.log"
    lines = file.read_text(errors="replace").splitlines() if file.is_file() else []
    events: dict[str, None] = {}
    for line in lines:
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if told.get("plugin") or told["event"] in ("log_flooded", "tool_failed"):
            events[f"{told['event']} {_shorten(str(told.get('detail', '')), 30)}".strip()] = None
    size = f" ({file.stat().st_size:,} bytes)" if lines else ""
    return ", ".join(list(events)[:4]) + size


def _shorten(text: str, most: int) -> str:
    return " ".join(text.split())[:most].replace("|", "/")
