"""Each model is asked where the settings say, with the key that they say, and nowhere else."""

from __future__ import annotations

import inspect
import re
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from pydantic_ai import providers as library
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelRequest

from clew.agent.models import ModelSpec, build_model, close_models_on_exit, get_qualified_name
from clew.config import load_settings
from clew.errors import SettingsError
from clew.runtime import (
    find_model_problems,
    make_chosen_models,
    make_models,
    make_summary_model,
    make_title_model,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

#: Every provider that the model library knows, and a way through its gateway.
KINDS = [
    *dict.fromkeys(re.findall(r"'([a-z0-9-]+)'", inspect.getsource(library.infer_provider_class))),
    "gateway/openai",
    "gateway/anthropic",
]
#: They make no models to talk to.
NO_CHAT = {"elevenlabs", "sentence-transformers", "voyageai", "openai-decisions", "system-one"}
#: They cannot be given a key or an address.
SIGN_IN = {"openai-codex", "openai-chatgpt"}
MODEL_NAMES = {"openrouter": "openai/gpt-5", "bedrock-mantle": "openai.gpt-oss-20b"}


@dataclass
class Recorder:
    """A server on loopback that refuses everything, and keeps the head of each request."""

    port: int = 0
    heads: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            self.heads.append(head.decode("latin-1"))
            body = b'{"error": {"message": "there is nothing here"}}'
            answer = b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\n"
            answer += b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
            await stream.send(answer + body)


@asynccontextmanager
async def recording() -> AsyncGenerator[Recorder]:
    recorder = Recorder()
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        recorder.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, recorder.serve)
            yield recorder
            tasks.cancel_scope.cancel()


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of other machines that are looked up; none is found."""
    names: list[str] = []
    real = socket.getaddrinfo

    def getaddrinfo(host: str | bytes | None, *arguments: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        if name not in ("127.0.0.1", "localhost", "None"):
            names.append(name)
            raise socket.gaierror(socket.EAI_NONAME, "no such machine")
        return real(host, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of somebody who also has keys of the public providers."""
    for name in ("OPENAI", "ANTHROPIC", "DEEPSEEK", "OPENROUTER", "GROQ", "MISTRAL", "TOGETHER"):
        monkeypatch.setenv(f"{name}_API_KEY", f"public-{name}")


@pytest.mark.filterwarnings("ignore::pydantic_ai.exceptions.PydanticAIDeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_model_of_any_provider_is_asked_at_the_address_that_is_set_or_refused(
    kind: str, resolved: list[str]
) -> None:
    name = f"{kind}:{MODEL_NAMES.get(kind, 'gpt-5')}"
    async with recording() as recorder, close_models_on_exit():
        spec = ModelSpec(name=name, base_url=recorder.url, api_key="private-key", timeout=7.0)
        try:
            model = build_model(spec)
        except SettingsError as error:
            text = str(error)
            missing = "needs a package that is not installed: pip install '" in text
            assert kind in NO_CHAT or missing or (kind in SIGN_IN and "model.api_key" in text), text
            return
        assert kind not in NO_CHAT | SIGN_IN
        assert get_qualified_name(model) == name
        client: Any = getattr(model, "client", None)
        assert getattr(client.timeout, "read", client.timeout) == 7.0
        with pytest.raises(ModelHTTPError):
            await model_request(model, [ModelRequest.user_text_prompt("a secret")])
    [head] = recorder.heads
    assert "private-key" in head
    assert "public-" not in head
    assert resolved == []


@pytest.mark.parametrize("kind", ["openai", "openai-chat", "anthropic", "deepseek", "openrouter"])
async def test_a_key_in_the_environment_is_not_sent_to_another_address(
    kind: str, resolved: list[str]
) -> None:
    name = f"{kind}:{MODEL_NAMES.get(kind, 'gpt-5')}"
    async with recording() as recorder, close_models_on_exit():
        model = build_model(ModelSpec(name=name, base_url=recorder.url))
        with pytest.raises(ModelHTTPError):
            await model_request(model, [ModelRequest.user_text_prompt("a secret")])
    [head] = recorder.heads
    assert "public-" not in head
    assert resolved == []


@pytest.mark.parametrize("kind", ["litellm", "ollama", "vllm", "azure"])
def test_a_provider_without_an_address_of_its_own_wants_one(kind: str) -> None:
    with pytest.raises(SettingsError, match=r"address is not known: set model\.base_url"):
        build_model(ModelSpec(name=f"{kind}:llama3"))


def _places(home: Path, flags: dict[str, Any], chosen: str) -> list[tuple[str, str]]:
    """Return the address and the key for each kind of model."""
    settings = load_settings(home=home, flags=flags, environ={"OPENAI_API_KEY": "public-OPENAI"})
    picked = make_chosen_models(settings, chosen).find_by_name(None)
    models = [
        *make_models(settings),
        make_summary_model(settings),
        make_title_model(settings),
        picked,
    ]
    clients: list[Any] = [getattr(model, "client", None) for model in models if model is not None]
    return [(client.base_url.host, client.api_key) for client in clients]


async def test_a_second_model_on_the_same_server_is_asked_there(tmp_path: Path) -> None:
    flags = {
        "model.name": "openai-chat:llama3",
        "model.base_url": "http://box.lan:11434/v1",
        "model.api_key": "private-key",
        "model.fallback": ["openai-chat:qwen3", "openai:qwen3", "openai-responses:qwen3"],
        "compaction.model": "openai-chat:small",
        "session.title_model": "openai-chat:tiny",
    }
    async with close_models_on_exit():
        places = _places(tmp_path, flags, "openai-chat:other")
    assert places == [("box.lan", "private-key")] * 7


async def test_another_provider_has_its_own_address_and_key(tmp_path: Path) -> None:
    flags = {
        "model.name": "openai-chat:llama3",
        "model.base_url": "http://box.lan:11434/v1",
        "model.fallback": ["anthropic:claude-sonnet-5", "openai:gpt-5-mini"],
        "compaction.model": "vllm:qwen3",
        "session.title_model": "deepseek:deepseek-chat",
        "providers.vllm.base_url": "http://gpu.lan/v1",
        "providers.openai.api_key": "own-key",
    }
    async with close_models_on_exit():
        places = _places(tmp_path, flags, "anthropic:claude-opus-5")
    assert places == [
        ("box.lan", "none"),
        ("api.anthropic.com", "public-ANTHROPIC"),
        ("api.openai.com", "own-key"),
        ("gpu.lan", "none"),
        ("api.deepseek.com", "public-DEEPSEEK"),
        ("api.anthropic.com", "public-ANTHROPIC"),
    ]


def test_a_model_of_another_api_format_at_the_same_server_is_reported(tmp_path: Path) -> None:
    flags = {
        "model.name": "openai-chat:llama3",
        "model.base_url": "http://box.lan:11434/v1",
        "model.fallback": ["openai:gpt-5-mini", "openai-chat:qwen3"],
    }
    [warning] = load_settings(home=tmp_path, flags=flags, environ={}).warnings
    assert "model.fallback 'openai:gpt-5-mini' is asked at model.base_url" in warning
    assert "[providers.openai]" in warning


async def test_an_empty_table_names_the_public_address(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[model]\nname = "openai-chat:llama3"\nbase_url = "http://box.lan/v1"\n[providers.openai]\n'
    )
    async with close_models_on_exit():
        places = _places(tmp_path, {}, "openai:gpt-5")
    assert places == [("box.lan", "none"), ("api.openai.com", "public-OPENAI")]


async def test_the_environment_names_a_provider_with_underscores(tmp_path: Path) -> None:
    environ = {"CLEW_PROVIDERS__OPENAI_CHAT__BASE_URL": "http://box.lan/v1"}
    settings = load_settings(home=tmp_path, flags={"model.name": "openai-chat:m"}, environ=environ)
    assert settings.providers["openai-chat"].base_url == "http://box.lan/v1"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"model.name": "openai-codex:x", "model.base_url": "http://h/v1"}, "model.base_url"),
        ({"model.name": "openai-codex:x", "model.api_key": "k"}, "model.api_key"),
        (
            {
                "model.fallback": ["openai-codex:x"],
                "providers.openai-codex.base_url": "http://h/v1",
            },
            "providers.openai-codex.base_url",
        ),
        ({"compaction.model": "opnai:x"}, "compaction.model 'opnai:x' cannot be used"),
        ({"session.title_model": "xai:x"}, "session.title_model 'xai:x' needs a package"),
        ({"providers.anthropc.api_key": "k"}, "[providers.anthropc] is no provider"),
        ({"compaction.model": "vllm:x"}, "set providers.vllm.base_url"),
    ],
)
async def test_a_setting_that_cannot_be_honoured_is_named(
    flags: dict[str, Any], said: str, tmp_path: Path
) -> None:
    settings = load_settings(home=tmp_path, flags={"model.name": "offline", **flags}, environ={})
    async with close_models_on_exit():
        [problem] = find_model_problems(settings)
        assert said in problem
        with pytest.raises(SettingsError, match=re.escape(said)):
            _start(settings)


def _start(settings: Any) -> None:
    make_models(settings)
    make_summary_model(settings)
    make_title_model(settings)


def test_a_table_beside_the_models_own_settings_is_a_contradiction(tmp_path: Path) -> None:
    flags = {
        "model.name": "openai-chat:m",
        "model.base_url": "http://a.lan/v1",
        "providers.openai-chat.base_url": "http://b.lan/v1",
    }
    with pytest.raises(SettingsError, match=r"are both set: keep one"):
        load_settings(home=tmp_path, flags=flags, environ={})
