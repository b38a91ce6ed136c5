"""The sealer: is every committed fact sealed once, in a tree that anybody can check?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.utils import timezone

from evidence.log import checkpoints, reader, sealer
from evidence.log.state import log_state
from evidence.models import GLOBAL_LOG, Checkpoint, Fact, Log, Pending, Tile
from evidence.verify import merkle, notes
from evidence.verify.proofs import ConsistencyProof, InclusionProof
from kernel.ids import new_id
from tests.support.evidence_logs import check_log, seal_everything, signing_with, write_facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from evidence.log.signers.base import CheckpointSigner

pytestmark = pytest.mark.django_db
ONE, OTHER = new_id(), new_id()


@pytest.fixture(autouse=True)
def keys() -> Iterator[CheckpointSigner]:
    with signing_with() as found:
        yield found


def opened(tenant_id: UUID) -> notes.Note:
    newest = reader.checkpoint_at(tenant_id)
    return notes.open_note(newest.note, reader.list_vkeys(reader.load_origin(tenant_id)))


def clock_of(tenant_id: UUID) -> int:
    (at,) = [signature.at for signature in opened(tenant_id).verified if signature.at is not None]
    return at


@pytest.mark.req("TOOLS-18")
def test_what_was_written_is_sealed_once_whatever_the_batches() -> None:
    for count in (1, 255, 256, 1, 700):
        write_facts(ONE, count)
        seal_everything(batch=97)

    assert check_log(ONE) == Fact.objects.filter(tenant_id=ONE).count() == 1213
    assert not Pending.objects.exists()
    assert {len(tile.hashes) for tile in Tile.objects.filter(tenant_id=ONE, level=0, n__lt=4)} == {8192}
    assert len(Tile.objects.get(tenant_id=ONE, level=1).hashes) == 4 * 32


@pytest.mark.req("TOOLS-18")
def test_facts_of_a_batch_are_in_the_order_in_which_they_were_written() -> None:
    written = [fact.pk for fact in write_facts(ONE, 50)]
    seal_everything()

    assert list(Fact.objects.filter(tenant_id=ONE).order_by("seal__leaf_index").values_list("pk", flat=True)) == written


@pytest.mark.req("TOOLS-18")
def test_a_busy_tenant_keeps_nobody_waiting() -> None:
    write_facts(ONE, 300)
    write_facts(OTHER, 3)

    _, more = sealer.seal_pending(batch=10)

    assert more
    assert (Log.objects.get(pk=ONE).size, Log.objects.get(pk=OTHER).size) == (10, 3)


@pytest.mark.req("TOOLS-18")
def test_each_checkpoint_of_a_tenant_is_a_leaf_of_the_global_log() -> None:
    for tenant_id in (ONE, OTHER, ONE):
        write_facts(tenant_id, 5)
        seal_everything()
    origin = reader.load_origin(GLOBAL_LOG)

    rows = list(Checkpoint.objects.exclude(tenant_id=GLOBAL_LOG).order_by("global_index"))
    newest = notes.open_checkpoint(reader.checkpoint_at(GLOBAL_LOG).note, reader.list_vkeys(origin), origin=origin)
    assert [row.global_index for row in rows] == list(range(newest.size))
    for row in rows:
        proof = InclusionProof.parse(reader.build_anchor_proof(row))
        proof.verify(reader.checkpoint_text(row), newest)
        assert (
            reader.checkpoint_text(row).decode()
            == notes.open_note(row.note, reader.list_vkeys(reader.load_origin(row.tenant_id))).text
        )


@pytest.mark.req("TOOLS-18")
def test_a_fact_is_proved_and_a_log_continues_what_was_seen_of_it() -> None:
    facts = write_facts(ONE, 300)
    seal_everything(batch=50)
    origin = reader.load_origin(ONE)
    seen = [
        notes.open_checkpoint(row.note, reader.list_vkeys(origin), origin=origin)
        for row in Checkpoint.objects.filter(tenant_id=ONE).order_by("size")
    ]

    for fact in facts[::37]:
        InclusionProof.parse(reader.build_inclusion_proof(fact)).verify(bytes(fact.leaf), seen[-1])
    for older in seen:
        ConsistencyProof.parse(reader.build_consistency_proof(ONE, older.size)).verify(older, seen[-1])
    early = InclusionProof.parse(reader.build_inclusion_proof(facts[3], size=seen[0].size))
    early.verify(bytes(facts[3].leaf), seen[0])
    assert len(seen) == 6


@pytest.mark.req("TOOLS-18")
def test_a_log_that_stands_still_is_signed_again_so_that_silence_shows() -> None:
    write_facts(ONE, 3)
    seal_everything()
    before, text = clock_of(ONE), opened(ONE).text
    long_ago = timezone.now() - checkpoints.SIGNED_AGAIN_AFTER - timedelta(seconds=5)
    Log.objects.update(signed_at=long_ago)
    note = reader.checkpoint_at(ONE).note
    stale = notes.Cosigner("witness.example/w", Ed25519PrivateKey.generate())
    checkpoints.add_signatures(tenant_id=ONE, size=3, lines=[stale.line(text, at=before - 600)])

    sealer.run_turn()

    assert opened(ONE).text == text
    assert clock_of(ONE) >= before
    assert Log.objects.get(pk=ONE).signed_at > long_ago  # type: ignore[operator]
    assert Checkpoint.objects.filter(tenant_id=ONE).count() == 1
    kept = notes.open_note(reader.checkpoint_at(ONE).note, [stale.key])
    assert kept.verified[0].at == before - 600
    assert len(notes.split_note(reader.checkpoint_at(ONE).note)[1]) == len(notes.split_note(note)[1]) + 1


@pytest.mark.req("TOOLS-18")
def test_a_witness_that_signs_again_takes_one_line() -> None:
    write_facts(ONE, 1)
    seal_everything()
    witness, text = notes.Cosigner("witness.example/w", Ed25519PrivateKey.generate()), opened(ONE).text

    for at in (1_000, 2_000):
        checkpoints.add_signatures(tenant_id=ONE, size=1, lines=[witness.line(text, at=at)])

    found = notes.open_note(reader.checkpoint_at(ONE).note, [witness.key])
    assert [signature.at for signature in found.verified] == [2_000]
    assert opened(ONE).text == text


@pytest.mark.req("TOOLS-18")
def test_an_empty_turn_writes_nothing() -> None:
    write_facts(ONE, 3)
    seal_everything()
    before = (list(Checkpoint.objects.values()), list(Log.objects.values()))

    assert sealer.run_turn() is False
    assert (list(Checkpoint.objects.values()), list(Log.objects.values())) == before


@pytest.mark.req("TOOLS-18")
def test_the_state_says_since_when_the_oldest_fact_waits() -> None:
    seal_everything()
    written = write_facts(ONE, 2)

    state = log_state(ONE)

    assert (state.pending, state.wrong) == (2, "")
    assert state.oldest is not None
    assert abs(state.oldest - written[0].occurred_at) < timedelta(seconds=1)


@pytest.mark.req("TOOLS-18")
def test_a_keeper_that_is_not_there_shows() -> None:
    write_facts(ONE, 2)
    seal_everything()
    Log.objects.update(signed_at=timezone.now() - timedelta(minutes=11))

    assert log_state().wrong.startswith("No checkpoint was signed since")


@pytest.mark.req("TOOLS-18")
def test_the_tree_is_the_one_that_the_rfc_describes() -> None:
    facts = write_facts(ONE, 7)
    seal_everything()
    hashes = [merkle.leaf_hash(bytes(fact.leaf)) for fact in facts]

    def root(of: list[bytes]) -> bytes:  # RFC 9162, 2.1.1, as it stands there
        if len(of) == 1:
            return of[0]
        split = 1 << ((len(of) - 1).bit_length() - 1)
        return merkle.node_hash(root(of[:split]), root(of[split:]))

    assert bytes(reader.checkpoint_at(ONE).root) == root(hashes)
