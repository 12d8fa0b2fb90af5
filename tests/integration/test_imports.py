"""The server imports only its own modules, in one shape."""

from __future__ import annotations

import subprocess
import sys

#: Run in a process of its own: this one has imported everything.
PROGRAM = """
import importlib, sys
from clew.cli.common import fast_import

with fast_import():
    import clew.cli.gateway, clew.api.server, clew.runtime
from clew.agent.models import ModelSpec, build_model

def imported(*prefixes):
    return sorted(name for name in sys.modules if name.startswith(prefixes))

build_model(ModelSpec(name="openai-chat:m", base_url="http://localhost:1/v1"))
unused = imported("acp", "aiohttp", "rich", "pygments", "anthropic", "psycopg", "textual")
assert not unused, unused
assert not imported("openai.resources.responses", "openai.lib.streaming.responses")
assert len(imported("openai.types.")) < 200, len(imported("openai.types."))

model = build_model(ModelSpec(name="openai:m", base_url="http://localhost:1/v1"))
assert type(model.client.responses).__mro__[1].__name__ == "AsyncResponses"
for name in ("openai.types", "openai.types.chat", "openai.types.responses"):
    package = importlib.import_module(name)
    for given in package.__all__:
        value = getattr(package, given)
        module = getattr(value, "__module__", name)
        if module.startswith("openai.") and isinstance(value, type):
            assert getattr(sys.modules[module], value.__name__) is value, (name, given)
    print(name, len(package.__all__) > 50)
"""


def test_the_server_imports_what_it_uses_and_finds_the_rest_when_it_is_asked_for() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "openai.types True",
        "openai.types.chat True",
        "openai.types.responses True",
    ]
