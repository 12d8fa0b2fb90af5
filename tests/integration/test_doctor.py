"""The checks of ``clew doctor``, one by one."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from clew.agent.models import ModelSpec, build_model, close_models_on_exit
from clew.agent.probe import probe_model
from clew.cli import entry_point
from clew.cli.doctor_checks import host
from clew.cli.doctor_checks import store as store_checks
from clew.cli.setup_wizard.connection_check import ConnectionTarget, check_connection_sync
from clew.clock import SystemClock
from clew.config.settings import ApiSettings
from clew.core.byte_size import format_size
from clew.core.doctor_finding import FindingLevel
from clew.core.ids import ConversationId, OwnerId, new_session_id
from clew.core.route import local_route
from clew.store.opening import open_store
from clew.store.sqlite.integrity import quick_check
from clew.store.sqlite.opening import JOURNAL_LIMIT
from clew.store.transactions import inbox, owners
from clew.testing import CutStream, Fail, FakeProvider, Hang, Html, Text, echo
from tests.contract.acting import begin, message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from datetime import datetime
    from pathlib import Path

    from clew.core.doctor_finding import DoctorFinding
    from clew.store.contract import Store, Tx
    from clew.testing import Reply

Found = dict[str, list[dict[str, Any]]]


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Found]:
    """Run it with arguments and settings; the findings by what they are about."""

    def run(*args: str, code: int = 0, **settings: str) -> Found:
        defaults = {"model__name": "offline", "api__port": "0"}
        given = {name.replace("__", "."): text for name, text in {**defaults, **settings}.items()}
        flags = [part for name, text in given.items() for part in ("--set", f"{name}={text}")]
        capsys.readouterr()
        assert (
            entry_point.run_command(["--home", str(tmp_path), *flags, "doctor", *args, "--json"])
            == code
        )
        answer = json.loads(capsys.readouterr().out)
        assert answer["ok"] == (code == 0)
        found: Found = {}
        for finding in answer["findings"]:
            found.setdefault(finding["what"], []).append(finding)
        return found

    tmp_path.chmod(0o700)
    return run


@pytest.fixture
async def store(store_url: str, tmp_path: Path) -> AsyncGenerator[Store]:
    async with await open_store(store_url, home=tmp_path) as found:
        yield found


def made(home: Path) -> Path:
    """A store's file, with something in it."""

    async def fill() -> None:
        async with await open_store("sqlite:///clew.db", home=home) as store:
            for number in range(200):
                await store.write(said, f"cnv_{number}")

    asyncio.run(fill())
    return home / "clew.db"


def said(t: Tx, conversation: str) -> None:
    """An input that a turn of ``own_me`` consumes."""
    inbox.accept_input(
        t,
        message(f"inb_{conversation}"),
        target=local_route(conversation.replace("_", "-")),
        new_conversation=ConversationId(conversation),
        session_ids=new_session_id,
    )
    begin(t, turn=f"trn_{conversation}", of=conversation)


def levels(found: Found) -> set[str]:
    return {finding["level"] for findings in found.values() for finding in findings}


def test_files_that_others_may_read_are_named_and_closed_on_demand(
    told: Callable[..., Found], tmp_path: Path
) -> None:
    database, config = made(tmp_path), tmp_path / "config.toml"
    config.write_text("")
    loose = {tmp_path: 0o755, config: 0o644, database: 0o664, tmp_path / "run": 0o750}
    for path, mode in loose.items():
        path.chmod(mode)
    named = told(code=1)["home"][0]
    assert "(0755)" in named["detail"]
    assert "1 more" in named["detail"]
    assert named["fix"] == "clew doctor --fix"
    assert {path: path.stat().st_mode & 0o777 for path in loose} == loose
    assert "fail" not in levels(told("--fix"))
    assert {path.stat().st_mode & 0o777 for path in loose} == {0o700, 0o600}


def test_every_wrong_setting_is_named(told: Callable[..., Found], tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[api]\nprot = 1\n[sesion]\nreset = "x"\n')
    found = told("--fix", code=1)
    details = " ".join(each["detail"] for each in found["settings"])
    assert "prot" in details
    assert "sesion" in details
    assert "store" not in found


def test_a_secret_that_is_not_there_is_named(told: Callable[..., Found], tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[api]\ntoken = { env = "CLEW_NO_SUCH" }\n')
    assert "CLEW_NO_SUCH" in told("--fix", code=1)["settings"][0]["detail"]


def test_a_warning_of_the_settings_is_one_here(told: Callable[..., Found], tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[api]\ntoken = "s3cret"\n')
    config.chmod(0o644)
    found = told(code=1)
    assert [each["level"] for each in found["settings"]] == ["warn"]


def test_a_model_is_asked_unless_offline_and_its_stand_ins_too(
    told: Callable[..., Found],
) -> None:
    with FakeProvider(echo) as provider:
        model = {"model__name": "openai-chat:fake-model", "model__base_url": provider.openai_url}
        assert told(**model)["model"][0]["detail"].endswith("answers")
        assert len(provider.requests) == 1
        found = told("--offline", model__fallback="offline", **model)
        assert [each["level"] for each in found["model"] + found["stand-in"]] == ["ok", "ok"]
        assert len(provider.requests) == 1


def test_a_model_that_does_not_answer_is_reported_without_its_key(
    told: Callable[..., Found],
) -> None:
    body = {"error": {"message": "bad key sk-very-secret-1"}}
    with FakeProvider(lambda request: Fail("authentication", body=body)) as provider:
        found = told(
            code=1,
            model__name="openai-chat:fake-model",
            model__base_url=provider.openai_url,
            model__api_key="sk-very-secret-1",
        )
    assert "bad key ********" in found["model"][0]["detail"]
    assert "model.api_key" in found["model"][0]["fix"]


@pytest.mark.parametrize("reply", [Fail("server"), CutStream(), Html(status=200)])
def test_a_server_whose_streams_are_broken_does_not_pass(
    told: Callable[..., Found], reply: Reply
) -> None:
    with FakeProvider(lambda request: reply if request.stream else Text("ok")) as provider:
        model = {"model__name": "openai-chat:fake-model", "model__base_url": provider.openai_url}
        found = told(code=1, compaction__model="openai-chat:small", **model)
        choice = ConnectionTarget(
            name="openai-chat:fake-model",
            base_url=provider.openai_url,
            key=None,
            key_location="",
        )
        assert check_connection_sync(choice) is not None
    assert found["model"][0]["level"] == "fail"
    # Summaries come in one piece.
    assert found["summariser"][0]["level"] == "ok"


def test_a_model_that_cannot_be_built_is_named(told: Callable[..., Found]) -> None:
    assert "nobody:x" in told("--offline", code=1, model__name="nobody:x")["model"][0]["detail"]


def test_every_model_that_the_settings_name_is_looked_at(told: Callable[..., Found]) -> None:
    with FakeProvider(echo) as provider:
        found = told(
            "--offline",
            code=1,
            model__name="openai-chat:fake-model",
            model__base_url=provider.openai_url,
            compaction__model="openai-chat:small",
            session__title_model="cohere:x",
            goals__judge="cohere:y",
            providers__qqq__api_key="k",
        )
    assert found["summariser"][0]["level"] == "ok"
    assert "session.title_model 'cohere:x' needs" in found["titler"][0]["detail"]
    assert "goals.judge 'cohere:y' needs" in found["goals.judge"][0]["detail"]
    assert "[providers.qqq]" in found["providers"][0]["detail"]


async def test_a_model_that_says_nothing_is_not_waited_for_long() -> None:
    with FakeProvider(lambda request: Hang()) as provider:
        spec = ModelSpec(name="openai-chat:fake-model", base_url=provider.openai_url)
        async with close_models_on_exit():
            failure = await probe_model(build_model(spec), patience=0.2)
    assert failure is not None
    assert "said nothing" in failure.text


def test_a_port_is_free_or_ours_or_anothers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        anothers = host.check_port(ApiSettings(port=number))
    assert anothers.level is FindingLevel.FAIL
    assert str(number) in anothers.detail
    assert host.check_port(ApiSettings(port=number)).level is FindingLevel.OK
    assert host.check_port(ApiSettings(host="192.0.2.1", port=number)).level is FindingLevel.FAIL
    assert (
        host.check_port(ApiSettings(host="no.such.host.invalid", port=1)).level is FindingLevel.FAIL
    )


def test_a_damaged_file_is_reported_and_left_as_it_is(
    told: Callable[..., Found], tmp_path: Path
) -> None:
    database = made(tmp_path)
    raw = bytearray(database.read_bytes())
    for page in range(len(raw) // 4096 // 2, len(raw) // 4096, 3):
        raw[page * 4096 : page * 4096 + 200] = bytes(range(200))
    database.write_bytes(raw)
    found = told(code=1)
    damage = [each for each in found["store"] + found.get("integrity", []) if each["fix"]]
    assert "backup" in damage[0]["fix"]
    assert database.read_bytes() == bytes(raw)


def test_a_foreign_file_is_reported_and_left_alone(
    told: Callable[..., Found], tmp_path: Path
) -> None:
    (tmp_path / "clew.db").write_text("no database at all, but some text " * 50)
    (tmp_path / "clew.db").chmod(0o600)
    assert "not a database" in told(code=1)["store"][0]["detail"]


def test_looking_through_the_pages_ends_in_time(tmp_path: Path) -> None:
    made(tmp_path)

    async def look(seconds: float) -> list[str] | None:
        async with await open_store("sqlite:///clew.db", home=tmp_path) as store:
            found = await store.read(quick_check, seconds=seconds)
            assert await store.read(quick_check, seconds=60) == []
            return found

    assert asyncio.run(look(-1)) is None
    assert asyncio.run(look(60)) == []


@pytest.mark.postgres
def test_a_server_is_listed_with_its_capabilities(
    told: Callable[..., Found], postgres_url: str
) -> None:
    found = told(store__url=postgres_url)
    assert "no synchronous stand-by" in found["stand-by"][0]["detail"]
    assert "fsync is off" in found["durability"][0]["detail"]
    assert "lacks" in found["store"][0]["detail"]
    assert "processes" not in found


@pytest.mark.postgres
def test_a_server_that_is_not_there_is_reported(told: Callable[..., Found]) -> None:
    url = "postgresql://nobody:s3cret@127.0.0.1:1/none"
    found = told(code=1, store__url=url)
    assert "127.0.0.1" in found["store"][0]["detail"]
    assert "s3cret" not in json.dumps(found)


async def test_locks_of_a_dead_process_are_reported(store: Store) -> None:
    assert [each.level for each in await _processes(store)] == [FindingLevel.OK, FindingLevel.OK]
    await store.write(said, "cnv_1")
    found = await _processes(store)
    assert found[1].level is FindingLevel.WARN
    assert "1 conversation" in found[1].detail
    assert found[1].fix is not None
    assert "clew serve" in found[1].fix


async def test_a_process_of_another_version_is_reported(store: Store) -> None:
    await store.register_owner("own_1")
    await store.write(
        owners.register_owner, OwnerId("own_1"), host="here", pid=7, role="serve", version="0.0.1"
    )
    found = await _processes(store)
    assert found[0].level is FindingLevel.WARN
    assert "serve 0.0.1, pid 7 on here" in found[0].detail


async def _processes(store: Store) -> list[DoctorFinding]:
    return [finding async for finding in store_checks.check_processes(store)]


async def test_clocks_that_differ_are_reported(store_url: str, tmp_path: Path) -> None:
    for shift, word in ((-3600, "behind"), (3600, "ahead of")):
        async with await open_store(store_url, home=tmp_path, clock=Shifted(shift)) as store:
            found = await store_checks.check_clocks(store)
        assert found.level is FindingLevel.WARN
        assert f"3600 s {word}" in found.detail or f"3599 s {word}" in found.detail


async def test_an_entry_of_the_future_is_reported(store_url: str, tmp_path: Path) -> None:
    async with await open_store(store_url, home=tmp_path, clock=Shifted(7200)) as store:
        await store.write(said, "cnv_1")
    async with await open_store(store_url, home=tmp_path) as store:
        found = await store_checks.check_clocks(store)
    assert found.level is FindingLevel.WARN
    assert "in the future" in found.detail


class Shifted(SystemClock):
    """A clock that is wrong by so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._shift = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return super().now() + self._shift


async def test_a_damaged_index_and_one_that_is_behind_are_reported(store: Store) -> None:
    await store.write(said, "cnv_1")
    assert (await store_checks.check_search_index(store)).detail.endswith("are not in it yet")
    await store.write(_break)
    found = await store_checks.check_search_index(store)
    assert found.level is FindingLevel.WARN
    assert "damaged" in found.detail


def _break(t: Tx) -> None:
    t.execute("UPDATE search_state SET is_broken = 1")


def test_a_log_that_is_not_written_back_is_reported(tmp_path: Path) -> None:
    database = made(tmp_path)
    assert store_checks.check_file_size(database).level is FindingLevel.OK
    with (tmp_path / "clew.db-wal").open("wb") as log:
        log.truncate(3 * JOURNAL_LIMIT)
    assert store_checks.check_file_size(database).level is FindingLevel.WARN


def test_a_store_without_wal_and_an_old_sqlite_are_reported(
    told: Callable[..., Found], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text("21 1 0:5 / / rw - virtiofs root rw\n")
    monkeypatch.setattr("clew.store.sqlite.filesystems.MOUNTS", mounts)
    made(tmp_path)
    (journal,) = told()["journal"]
    assert journal["level"] == "warn"
    assert "virtiofs" in journal["detail"]
    monkeypatch.setattr(store_checks, "sqlite_version", lambda: "3.40.1")
    (sqlite,) = told(code=1)["sqlite"]
    assert "upgrade apsw" in sqlite["detail"]


def test_sizes_are_formatted_for_people() -> None:
    assert [format_size(n) for n in (0, 1023, 1536, 20 * 1024, 5 * 1024**3)] == [
        "0 bytes",
        "1023 bytes",
        "1.5 KB",
        "20 KB",
        "5 GB",
    ]


def test_people_get_lines_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o755)
    assert (
        entry_point.run_command(
            ["--home", str(tmp_path), "--set", "api.port=0", "doctor", "--offline"]
        )
        == 1
    )
    told = capsys.readouterr()
    assert "to do: clew doctor --fix" in told.out
    assert "1 to fix" in told.err
