"""Real connections that fail, each for its own reason: the reason is told, and what mends it."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from clew.agent.advice import ADVICE
from clew.agent.models import ModelSpec, build_model, close_models_on_exit
from clew.agent.probe import probe_model
from clew.agent.provider_errors import FailureKind, ProviderFailure
from clew.cli import entry_point
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

KEY = "sk-a-real-secret"
PROVIDERS = ("openai-chat:m", "openai:m", "anthropic:m")


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy and no certificates but those of a test."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("SSL_CERT_"):
            monkeypatch.delenv(name)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def web_server(status: int = 200, body: bytes = b"<html>hello</html>") -> Generator[int]:
    """A server of pages, which is no API and as a proxy lets nobody through; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_CONNECT = do_POST  # noqa: N815  (the base class's way to name methods)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


async def failure_at(url: str, name: str = PROVIDERS[0]) -> ProviderFailure:
    async with close_models_on_exit():
        model = build_model(ModelSpec(name=name, base_url=url, api_key=KEY, timeout=20))
        failure = await probe_model(model, patience=20)
    assert failure is not None
    assert KEY not in failure.user_message
    return failure


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_missing_server_is_reported_with_its_address(name: str) -> None:
    port = closed_port()
    failure = await failure_at(f"http://127.0.0.1:{port}/v1", name)
    assert failure.kind is FailureKind.UNREACHABLE
    assert failure.user_message == f"nothing listens at 127.0.0.1:{port}"


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_host_that_does_not_exist_is_named(name: str) -> None:
    failure = await failure_at("http://no-such-host.invalid/v1", name)
    assert failure.kind is FailureKind.DNS
    assert "no-such-host.invalid" in failure.user_message


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_server_without_tls_is_distinguished_from_one_that_is_away(name: str) -> None:
    with web_server() as port:
        failure = await failure_at(f"https://127.0.0.1:{port}/v1", name)
    assert failure.kind is FailureKind.TLS
    assert f"127.0.0.1:{port} does not speak TLS" in failure.user_message


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_web_page_is_recognised(name: str, status: int) -> None:
    with web_server(status) as port:
        failure = await failure_at(f"http://127.0.0.1:{port}", name)
    assert failure.kind is FailureKind.WEB_PAGE
    assert "web page" in failure.user_message
    assert "/v1" in ADVICE[failure.kind].text


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_key_that_is_known_and_not_allowed_is_not_called_wrong(name: str) -> None:
    with web_server(403, b'{"error": {"message": "not in your region"}}') as port:
        failure = await failure_at(f"http://127.0.0.1:{port}", name)
    assert failure.kind is FailureKind.FORBIDDEN


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_proxy_that_is_away_is_not_taken_for_the_provider(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", f"http://user:secret-word@127.0.0.1:{closed_port()}")
    failure = await failure_at("http://api.example.invalid/v1", name)
    assert failure.kind is FailureKind.PROXY
    assert "secret-word" not in failure.user_message


async def test_a_proxy_that_refuses_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with web_server(407) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        failure = await failure_at("https://api.example.invalid/v1")
    assert failure.kind is FailureKind.PROXY
    assert "407" in failure.user_message


SURROUNDINGS = (
    ("ALL_PROXY", "socks5://user:secret-word@127.0.0.1:9", "socksio"),
    ("HTTPS_PROXY", "socks5h://127.0.0.1:9", "socksio"),
    ("ALL_PROXY", "foo://user:secret-word@127.0.0.1:9", "not the address of a proxy"),
    ("SSL_CERT_FILE", "/nowhere/certificates.pem", "SSL_CERT_FILE"),
)


@pytest.mark.parametrize(("variable", "value", "told"), SURROUNDINGS, ids=lambda value: value)
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_broken_environment_is_refused_before_any_request(
    name: str, variable: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as refused:
        build_model(ModelSpec(name=name, base_url="http://127.0.0.1:1/v1", api_key=KEY))
    assert told in str(refused.value)
    assert "no key" not in str(refused.value)
    assert "secret-word" not in str(refused.value)


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"ALL_PROXY": "socks5://127.0.0.1:9"}, "socksio"),
        ({"SSL_CERT_FILE": "/nowhere.pem"}, "SSL_CERT_FILE"),
        ({"CLEW_MODEL__NAME": "groq:m"}, "pydantic-ai-slim[groq]"),
        ({"CLEW_MODEL__FALLBACK": "nonsense:m"}, "nonsense"),
        ({"CLEW_MODEL__NAME": "anthropic:m", "CLEW_MODEL__BASE_URL": ""}, "no key"),
    ],
    ids=["proxy", "certificates", "package", "fallback", "key"],
)
def test_a_gateway_is_not_ready_with_a_model_that_cannot_be_made(
    environment: dict[str, str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    at = f"http://127.0.0.1:{closed_port()}/v1"
    given = {"CLEW_MODEL__NAME": "openai-chat:m", "CLEW_MODEL__BASE_URL": at, **environment}
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert entry_point.run_command(["--home", str(tmp_path), "--set", "api.port=0", "serve"]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert told in seen.err


@pytest.mark.parametrize("key", ["sk-a-real\nsecret", "\u201csk-a-real-secret\u201d"], ids=ascii)
@pytest.mark.parametrize("args", [("chat", "hello"), ("doctor",), ("serve",)], ids=lambda a: a[0])
def test_a_key_that_cannot_be_sent_is_reported_by_every_command(
    args: tuple[str, ...],
    key: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CLEW_MODEL__NAME", "openai-chat:m")
    monkeypatch.setenv("CLEW_MODEL__BASE_URL", f"http://127.0.0.1:{closed_port()}/v1")
    monkeypatch.setenv("CLEW_MODEL__API_KEY", key)
    assert entry_point.run_command(["--home", str(tmp_path), "--set", "api.port=0", *args]) in (
        1,
        2,
    )
    told = "".join(capsys.readouterr())
    assert "model.api_key cannot be used: character" in told
    assert "ready" not in told
    assert "no connection" not in told
    assert "a-real" not in told
