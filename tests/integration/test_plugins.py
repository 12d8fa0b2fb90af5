"""Plugins that raise, hang or answer nonsense: nobody waits for them, and the log names them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from clew.hooks.manager import PluginManager, ToolVerdict
from clew.hooks.specs import hookimpl
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from structlog.typing import EventDict

#: Short enough to be waited out once, and long enough for a plugin that answers.
HASTE = 1.0


class Asked:
    """A plugin whose every hook does the same."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def act(self) -> Any:
        return None

    @hookimpl
    def on_session_end(self, session_id: str) -> Any:
        self.calls.append(session_id)
        return self.act()

    @hookimpl
    def pre_tool_call(self, session_id: str) -> Any:
        self.calls.append(session_id)
        return self.act()


class Raising(Asked):
    def act(self) -> Any:
        raise ValueError("as ever")


class Hanging(Asked):
    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def act(self) -> Any:
        self.gate.wait(30)


class Odd:
    """Raises whatever is done with it."""

    def __eq__(self, _: object) -> bool:
        raise ValueError

    def __repr__(self) -> str:
        raise ValueError

    __hash__ = None  # pyright: ignore[reportAssignmentType]  (as an object with __eq__ has it)


class Nonsense(Asked):
    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer

    def act(self) -> Any:
        return self.answer


class Ending(Asked):
    def act(self) -> Any:
        raise StopIteration


@pytest.fixture
def logs() -> Iterator[list[EventDict]]:
    with capture_logs() as found:
        yield found  # pyright: ignore[reportReturnType]  (declared as any mappings)


def _with(*plugins: Asked, timeout: float = 30) -> PluginManager:
    made = PluginManager(timeout)
    for plugin in plugins:
        made.register_plugin(plugin, type(plugin).__name__.lower())
    return made


def _told(logs: list[EventDict]) -> list[tuple[object, ...]]:
    return [(record["plugin"], record["hook"], record["event"]) for record in logs]


async def test_a_plugin_that_hangs_is_waited_for_once_and_called_again_when_it_is_free(
    logs: list[EventDict],
) -> None:
    hanging, good = Hanging(), Asked()
    plugins = _with(hanging, good, timeout=HASTE)
    for number in range(50):
        await plugins.notify_plugins("on_session_end", {"session_id": f"s{number}"})
    blocked = [(await plugins.run_pre_tool_call(session_id="call")).block for _ in range(50)]
    assert hanging.calls == ["s0"], "nobody else was waited for"
    assert good.calls == [*(f"s{number}" for number in range(50)), *["call"] * 50]
    assert blocked == ["the plugin hanging did not answer in time"] * 50
    assert _told(logs) == [
        ("hanging", "on_session_end", "hook_timed_out"),
        ("hanging", "on_session_end", "hook_left_out"),
        ("hanging", "pre_tool_call", "hook_left_out"),
    ]
    hanging.gate.set()

    async def let_in() -> bool:
        return (await plugins.run_pre_tool_call(session_id="free")).block is None

    await wait_until(let_in, "the plugin is asked again")
    assert hanging.calls[-1] == "free"
    plugins.close()


async def test_a_plugin_that_always_raises_is_logged_once_a_while_and_fills_no_log(
    logs: list[EventDict],
) -> None:
    raising, good = Raising(), Asked()
    plugins = _with(raising, good)
    for _ in range(20):
        await plugins.notify_plugins("on_session_end", {"session_id": "s"})
        assert await plugins.run_pre_tool_call(session_id="s") == ToolVerdict()
    assert len(raising.calls) == len(good.calls) == 40
    assert _told(logs) == [
        ("raising", "on_session_end", "hook_failed"),
        ("raising", "pre_tool_call", "hook_failed"),
    ]
    assert "as ever" in str(logs[0]["exc_info"])
    plugins.close()


@pytest.mark.parametrize(
    "answer", [[object()], {"action": 7}, {"action": Odd()}, Odd(), {"args": 7}], ids=range(5)
)
async def test_an_answer_that_means_nothing_changes_nothing_and_is_reported(
    logs: list[EventDict], answer: object
) -> None:
    plugins = _with(Nonsense(answer))
    await plugins.notify_plugins("on_session_end", {"session_id": "s"})
    assert await plugins.run_pre_tool_call(session_id="s") == ToolVerdict()
    assert _told(logs) == [("nonsense", "pre_tool_call", "hook_answer_unusable")]
    plugins.close()


async def test_a_call_that_is_blocked_or_changed_unclearly_does_not_run() -> None:
    for answer, why in (
        ({"action": "block", "message": Odd()}, "(Odd)"),
        ({"args": {"at": object()}}, "the plugin nonsense returned arguments that are not JSON"),
        ({"args": {("at", 1): 5}}, "the plugin nonsense returned arguments that are not JSON"),
    ):
        plugins = _with(Nonsense(answer))
        assert await plugins.run_pre_tool_call(session_id="s") == ToolVerdict(block=why)
        plugins.close()


async def test_a_plugin_that_ends_an_iteration_is_not_waited_for(logs: list[EventDict]) -> None:
    plugins = _with(Ending())
    assert await plugins.run_pre_tool_call(session_id="s") == ToolVerdict()
    assert _told(logs) == [("ending", "pre_tool_call", "hook_failed")]
    plugins.close()


async def test_a_plugin_does_not_see_how_another_changes_its_arguments() -> None:
    seen: list[object] = []

    class Emptying:
        @hookimpl
        def pre_tool_call(self, args: dict[str, Any]) -> None:
            seen.append(dict(args))
            args.clear()

    plugins = PluginManager(30)
    for name in ("first", "second"):
        plugins.register_plugin(Emptying(), name)
    await plugins.run_pre_tool_call(args={"at": 1})
    assert seen == [{"at": 1}] * 2
    plugins.close()
