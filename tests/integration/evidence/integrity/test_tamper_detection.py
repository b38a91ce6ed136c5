"""Tamper detection: is every change found that somebody with all rights over the database makes?"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from django.db import transaction

from evidence import services as evidence
from evidence.integrity.rollback_detection import verify_and_keep
from evidence.integrity.verifier import verify_whole
from evidence.kinds import Kind
from evidence.models import Log
from kernel.ids import new_id
from kernel.principal import Principal
from tests.support.evidence_logs import seal_everything, signing_with, write_facts
from tests.support.raw_database import World, copy_of_everything, take_down_triggers
from tests.support.tamper_operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from uuid import UUID

    from evidence.integrity.findings import IntegrityFinding

pytestmark = [pytest.mark.django_db, pytest.mark.unpaired]
ONE, OTHER = new_id(), new_id()


def write_call(tenant_id: UUID) -> None:
    by, id = Principal.system("test", tenant_id=tenant_id), new_id()
    with transaction.atomic():
        for kind in (Kind.INVOCATION_BEGAN, Kind.INVOCATION_ENDED):
            evidence.record(kind=kind, subject="inv", invocation_id=id, actor=by, tool="a.b.c")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Two logs of some 300 leaves, so that their trees have two levels of tiles; the kept checkpoint is of now."""
    made = World(random.Random(6), (ONE, OTHER))
    take_down_triggers()
    with signing_with():
        for count in (40, 120, 97, 30):
            for tenant_id in made.tenants:
                write_facts(tenant_id, count)
                write_call(tenant_id)
                write_call(tenant_id)
            seal_everything(batch=64)
            made.before.append(copy_of_everything())
        write_facts(ONE, 7)
        write_facts(OTHER, 3)
        seal_everything()
        assert verify_and_keep(tmp_path / "kept") == []
        write_facts(ONE, 3)
        write_facts(OTHER, 3)
        yield made


def verified(tmp_path: Path) -> list[IntegrityFinding]:
    found = [finding for log in Log.objects.all() for finding in verify_whole(log)]
    return found + verify_and_keep(tmp_path / "kept")


def tamper(world: World, tmp_path: Path, times: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How often each operation was found, and what was not found."""
    found: Counter[str] = Counter()
    missed = []
    assert verified(tmp_path) == []
    for number in range(times):
        world.by.seed(f"{seed} {number}")
        operation = OPERATIONS[number % len(OPERATIONS)]
        with transaction.atomic():
            operation(world)
            if verified(tmp_path):
                found[operation.__name__] += 1
            else:
                missed.append(f"{operation.__name__} {number}")
            transaction.set_rollback(True)
    assert verified(tmp_path) == []
    print("\n".join(f"{name}: {count} found" for name, count in sorted(found.items())))
    return found, missed


@pytest.mark.req("TOOLS-18", "SPEC-7")
def test_changes_of_every_sort_are_found(world: World, tmp_path: Path) -> None:
    found, missed = tamper(world, tmp_path, len(OPERATIONS), seed=1)

    assert missed == []
    assert found.total() == len(OPERATIONS)


@pytest.mark.req("TOOLS-18", "SPEC-7")
@pytest.mark.long
def test_a_thousand_changes_are_found(world: World, tmp_path: Path) -> None:
    found, missed = tamper(world, tmp_path, 1000, seed=2)

    assert missed == []
    assert found.total() == 1000
