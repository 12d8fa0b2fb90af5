"""Fixtures for every test: the databases, the event loop, and how much hypothesis explores."""

from __future__ import annotations

import gc
import os
import shutil
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, settings

from clew.agent import known_secrets
from clew.cli.entry_point import EXIT_LIMIT
from clew.cli.gateway import SHUTDOWN_LIMIT
from clew.core.redaction import Redactor
from tests import declared, forking, in_turn, postgres, sent, tool_schemas
from tests.databases import Databases, make_migrated_file
from tests.in_turn import pytest_addoption
from tests.sent import watching

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = ["pytest_addoption"]

#: The variable with the folder of the run's PostgreSQL server.
HOME = "CLEW_TEST_POSTGRES_HOME"

settings.register_profile(
    "dev",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    # ``HYPOTHESIS_PROFILE=explore`` seeks for longer.
    max_examples=30,
)
# A red run should be the doing of the change at hand; new examples are sought at the desk.
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.register_profile("explore", settings.get_profile("dev"), max_examples=5000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the run's PostgreSQL home, once, in the process that starts the workers."""
    # What is imported and collected stays: to look for garbage in it is in vain.
    gc.disable()
    # Tracebacks with the values of all locals take seconds, in which an event loop stands still.
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])
    watching.observe()
    declared.observe()
    tool_schemas.keep()
    config.addinivalue_line(
        "markers", "unequal(why): what it sends cannot be made again from the store"
    )
    config.addinivalue_line("markers", f"{in_turn.MARK}: runs on both databases in every run")
    if hasattr(config, "workerinput"):
        return
    stack = ExitStack()
    config.add_cleanup(stack.close)
    os.environ[HOME] = str(stack.enter_context(postgres.home()).folder)
    _trust_nobody(Path(os.environ[HOME]) / "no_certificates")
    if config.getoption("numprocesses", default=None):
        forking.share()


def _trust_nobody(folder: Path) -> None:
    """Each client and process reads all certificates for 20 ms, and none asks a real provider."""
    folder.mkdir()
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = str(folder)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before the order is made random."""
    in_turn.keep_one_each(config, items)


def pytest_collection_finish() -> None:
    """Collect garbage of the tests alone, and less often than is made for small programs."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Those who ended with the last test ask no more; their stores and secrets are gone."""
    watching.forget()
    # The keys of one test may be ordinary words of the next.
    known_secrets._known_secrets.clear()  # pyright: ignore[reportPrivateUsage]
    known_secrets._redactor[0] = Redactor(())  # pyright: ignore[reportPrivateUsage]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Compare what a test has had sent with what is stored, before its stores go."""
    try:
        yield
    except BaseException:
        watching.taken()
        raise
    sent.compare(item)
    declared.check()
    # They would end this process, seconds later, in the middle of another test.
    assert not {SHUTDOWN_LIMIT, EXIT_LIMIT} & {one.name for one in threading.enumerate()}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests counted and recorded as ``summary``, from all workers."""
    compared: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        compared += sent.counted(report.user_properties)
        for name, value in report.user_properties:
            if name == "summary":
                terminalreporter.write_line(str(value))
    if compared:
        terminalreporter.write_line(sent.summary(compared))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The URL, without a database, of this run's own PostgreSQL; starts it when first asked for."""
    return postgres.Home(folder=Path(os.environ[HOME])).url()


@pytest.fixture(scope="session")
def postgres_databases(postgres_server: str) -> Databases:
    return Databases(postgres_server)


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of a fresh, empty PostgreSQL database."""
    with postgres.database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite store that holds nothing yet: to copy it costs a fifth of making one."""
    home = tmp_path_factory.mktemp("migrated")
    return make_migrated_file(home)


EITHER = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=EITHER)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store that holds nothing: the test runs once on SQLite, once on PostgreSQL."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("migrated_file"), tmp_path / "clew.db")
        yield f"sqlite:///{tmp_path}/clew.db"
        return
    databases: Databases = request.getfixturevalue("postgres_databases")
    with databases.migrated() as url:
        yield url


@pytest.fixture(params=EITHER)
def new_store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that nobody opened yet, on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/clew.db"
    url: str = request.getfixturevalue("postgres_url")
    return url
