"""Is every committed fact sealed once, in a tree that anybody can check?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidence.log import reading, sealer
from evidence.models import GLOBAL_LOG, Checkpoint, Fact, Log, LogKey, Pending, Seal, Tile
from evidence.verify import merkle, notes
from tests.logs import check_log, seal_everything, signing_with, write_facts
from toolhub.kernel.ids import new_id
from toolhub.kernel.tenancy import NO_TENANT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidence.log.signer import Signer

pytestmark = [pytest.mark.django_db, pytest.mark.req("TOOLS-18")]
ONE, OTHER = new_id(), new_id()


@pytest.fixture(autouse=True)
def keys() -> Iterator[Signer]:
    with signing_with() as found:
        yield found


def test_what_was_written_is_sealed_once_whatever_the_batches() -> None:
    for count in (1, 255, 256, 1, 700):
        write_facts(ONE, count)
        seal_everything(batch=97)

    assert check_log(ONE) == Fact.objects.filter(tenant_id=ONE).count() == 1213
    assert not Pending.objects.exists()
    assert {len(tile.hashes) for tile in Tile.objects.filter(tenant_id=ONE, level=0, n__lt=4)} == {8192}
    assert len(Tile.objects.get(tenant_id=ONE, level=1).hashes) == 4 * 32
