"""``clew mcp login``: the browser comes back to the terminal, or the person pastes its address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2

from tests.acceptance.program import Clew
from tests.features.oauth_server import oauth_server

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.program import Process
    from tests.features.oauth_server import OAuthServer


def make_clew(home: Path, server: OAuthServer) -> Clew:
    home.mkdir(exist_ok=True)
    settings = f'[mcp.notes]\nurl = "{server.url}/mcp"\nauth = "oauth"\n'
    (home / "config.toml").write_text(settings)
    return Clew(home, {"CLEW_MODEL__NAME": "offline", "BROWSER": "/bin/true"})


def follow_link(process: Process) -> str:
    """Return the address to which the browser of somebody is sent who allows everything."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("http"):
            return httpx2.get(line.strip(), timeout=60).headers["location"]
    raise AssertionError("there is no link")


def test_the_browser_comes_back_to_the_program_that_waits(tmp_path: Path) -> None:
    with oauth_server() as server:
        clew = make_clew(tmp_path / "home", server)
        before = clew.run("mcp", "test", "notes")
        assert (before.code, "clew mcp login notes" in before.out) == (1, True)
        with clew.started("mcp", "login", "notes") as process:
            address = follow_link(process)
            assert (
                httpx2.get(address.replace("/mcp/callback", "/else"), timeout=60).status_code == 404
            )
            strange = address.partition("state=")[0] + "state=other"
            assert httpx2.get(strange, timeout=60).status_code == 400
            assert httpx2.get(address, timeout=60).status_code == 200
            assert process.stdout is not None
            assert process.stdout.read() == "Logged in at notes: it has 1 tools.\n"
            assert process.wait(60) == 0
        assert "add" in clew.ok("mcp", "test", "notes")


def test_an_address_is_pasted_where_the_browser_is_elsewhere(tmp_path: Path) -> None:
    with oauth_server() as server:
        clew = make_clew(tmp_path / "home", server)
        with clew.started("mcp", "login", "notes", "--paste", piped=True) as process:
            address = follow_link(process)
            assert process.stdin is not None
            process.stdin.write(f"{address}\n")
            process.stdin.flush()
            assert process.wait(60) == 0
        refused = clew.run("mcp", "login", "notes", "--paste", text="http://x/?error=denied\n")
        assert refused.code == 2
        assert "the login was refused: denied" in refused.err
        unknown = clew.run("mcp", "login", "nobody")
        assert (unknown.code, "there are notes" in unknown.err) == (2, True)
