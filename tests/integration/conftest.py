"""Fixtures of integration tests: how do integration tests run calls without a worker?"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection
from opentelemetry.instrumentation.django import DjangoInstrumentor
from psycopg import sql

from access.budgets.lines import BudgetLine, lines_for
from invocations import request_tallies
from invocations.sandbox.base import RunOutcome, RunStatus
from tests.conftest import make_caller
from tests.support.budgets import NOON, TOOL
from tests.support.calls import Bell, ScriptedSandbox, run_calls_here, run_calls_in
from tests.support.chains import TEXT
from tests.support.dependencies import FIRST, build_all, enabled
from tests.support.migrated_databases import copy_migrated_sqlite, find_migrated_postgresql
from tests.support.populated_tenant import Things, make_publisher, make_things
from tests.support.request_ways import MCP_WAYS_IN, WAYS_IN, take_way
from tests.support.response_recorder import answered
from tests.support.shared_rows import calls_run_here, rows_of_a_module
from tests.support.wheels import line, make_wheel, sha256_of
from unitools import checks
from unitools.checks import consistency

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from registry.models import ToolVersion
    from tests.conftest import Caller, Person


@pytest.fixture(autouse=True)
def everything_has_a_name(request: pytest.FixtureRequest) -> Iterator[None]:
    """No caller gets an error that the hub does not know by name, but in tests that provoke one: those are marked ``unmapped``."""
    with answered() as found:
        yield
    assert bool(found.nameless()) is (request.node.get_closest_marker("unmapped") is not None), found.nameless()
    assert [body for *_, body in found.problems if not body["error"].get("remedy")] == []
    assert found.undocumented() == set()


@pytest.fixture(autouse=True)
def minute_s(monkeypatch: pytest.MonkeyPatch) -> int:
    """Seconds of a minute; for the test it has many more, so that what it counts is one tally, however slow the machine."""
    real = request_tallies.MINUTE_S
    monkeypatch.setattr(request_tallies, "MINUTE_S", timedelta(days=3650) // timedelta(seconds=1))
    return real


@pytest.fixture
def helper(caller: Caller, operator: Person) -> Caller:
    return make_caller(operator.by, "helper")


@pytest.fixture
def third(caller: Caller, operator: Person) -> Caller:
    return make_caller(operator.by, "third")


@pytest.fixture
def bell(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Bell:
    """Calls run in the thread of who waits for them, in the sandbox of the tests."""
    return run_calls_here(monkeypatch, settings)


@pytest.fixture(scope="module")
def shared_rows(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """What is written in it, as by ``populated``, is made once for the tests of a module."""
    with rows_of_a_module(django_db_blocker):
        yield


@pytest.fixture(scope="module")
def populated(shared_rows: None) -> Things:
    """A tenant that has one of everything, and a publisher beside it."""
    with calls_run_here():
        make_publisher()
        return make_things("populated")


@pytest.fixture(scope="module")
def populated_twins(shared_rows: None) -> tuple[Things, Things]:
    """Two that have the same things by the same names."""
    with calls_run_here():
        make_publisher()
        return make_things("quokka"), make_things("wombat")


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> ScriptedSandbox:
    found = ScriptedSandbox()
    run_calls_in(found, monkeypatch)
    return found


@pytest.fixture
def scripted(sandbox: ScriptedSandbox) -> dict[str, Any]:
    """``scripted[text]``: what the tool makes of a text, a value or an outcome, or a list with one for each time. Otherwise the text
    comes back with a ``+``.
    """
    said: dict[str, Any] = {}

    def answer() -> None:
        text = json.loads(sandbox.calls[-1][1].arguments)["text"]
        found = said.get(text, {"text": f"{text}+"})
        found = found.pop(0) if isinstance(found, list) else found
        sandbox.outcome = found if isinstance(found, RunOutcome) else RunOutcome(RunStatus.OK, value=found, report={})

    sandbox.during = answer
    return said


@pytest.fixture
def chainable(enable: Callable[..., Any], grant: Callable[..., Any]) -> None:
    """The echo tool promises the text that a later step may use; the caller may call all tools."""
    enable("echo", output_schema=TEXT)
    grant()


@pytest.fixture
def ready_for_models(
    enable: Callable[..., Any],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    scripted: dict[str, Any],
) -> ScriptedSandbox:
    """The echo tool may be called; it answers its text with a ``+``."""
    enable()
    grant()
    return sandbox


@pytest.fixture
def lines(caller: Caller) -> Callable[..., list[BudgetLine]]:
    """``lines(now, tool)``: the budgets that a call of the caller counts against."""

    def make(now: datetime = NOON, tool: str = TOOL) -> list[BudgetLine]:
        return lines_for(tenant_id=caller.by.tenant_id, agent_id=caller.agent.pk, tool=tool, grant_id=None, now=now)

    return make


@pytest.fixture
def wheels(tmp_path: Path, settings: Any) -> Path:
    """The wheelhouse, with a package that brings another one; what is built lies in ``tmp_path/deps``."""
    settings.TOOLHUB_WHEELHOUSE = str(tmp_path / "wheels")
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "deps")
    make_wheel(tmp_path / "wheels", "first", requires=["second"])
    make_wheel(tmp_path / "wheels", "second")
    return tmp_path / "wheels"


@pytest.fixture
def lock(wheels: Path) -> list[str]:
    """The lock of that package, as an author would give it."""
    return [line(name, sha256_of(wheels, name)) for name in ("first", "second")]


@pytest.fixture
def ready(submit: Callable[..., ToolVersion], operator: Person, lock: list[str]) -> ToolVersion:
    """A version of the echo tool whose dependencies are installed."""
    version = submit(dependencies=FIRST, dependency_lock=lock)
    enabled(version, operator)
    build_all()
    return version


@pytest.fixture
def empty_database(tmp_path: Path) -> Iterator[str]:
    if connection.vendor == "sqlite":
        yield str(tmp_path / "older.sqlite3")
        return
    with _database_on_the_server(f"toolhub_older_{os.getpid()}", like="template1") as name:
        yield name


@pytest.fixture
def begun_database(tmp_path: Path) -> Iterator[str]:
    """One to migrate: empty, or a copy of one that is migrated."""
    if connection.vendor == "sqlite":
        copy_migrated_sqlite(tmp_path / "begun.sqlite3")
        yield str(tmp_path / "begun.sqlite3")
        return
    migrated = urlsplit(find_migrated_postgresql()).path[1:]
    with _database_on_the_server(f"toolhub_begun_{os.getpid()}", like=migrated or "template1") as name:
        yield name


@contextmanager
def _database_on_the_server(name: str, *, like: str) -> Iterator[str]:
    server = os.environ["TOOLHUB_TEST_DATABASE_URL"].rpartition("/")[0] + "/postgres"
    with psycopg.connect(server, autocommit=True) as admin:
        names = map(sql.Identifier, (name, like))
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
        yield name
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def registered_before_its_sunset(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was registered when the day still lay ahead."""
    rules = tuple(each for each in checks.CHECKS if each is not consistency.check_deprecations)
    monkeypatch.setattr(checks, "CHECKS", rules)


@pytest.fixture
def instrumented() -> Iterator[None]:
    """Requests are traced as in the processes of the hub."""
    instrumentor = DjangoInstrumentor()
    was = instrumentor.is_instrumented_by_opentelemetry
    instrumentor.instrument()
    yield
    if not was:
        instrumentor.uninstrument()


@pytest.fixture(params=WAYS_IN)
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test clients by the door, by direct routes, and past both."""
    take_way(request.param, monkeypatch)


@pytest.fixture(params=MCP_WAYS_IN)
def each_mcp_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages over MCP in plain exchanges where they are plain, and all by the SDK's transport."""
    take_way(request.param, monkeypatch)
