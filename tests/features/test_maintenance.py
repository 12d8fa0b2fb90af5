"""Settings, checks, backups, the log, plugins and tools, of a gateway that runs."""

from __future__ import annotations

import asyncio
import json
import stat
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from websockets.sync.client import connect

from clew.config.settings import StoreSettings
from clew.core.route import Route
from clew.core.scope import LOCAL, scope_of
from clew.features.dashboard import logins
from clew.features.dashboard.settings import DashboardSettings
from clew.features.maintenance import OPERATIONS
from clew.plugin.loading import get_features
from clew.store.opening import open_store
from tests.acceptance.program import Clew
from tests.features.test_dashboard import with_dashboard
from tests.features.test_dashboard_login import own, socket_of
from tests.integration.api_server import running
from tests.waiting import PATIENCE, block_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

    from clew.core.scope import Scope
    from clew.store.contract import Tx
    from tests.integration.api_server import Server

TOKEN = "the-token-of-the-owner-0815"
CANARY = "canary-7f3a9c-which-nobody-may-see"
#: A secret by reference, one in the file, one in an open table, and one in an address.
CONFIG = f"""\
[web]
search_key = "{CANARY}-1"
search_url = "http://me:{CANARY}-2@127.0.0.1:9/search"

[telemetry]
headers = {{ authorization = "{CANARY}-3" }}

[session]
reset = "idle"
"""


@dataclass
class Operator:
    """A client with the token of a gateway, which keeps everything that it was answered."""

    url: str
    token: str | None = TOKEN
    answers: list[str] = field(default_factory=list[str])

    def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        with httpx2.Client(base_url=self.url, headers=headers, timeout=PATIENCE) as client:
            answer = client.request(method, path, **options)
        self.answers.append(answer.text)
        return answer

    def get(self, path: str, **params: Any) -> Any:
        answer = self.ask("GET", path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def send(self, method: str, path: str, **body: Any) -> Any:
        answer = self.ask(method, path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def call(self, method: str, **params: Any) -> Any:
        """The result of a method over JSON-RPC, or its error."""
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        address = f"{self.url.replace('http', 'ws', 1)}/api/ws"
        with connect(address, additional_headers=headers, open_timeout=PATIENCE) as socket:
            asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            socket.send(json.dumps(asked))
            text = str(socket.recv(timeout=PATIENCE))
        self.answers.append(text)
        answer = json.loads(text)
        return answer.get("result", answer.get("error"))

    def setting(self, name: str) -> dict[str, Any]:
        (found,) = [one for one in self.get("/api/settings")["items"] if one["name"] == name]
        return found


@contextmanager
def serving(home: Path, url: str, **env: str) -> Generator[tuple[Clew, Operator]]:
    home.mkdir(exist_ok=True)
    file = home / "config.toml"
    if not file.exists():
        file.write_text(CONFIG)
    clew = Clew(
        home,
        {
            "CLEW_MODEL__NAME": "offline",
            "CLEW_STORE__URL": url,
            "CLEW_API__TOKEN": TOKEN,
            **env,
        },
    )
    with (home / "log").open("a") as log, clew.serving(errors=log) as (address, _):
        operator = Operator(address)
        yield clew, operator
        assert all(CANARY not in text for text in operator.answers)
        assert all(TOKEN not in text for text in operator.answers)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.mark.both_databases
def test_settings_are_listed_with_value_and_origin_and_secrets_only_as_set(
    home: Path, new_store_url: str
) -> None:
    with serving(home, new_store_url, CLEW_SESSION__UNDELETE="2h") as (clew, operator):
        found = {one["name"]: one for one in operator.get("/api/settings")["items"]}
        assert operator.call("setting.list")["items"] == operator.get("/api/settings")["items"]
        shown = clew.data("config", "show")["settings"]
        assert found.keys() >= shown.keys()
        assert found["session.reset"]["value"] == "idle"
        assert found["session.reset"]["choices"] == ["none", "idle", "daily", "both"]
        assert found["session.reset"]["source"] == "file"
        assert "line" in found["session.reset"]["place"]
        assert found["session.undelete"]["source"] == "environment"
        assert found["session.undelete"]["place"] == "CLEW_SESSION__UNDELETE"
        assert found["api.port"]["maximum"] == 65535
        assert found["files.keep_days"] | {"help": ""} == {
            **found["files.keep_days"],
            "section": "files",
            "type": "whole number",
            "default": 30,
            "value": 30,
            "source": "default",
            "restart": False,
            "help": "",
        }
        secrets = {name: one["value"] for name, one in found.items() if one["secret"]}
        assert secrets["web.search_key"] == secrets["telemetry.headers"] == "set"
        assert secrets["api.token"] == "set"
        assert secrets["model.api_key"] == "not set"
        assert set(secrets.values()) == {"set", "not set"}
        assert found["channels.NAME.token"]["template"]


@pytest.mark.both_databases
def test_a_setting_is_checked_written_and_applied_now_or_at_the_next_start(
    home: Path, new_store_url: str
) -> None:
    with serving(home, new_store_url) as (clew, operator):
        done = operator.send("PUT", "/api/settings/files.keep_days", value=7)
        assert (done["applied"], done["restart"]) == (True, False)
        assert operator.setting("files.keep_days")["value"] == 7
        kept = operator.setting("files.keep_days")
        assert (kept["pending"], kept["in_file"], kept["source"]) == (False, True, "file")
        done = operator.call("setting.set", name="session.reset", value="daily")
        assert (done["applied"], done["restart"]) == (False, True)
        assert "started again" in done["note"]
        assert operator.setting("session.reset")["value"] == "idle"
        later = operator.setting("session.reset")
        assert (later["pending"], later["next"]) == (True, "daily")
        assert not operator.setting("files.keep_size")["in_file"]
        assert operator.call("config.set", key="session.idle", value="3h")["restart"]
        assert "applies now" in operator.call("config.set", key="files.keep_size", value=5)["note"]
        clew.ok("config", "set", "memory.recall", "auto")
        shown = clew.data("config", "show")["settings"]
        assert shown["files.keep_days"]["value"] == 7
        assert shown["session.reset"]["value"] == "daily"
        assert shown["session.idle"]["value"] == "3h"
        assert shown["memory.recall"]["value"] == "auto"
        operator.send("PUT", "/api/settings/session.reset", value=None)
        clew.ok("config", "unset", "memory.recall")
        shown = clew.data("config", "show")["settings"]
        assert shown["session.reset"]["origin"] == shown["memory.recall"]["origin"] == "default"
        assert stat.S_IMODE((home / "config.toml").stat().st_mode) == 0o600


def test_a_setting_that_something_else_overrides_says_so(home: Path) -> None:
    with serving(home, "sqlite:///clew.db", CLEW_FILES__KEEP_DAYS="9") as (_, operator):
        done = operator.send("PUT", "/api/settings/files.keep_days", value=7)
        assert not done["applied"]
        assert "CLEW_FILES__KEEP_DAYS counts before it" in done["note"]
        assert operator.setting("files.keep_days")["value"] == 9


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("api.port", 70000, "must be a whole number from 0 to 65535"),
        ("session.reset", "monthly", "must be one of none, idle"),
        ("files.keep_days", "seven", "must be a whole number"),
        ("compaction.keep_recent", 0.9, "must be less than compaction.threshold"),
        ("schedule.quiet_hours", "late", "must be a part of a day"),
        ("web.search_url", "http://me:********@127.0.0.1/", "stands for a password"),
    ],
)
def test_a_wrong_value_is_refused_with_its_reason_and_changes_nothing(
    home: Path, name: str, value: object, told: str
) -> None:
    with serving(home, "sqlite:///clew.db") as (_, operator):
        before = (home / "config.toml").read_text()
        answer = operator.ask("PUT", f"/api/settings/{name}", json={"value": value})
        assert answer.status_code == 400
        assert told in answer.json()["error"]["message"]
        assert "line " not in answer.json()["error"]["message"]
        assert answer.json()["error"]["param"] == "value"
        assert (home / "config.toml").read_text() == before


def test_an_unknown_setting_is_answered_with_the_nearest_one(home: Path) -> None:
    with serving(home, "sqlite:///clew.db") as (_, operator):
        answer = operator.ask("PUT", "/api/settings/session.rest", json={"value": 1})
        assert answer.status_code == 404
        assert "session.reset" in answer.json()["error"]["message"]


def test_a_secret_can_be_set_and_is_never_read_back(home: Path) -> None:
    with serving(home, "sqlite:///clew.db") as (_, operator):
        done = operator.send("PUT", "/api/settings/model.api_key", value=f"{CANARY}-4")
        assert done["restart"]
        assert f"{CANARY}-4" in (home / "config.toml").read_text()
        answer = operator.ask("PUT", "/api/settings/model.api_key", json={"value": [CANARY]})
        assert answer.status_code == 400
    with serving(home, "sqlite:///clew.db") as (_, operator):
        assert operator.setting("model.api_key")["value"] == "set"


async def misplace_turns(home: Path, url: str) -> None:
    """Let each turn begin after its first entry, while the gateway runs."""

    def misplace(t: Tx) -> None:
        t.execute("UPDATE turn SET first_seq = first_seq + 1")

    async with await open_store(url, home=home) as store:
        await store.write(misplace)


@pytest.mark.both_databases
def test_checks_run_beside_the_gateway_and_repair_what_is_certain(
    home: Path, new_store_url: str
) -> None:
    with serving(home, new_store_url) as (clew, operator):
        clew.ok("chat", "hello")
        found = operator.send("POST", "/api/checks")
        assert found["clean"]
        assert found["checked"]["conversation"] == 1
        assert found == {"left_alone": {}, **clew.data("fsck")}
        assert operator.call("check.run") == found
        assert operator.send("POST", "/api/checks/repair")["findings"] == []
        asyncio.run(misplace_turns(home, new_store_url))
        (finding,) = operator.send("POST", "/api/checks")["findings"]
        assert (finding["check"], finding["repaired"]) == ("turn-begin", False)
        assert operator.call("check.repair")["findings"] == [{**finding, "repaired": True}]
        assert operator.call("check.run")["findings"] == []


@pytest.mark.both_databases
def test_doctor_says_the_same_as_on_the_command_line(home: Path, new_store_url: str) -> None:
    with serving(home, new_store_url) as (clew, operator):
        found = operator.send("POST", "/api/doctor", offline=True)
        wanted = json.loads(clew.run("doctor", "--offline", "--json").out)
        shown = [(one["level"], one["what"]) for one in found["findings"]]
        assert shown == [(one["level"], one["what"]) for one in wanted["findings"]]
        assert found["ok"] is wanted["ok"]
        assert operator.call("doctor.run", offline=True)["findings"]


@pytest.mark.both_databases
def test_backups_are_made_verified_listed_and_can_be_restored(
    home: Path, tmp_path: Path, new_store_url: str
) -> None:
    with serving(home, new_store_url) as (clew, operator):
        clew.ok("chat", "hello")
        assert operator.get("/api/backups")["items"] == []
        made = operator.send("POST", "/api/backups")
        assert made["counts"]["conversation"] == 1
        again = operator.call("backup.create", name="evening.backup", keep=1)
        assert again["older"] == []
        operator.call("backup.create")
        found = operator.get("/api/backups")
        assert operator.call("backup.list") == found
        names = sorted(one["name"] for one in found["items"])
        assert names == ["clew.backup", "clew.backup.1", "evening.backup"]
        whole = operator.call("backup.verify", name="evening.backup")
        assert (whole["counts"], whole["taken_at"]) == (again["counts"], again["taken_at"])
        with (home / "backups" / "clew.backup.1").open("r+b") as damaged:
            damaged.seek(5000)
            damaged.write(b"?" * 8)
        answer = operator.ask("POST", "/api/backups/verify", json={"name": "clew.backup.1"})
        assert "is damaged" in answer.text
        for name in ("nothing", "../clew.db", "../backups/clew.backup"):
            answer = operator.ask("POST", "/api/backups/verify", json={"name": name})
            assert answer.status_code == 404, name
        assert stat.S_IMODE((home / "backups").stat().st_mode) == 0o700
        for name in ("../clew.db", "a/b", ".hidden", "clew.backup.1", "x.partial", ""):
            answer = operator.ask("POST", "/api/backups", json={"name": name})
            assert answer.status_code == 400, name
    (one,) = [one for one in found["items"] if one["name"] == "clew.backup"]
    assert one["restore"].endswith("--replace")
    other = Clew(tmp_path / "other")
    other.ok("restore", one["file"])
    assert other.said()[0] == ("user", "hello")


def test_the_log_is_tailed_from_a_number_on_and_by_level(home: Path) -> None:
    with serving(home, "sqlite:///clew.db") as (_, operator):
        first = operator.get("/api/log")
        assert [one["number"] for one in first["items"]] == sorted(
            one["number"] for one in first["items"]
        )
        assert any(one["event"] == "store_opened" for one in first["items"])
        assert operator.call("log.tail", after=first["last"])["items"] == []
        # An attempt to sign in with a wrong token is a warning.
        own = {"Origin": operator.url, "Sec-Fetch-Site": "same-origin"}
        address = f"{operator.url}/api/login"
        httpx2.post(address, json={"token": "wrong"}, headers=own, timeout=PATIENCE)
        block_until(lambda: operator.get("/api/log", after=first["last"])["items"])
        (told,) = operator.get("/api/log", after=first["last"], level="warning")["items"]
        assert (told["level"], told["event"]) == ("warning", "login_refused")
        assert json.loads(told["detail"])["client"] == "127.0.0.1"
        assert len(operator.get("/api/log", limit=1)["items"]) == 1
        assert operator.ask("GET", "/api/log", params={"level": "loud"}).status_code == 400


def test_no_secret_is_in_the_log_that_is_kept(home: Path) -> None:
    plugins = home / "plugins"
    plugins.mkdir(parents=True)
    leaky = f'import logging\n\nlogging.warning("the key is {CANARY}-1")\ntools = []\n'
    (plugins / "leaky.py").write_text(leaky)
    with serving(home, "sqlite:///clew.db", CLEW_TOOLS__MODULES="leaky") as (_, operator):
        told = [one["event"] for one in operator.get("/api/log", level="warning")["items"]]
        assert "the key is ********" in told
        assert operator.call("log.tail", level="warning")["items"]


def test_plugins_features_and_tools_are_listed_with_their_state(home: Path) -> None:
    plugins = home / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "garden.py").write_text('"""The garden."""\n')
    (plugins / "idle.py").write_text("raise RuntimeError\n")
    more = {"CLEW_PLUGINS__ENABLED": "garden", "CLEW_FEATURES__DISABLED": "goals"}
    with serving(home, "sqlite:///clew.db", **more) as (clew, operator):
        found = operator.get("/api/plugins")
        assert operator.call("plugin.list") == found
        states = {one["name"]: (one["kind"], one["state"]) for one in found["items"]}
        assert states["maintenance"] == ("feature", "on")
        assert states["goals"] == ("feature", "off")
        assert states["garden"] == ("plugin", "on")
        assert states["idle"] == ("plugin", "off")
        (garden,) = [one for one in found["items"] if one["name"] == "garden"]
        assert garden["about"] == "The garden."
        (web,) = [one for one in found["items"] if one["name"] == "web"]
        assert "web_fetch" in web["tools"]
        assert web["settings"] == "web"
        tools = operator.get("/api/tools")
        assert tools == operator.call("tool.list") == clew.data("tools")


def test_without_a_token_the_page_reads_everything_and_changes_nothing(home: Path) -> None:
    with serving(home, "sqlite:///clew.db", CLEW_API__TOKEN="") as (_, operator):
        operator.token = None
        assert operator.get("/api/settings")["items"]
        assert operator.send("POST", "/api/checks")["clean"]
        for method, path in (
            ("PUT", "/api/settings/files.keep_days"),
            ("POST", "/api/checks/repair"),
            ("POST", "/api/backups"),
        ):
            answer = operator.ask(method, path, json={"value": 1})
            assert answer.status_code == 400
            assert "set api.token" in answer.json()["error"]["message"]


#: Every operation of the feature, and its form over HTTP.
FORMS: dict[str, tuple[str, str, dict[str, object]]] = {
    "setting.list": ("GET", "/api/settings", {}),
    "setting.set": ("PUT", "/api/settings/files.keep_days", {"value": 3}),
    "check.run": ("POST", "/api/checks", {}),
    "check.repair": ("POST", "/api/checks/repair", {}),
    "doctor.run": ("POST", "/api/doctor", {"offline": True}),
    "backup.list": ("GET", "/api/backups", {}),
    "backup.create": ("POST", "/api/backups", {}),
    "backup.verify": ("POST", "/api/backups/verify", {"name": "clew.backup"}),
    "log.tail": ("GET", "/api/log", {}),
    "plugin.list": ("GET", "/api/plugins", {}),
    "tool.list": ("GET", "/api/tools", {}),
}


@asynccontextmanager
async def logged_in(home: Path, url: str, scope: Scope) -> AsyncGenerator[tuple[Server, str]]:
    """A gateway, and the cookie of a browser that has logged in there."""
    settings = with_dashboard(home, DashboardSettings())
    settings = replace(settings, store=StoreSettings(url=url))
    store = await open_store(url, home=home, features=get_features(settings).schemas)
    async with running(settings, opened=store) as server:
        server.http.headers.pop("authorization")
        secret = logins.make_secret()
        await server.store.write(logins.add_login, secret, scope=scope, label="test")
        yield server, f"clew-login-{server.url.rpartition(':')[2]}={secret}"


@pytest.mark.both_databases
async def test_a_login_with_the_token_may_do_everything(tmp_path: Path, store_url: str) -> None:
    assert set(FORMS) == {name for names in OPERATIONS.values() for name in names}
    async with logged_in(tmp_path, store_url, LOCAL) as (server, cookie):
        headers = {**own(server), "Cookie": cookie}
        for method, (verb, path, body) in FORMS.items():
            answer = await server.http.request(verb, path, json=body, headers=headers)
            assert answer.status_code == 200, (method, answer.text)
        both = (server.http.post("/api/checks", headers=headers) for _ in range(2))
        answers = await asyncio.gather(*both)
        assert sorted(one.status_code for one in answers) == [200, 409]


@pytest.mark.both_databases
async def test_a_client_of_one_scope_has_none_of_these_operations(
    tmp_path: Path, store_url: str
) -> None:
    guest = scope_of(Route.parse("agent:main:telegram:dm:42"))
    async with logged_in(tmp_path, store_url, guest) as (server, cookie):
        headers = {**own(server), "Cookie": cookie}
        for method, (verb, path, body) in FORMS.items():
            answer = await server.http.request(verb, path, json=body, headers=headers)
            assert answer.status_code == 404, (method, answer.text)
        async with socket_of(server, cookie, Origin=server.url) as socket:
            for method, (_, path, body) in FORMS.items():
                named = {"name": path.rpartition("/")[2]} if "value" in body else {}
                asked = {"method": method, "params": {**body, **named}}
                await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, **asked}))
                assert json.loads(await socket.recv())["error"]["code"] == -32601, method
            asked = {"method": "config.set", "params": {"key": "files.keep_days", "value": 1}}
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, **asked}))
            assert json.loads(await socket.recv())["error"]["code"] == -32601
    assert not (tmp_path / "config.toml").exists()
