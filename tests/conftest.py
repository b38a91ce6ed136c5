"""The cast: who appears in the tests, and what they may do."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.test import Client, TransactionTestCase
from hypothesis import settings

import toolhub.celery  # noqa: F401  sets the application that services send with
from access import services as access
from access.roles import ROLE_PERMISSIONS, SCOPES, Role
from invocations.sandbox.factory import current_sandbox
from kernel.ids import encode_user
from kernel.principal import ActorKind, Principal
from registry.dependencies import process_runner
from registry.models import Decision
from registry.versions import services as registry
from tests.support.begin_end_pairs import seen, unlike_their_narrow_rows, without_their_pair
from tests.support.cast_rows import write_person, write_tenant
from tests.support.database_reset import teardown_of_tables
from tests.support.enabled_tools import write_enabled_tool
from tests.support.manifests import manifest
from tests.support.migrated_databases import copy_migrated_sqlite, find_migrated_postgresql
from tests.support.request_ways import take_ways_of_web_server
from tests.support.savepoints import without_savepoints
from toolhub.embedded_mode import worker_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from access.models import Agent, Tenant
    from registry.models import Tool, ToolVersion

take_ways_of_web_server()
TransactionTestCase._fixture_teardown = teardown_of_tables  # type: ignore[attr-defined]
# Calls go before what is built for tools. Beside tests that compute it got a twentieth of a processor, and its test waited.
process_runner.NICENESS = 0


def pytest_configure(config: pytest.Config) -> None:
    """Generated examples are the same each time, so that a change is refused for what it changed; `make test-all` looks at new ones,
    and at more. A shared machine may pause in the middle of one, which says nothing about the code."""
    is_whole = not config.option.markexpr
    examples = 100 if is_whole else 25
    settings.register_profile("toolhub", deadline=None, derandomize=not is_whole, max_examples=examples)
    settings.load_profile("toolhub")


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Until all is collected next to nothing becomes garbage, and looking for it takes a tenth of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What is imported and collected stays to the end: the garbage collector looks at what comes after it, and less often."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 10)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Each call of each test has its pair (tests/support/begin_end_pairs.py)."""
    result = yield
    uses = set(getattr(item, "fixturenames", ())) & {"db", "transactional_db"} or item.get_closest_marker("django_db")
    if uses and not item.get_closest_marker("unpaired") and not connection.needs_rollback:
        assert without_their_pair() == []
        assert unlike_their_narrow_rows() == []
    return result


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line("Pairs: {calls} calls and {chains} chains in {tests} tests have theirs.".format(**seen))


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Whether the database of the tests is there before them: on SQLite a copy of the migrated one. PostgreSQL copies it itself."""
    chosen = connection.settings_dict["TEST"]
    if connection.vendor == "sqlite":
        return copy_migrated_sqlite(Path(chosen["NAME"]))
    if template := find_migrated_postgresql():
        chosen["TEMPLATE"] = urlsplit(template).path[1:]
    return False


@dataclass(frozen=True, slots=True)
class Person:
    user: Any
    by: Principal

    def client(self) -> Client:
        client = Client()
        client.force_login(self.user)
        return client


@dataclass(frozen=True, slots=True)
class Caller:
    """An agent with a key."""

    agent: Agent
    key: str
    by: Principal

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def post(self, path: str, body: Any, **headers: str) -> Any:
        return Client().post(f"/api/v1{path}", body, content_type="application/json", headers=self.headers() | headers)

    def ask(self, path: str, body: Any, **headers: str) -> Any:
        """In a served format, at the root."""
        return Client().post(path, body, content_type="application/json", headers=self.headers() | headers)

    def fetch(self, path: str, **headers: str) -> Any:
        """At the root, as :meth:`ask`."""
        return Client().get(path, headers=self.headers() | headers)

    def get(self, path: str, **headers: str) -> Any:
        return Client().get(f"/api/v1{path}", headers=self.headers() | headers)

    def put(self, path: str, body: Any, **headers: str) -> Any:
        asked = self.headers() | headers
        return Client().put(f"/api/v1{path}", body, content_type="application/json", headers=asked)

    def patch(self, path: str, body: Any) -> Any:
        return Client().patch(f"/api/v1{path}", body, content_type="application/json", headers=self.headers())

    def delete(self, path: str) -> Any:
        return Client().delete(f"/api/v1{path}", headers=self.headers())

    def invoke(self, tool: str, arguments: Any, headers: dict[str, str] | None = None, **envelope: Any) -> Any:
        body = {
            "request_id": "test-request-1",
            "actor": {"type": "agent", "id": self.agent.name},
            "arguments": arguments,
            **envelope,
        }
        return self.post(f"/tools/{tool}/invoke", body, **(headers or {}))


@pytest.fixture
def tenant(db: None) -> Tenant:
    return write_tenant(slug="acme", name="Acme")


@pytest.fixture
def foreign_tenant(db: None) -> Tenant:
    return write_tenant(slug="foreign", name="Foreign")


def make_person(tenant: Tenant, username: str, *roles: Role) -> Person:
    user = write_person(tenant, username, roles)
    return Person(user, principal_with(tenant, user, *roles))


def principal_with(tenant: Tenant, user: Any, *roles: Role) -> Principal:
    """What :func:`access.middleware.principal_of_user` says of somebody with these roles (test_people.py holds one against the other).
    Thousands of people are made for the tests, and half of what each took was to ask guardian."""
    allowed = frozenset(each for role in roles for each in ROLE_PERMISSIONS[role])
    name = user.get_full_name() or user.get_username()
    return Principal(kind=ActorKind.USER, id=encode_user(user.pk), name=name, tenant_id=tenant.pk, allowed=allowed)


@pytest.fixture
def operator(tenant: Tenant) -> Person:
    return make_person(tenant, "olivia", Role.OPERATOR)


@pytest.fixture
def second_operator(tenant: Tenant) -> Person:
    return make_person(tenant, "oscar", Role.OPERATOR)


@pytest.fixture
def auditor(tenant: Tenant) -> Person:
    return make_person(tenant, "aaron", Role.AUDITOR)


@pytest.fixture
def developer(tenant: Tenant) -> Person:
    return make_person(tenant, "dana", Role.DEVELOPER)


@pytest.fixture
def stranger(foreign_tenant: Tenant) -> Person:
    """An operator of another tenant."""
    return make_person(foreign_tenant, "sten", Role.OPERATOR)


@without_savepoints()
def make_caller(by: Principal, name: str = "assistant", scopes: tuple[str, ...] = tuple(SCOPES)) -> Caller:
    agent = access.create_agent(name=name, by=by)
    # By nobody: a person gives only scopes for what they may do.
    key, text = access.create_key(agent=agent, scopes=scopes, by=Principal.system("test", tenant_id=by.tenant_id))
    principal = Principal(
        kind=ActorKind.AGENT,
        id=agent.wire_id,
        name=name,
        tenant_id=by.tenant_id,
        allowed=frozenset(scopes),
        agent_id=agent.pk,
        key_id=key.pk,
    )
    return Caller(agent, text, principal)


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """Made by nobody of the cast: who makes an agent cannot approve what it asks for."""
    return make_caller(Principal.system("test", tenant_id=tenant.pk))


@pytest.fixture
def foreign_caller(stranger: Person) -> Caller:
    return make_caller(stranger.by, "foreign-assistant")


@pytest.fixture
def submit(developer: Person) -> Callable[..., ToolVersion]:
    """``submit(name="echo", **changes)`` registers one of the sample tools (tests/tools/sample)."""

    def make(name: str = "echo", **changes: Any) -> ToolVersion:
        return registry.submit_version(document=manifest(name, **changes), by=developer.by)

    return make


@pytest.fixture
def enable_by_review(
    submit: Callable[..., ToolVersion], operator: Person, second_operator: Person
) -> Callable[..., Tool]:
    """``enable_by_review(name="echo", **changes)``: submitted, reviewed (by two for High) and enabled, with the facts of all that."""

    def make(name: str = "echo", **changes: Any) -> Tool:
        version = submit(name, **changes)
        reviewers = [operator, second_operator] if version.safety_class == "High" else [operator]
        for reviewer in reviewers:
            registry.review_version(
                version_id=version.pk,
                decision=Decision.APPROVE,
                note="",
                acknowledged=[change["id"] for change in version.changes],
                by=reviewer.by,
            )
        return registry.enable_tool(name=version.tool.name, version_id=version.pk, reason="for a test", by=operator.by)

    return make


@pytest.fixture
def enable(
    enable_by_review: Callable[..., Tool], developer: Person, operator: Person, second_operator: Person
) -> Callable[..., Tool]:
    """``enable(name="echo", **changes)``: a tool that can be called, without the facts of how it came about."""

    def make(name: str = "echo", **changes: Any) -> Tool:
        made = write_enabled_tool(
            manifest(name, **changes),
            developer=developer.by,
            reviewers=[operator.by, second_operator.by],
            operator=operator.by,
        )
        return made or enable_by_review(name, **changes)

    return make


@pytest.fixture
def grant(caller: Caller, operator: Person) -> Callable[..., Any]:
    """``grant(tools="sample.*", **more)`` gives the caller a grant."""

    def make(tools: str = "sample.*", **more: Any) -> Any:
        return access.give_grant(agent_id=caller.agent.pk, tools=tools, reason="for a test", by=operator.by, **more)

    return make


@pytest.fixture
def worker(transactional_db: None) -> Iterator[None]:
    """The threads that run calls in the embedded default. For tests in which calls really run."""
    with worker_threads():
        yield
    current_sandbox.cache_clear()  # a worker that ends closes it for good
