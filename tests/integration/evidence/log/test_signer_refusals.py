"""Signer refusals: does the keeper put its signature under what somebody with all rights over the database wrote?

Who owns the tables can change rows; the key is the keeper's. It must not sign for them what it has not made itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from evidence.log import checkpoints, reader, sealer
from evidence.models import GLOBAL_LOG, Checkpoint, Log, Pending, Tile
from evidence.verify import merkle, notes
from evidence.verify.problems import InvalidEvidence
from kernel.ids import new_id
from tests.support.append_only_triggers import rewritable
from tests.support.evidence_logs import check_log, seal_everything, signing_with, write_facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

pytestmark = pytest.mark.django_db
HIT, OTHER = new_id(), new_id()


@pytest.fixture(autouse=True)
def two_logs_that_stand_still() -> Iterator[None]:
    with signing_with():
        for tenant_id in (HIT, OTHER):
            write_facts(tenant_id, 4)
        seal_everything()
        yield


def long_since_signed() -> None:
    Log.objects.update(signed_at=timezone.now() - checkpoints.SIGNED_AGAIN_AFTER - timedelta(seconds=5))


def forge(tenant_id: UUID, text: str, root: bytes | None = None) -> None:
    row = reader.checkpoint_at(tenant_id)
    _, signatures = notes.split_note(row.note)
    row.note = text + "\n" + "".join(each.line for each in signatures)
    row.root = root or row.root
    row.save(update_fields=["note", "root"])


def is_signed(tenant_id: UUID) -> bool:
    """Whether somebody who has the keys of that log believes the newest checkpoint, leaving lines out that do not fit."""
    origin = reader.load_origin(tenant_id)
    text, signatures = notes.split_note(reader.checkpoint_at(tenant_id).note)
    for line in signatures:
        try:
            notes.open_checkpoint(f"{text}\n{line.line}", reader.list_vkeys(origin))
        except InvalidEvidence:
            continue
        return True
    return False


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("tenant_id", [HIT, GLOBAL_LOG], ids=["of a tenant", "of the global log"])
def test_a_text_that_was_changed_is_not_signed_again(tenant_id: UUID) -> None:
    size = Log.objects.get(pk=tenant_id).size
    with rewritable():
        forge(tenant_id, notes.Checkpoint(reader.load_origin(tenant_id), size, bytes(32)).text())
    long_since_signed()

    sealer.run_turn()

    assert not is_signed(tenant_id)
    assert is_signed(OTHER)
    assert Log.objects.get(pk=OTHER).signed_at > timezone.now() - timedelta(minutes=1)  # type: ignore[operator]


@pytest.mark.req("TOOLS-18")
def test_a_root_that_was_changed_with_the_text_is_not_signed_again() -> None:
    with rewritable():
        forge(HIT, notes.Checkpoint(reader.load_origin(HIT), 4, bytes(32)).text(), bytes(32))
    long_since_signed()

    sealer.run_turn()

    assert not is_signed(HIT)


@pytest.mark.req("TOOLS-18")
def test_nothing_is_appended_to_a_tree_that_fits_itself_and_that_nobody_has_signed() -> None:
    tree, hashes = merkle.Frontier(), [merkle.leaf_hash(b"never was %d" % n) for n in range(4)]
    tree.append_many(hashes)
    with rewritable():
        forge(HIT, notes.Checkpoint(reader.load_origin(HIT), 4, tree.root()).text(), tree.root())
        Log.objects.filter(pk=HIT).update(frontier=tree.to_bytes())
        Tile.objects.filter(tenant_id=HIT).update(hashes=b"".join(hashes))
    for tenant_id in (HIT, OTHER):
        write_facts(tenant_id, 2)

    sealer.seal_pending()

    assert Pending.objects.filter(tenant_id=HIT).count() == 2
    assert Checkpoint.objects.filter(tenant_id=HIT).count() == 1
    assert check_log(OTHER) == 6


@pytest.mark.req("TOOLS-18")
def test_a_log_that_was_signed_in_the_future_is_signed_again_when_the_clock_is_set_back() -> None:
    ahead = timezone.now() + timedelta(days=1)
    Log.objects.update(signed_at=ahead)

    sealer.run_turn()

    assert not Log.objects.filter(signed_at=ahead).exists()


@pytest.mark.req("TOOLS-18")
def test_a_hub_that_moves_keeps_the_names_of_its_logs_and_of_their_clock(settings: Any) -> None:
    origin = reader.load_origin(HIT)
    settings.TOOLHUB_LOG_ORIGIN = "elsewhere.example"
    write_facts(HIT, 2)
    seal_everything()

    note = notes.open_note(reader.checkpoint_at(HIT).note, reader.list_vkeys(origin))
    assert reader.load_origin(HIT) == origin
    assert {each.name for each in note.verified} == {origin, notes.clock_name(origin)}
    assert note.unknown == ()
