"""Log damage: what does the sealer do when somebody has changed what it builds on?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection

from evidence.log import sealer
from evidence.models import Fact, Log, Pending, Seal, Tile
from kernel.ids import new_id
from tests.support.append_only_triggers import rewritable
from tests.support.evidence_logs import check_log, signing_with, write_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.django_db
HIT, OTHER = new_id(), new_id()


@pytest.fixture(autouse=True)
def one_that_was_sealed() -> Iterator[None]:
    with signing_with():
        for tenant_id in (HIT, OTHER):
            write_facts(tenant_id, 10)
        sealer.seal_pending()
        for tenant_id in (HIT, OTHER):
            write_facts(tenant_id, 3)
        yield


CHANGES: dict[str, Callable[[], object]] = {
    "the frontier": lambda: Log.objects.filter(pk=HIT).update(frontier=b"x" * 64),
    "the size": lambda: Log.objects.filter(pk=HIT).update(size=9),
    "a tile that is not full": lambda: Tile.objects.filter(tenant_id=HIT).update(hashes=b"x" * 32),
    "a tile that is gone": lambda: Tile.objects.filter(tenant_id=HIT).delete(),
}


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("what", CHANGES)
def test_nothing_is_built_on_a_log_that_was_changed_and_other_tenants_are_sealed(what: str) -> None:
    with rewritable():
        CHANGES[what]()

        sealer.seal_pending()

    assert (Pending.objects.filter(tenant_id=HIT).count(), Seal.objects.filter(tenant_id=HIT).count()) == (3, 10)
    assert check_log(OTHER) == 13


@pytest.mark.req("TOOLS-18")
def test_a_fact_that_was_changed_before_it_was_sealed_is_not_sealed() -> None:
    waiting = Pending.objects.filter(tenant_id=HIT).first()
    assert waiting is not None
    with rewritable(), connection.cursor() as cursor:
        id = Fact._meta.pk.get_db_prep_value(waiting.pk, connection)
        cursor.execute("UPDATE evidence_fact SET leaf = %s WHERE id = %s", [b"{}", id])

        sealer.seal_pending()

    assert Pending.objects.filter(tenant_id=HIT).count() == 3
    assert check_log(OTHER) == 13


@pytest.mark.req("TOOLS-18")
def test_a_fact_that_vanished_before_it_was_sealed_shows() -> None:
    waiting = Pending.objects.filter(tenant_id=HIT).first()
    assert waiting is not None
    with rewritable(), connection.cursor() as cursor:
        id = Fact._meta.pk.get_db_prep_value(waiting.pk, connection)
        cursor.execute("DELETE FROM evidence_fact WHERE id = %s", [id])

        sealer.seal_pending()

    assert Pending.objects.filter(tenant_id=HIT).count() == 3
