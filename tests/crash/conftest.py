"""One hub for all crashes: what one of them leaves behind, the next would find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.crash.postgres import OwnPostgres, own_postgres
from tests.crash.run_world import RunWorld, run_world_at
from tests.crash.world import World, world_at

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world_at(tmp_path_factory.mktemp("crash")) as found:
        yield found


@pytest.fixture
def world(shared_world: World) -> Iterator[World]:
    """The one of all modules. Where a test has let runs go before their time, those of the next test stay for it again."""
    yield shared_world
    shared_world.store.let_go.clear()


@pytest.fixture(scope="session")
def postgres() -> Iterator[OwnPostgres]:
    with own_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def fragile_world(postgres: OwnPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One on a PostgreSQL that may be crashed."""
    with world_at(tmp_path_factory.mktemp("fragile"), server=postgres.url) as found:
        yield found


@pytest.fixture(scope="session")
def run_world(postgres: OwnPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunWorld]:
    """One whose agents have runs made, on the same PostgreSQL."""
    with run_world_at(tmp_path_factory.mktemp("runs"), server=postgres.url) as found:
        yield found
