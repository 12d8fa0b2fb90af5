"""A client that knows nothing but the description of the protocol."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from clew.tui.transports import Connect, FrameConnection

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "rpc.json"

#: Tools of the agent that the client talks to.
TOOLS = '''\
import asyncio
from pydantic_ai import Tool


def pay(amount: int) -> str:
    """Pay so much."""
    return f"paid {amount}"


async def linger() -> str:
    """Take very long."""
    await asyncio.sleep(600)
    return "done"


tools = [Tool(pay, requires_approval=True), Tool(linger)]
'''


class Blind:
    """Builds its calls from the document, and holds all that it hears against it."""

    def __init__(self, connection: FrameConnection) -> None:
        self._connection = connection
        document: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8"))
        self._components = document["components"]
        self._methods = {method["name"]: method for method in document["methods"]}
        self._event = document["x-events"]
        self._fits_event = self._checker(document["x-events"]["params"])
        self._codes = {each["code"] for each in self._components["errors"].values()}
        self._asked = 0
        #: The events that nobody has asked for yet.
        self.heard: list[dict[str, Any]] = []

    def _checker(self, schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
        return jsonschema_rs.validator_for({**schema, "components": self._components})

    async def call(self, name: str, **known: object) -> Any:
        """Call a method and return its result; fill its parameters from ``known``."""
        method = self._methods[name]
        arguments: dict[str, object] = {}
        for param in method["params"]:
            if param["name"] in known:
                self._checker(param["schema"]).validate(known[param["name"]])
                arguments[param["name"]] = known[param["name"]]
            else:
                assert not param["required"], (name, param["name"])
        answer = await self._answer(name, arguments)
        assert "error" not in answer, answer
        self._checker(method["result"]["schema"]).validate(answer["result"])
        return answer["result"]

    async def fail(self, name: str, **arguments: object) -> Any:
        """The error that a call ends with."""
        error = (await self._answer(name, arguments))["error"]
        assert error["code"] in self._codes
        return error

    async def _answer(self, name: str, arguments: Mapping[str, object]) -> Any:
        self._asked += 1
        told = {"jsonrpc": "2.0", "id": self._asked, "method": name, "params": arguments}
        await self._connection.send(json.dumps(told))
        while True:
            message = await self._receive()
            if message.get("id") == self._asked:
                return message

    async def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self._connection.receive())
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            assert message["method"] == self._event["method"]
            self._fits_event.validate(message["params"])
            self.heard.append(message["params"])
        return message

    async def until(self, wanted: Callable[[dict[str, Any]], object]) -> list[dict[str, Any]]:
        """The events up to the one that is wanted."""
        found: list[dict[str, Any]] = []
        while True:
            while self.heard:
                found.append(self.heard.pop(0))
                if wanted(found[-1]):
                    return found
            await self._receive()


@asynccontextmanager
async def blind(connect: Connect) -> AsyncGenerator[Blind]:
    async with connect() as connection:
        yield Blind(connection)
