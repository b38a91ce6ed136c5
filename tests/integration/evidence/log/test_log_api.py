"""The log's API: does an auditor's program get what it needs to check a tenant's log, and nobody anything of another's?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import Client

from access import services as access
from evidence.log import reader
from evidence.models import GLOBAL_LOG, Fact
from evidence.verify import merkle, notes, tiles
from evidence.verify.proofs import ConsistencyProof, InclusionProof
from tests.conftest import Caller
from tests.support.evidence_logs import seal_everything, signing_with, write_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from access.models import Tenant

pytestmark = pytest.mark.django_db
EVER = "max-age=31536000, immutable"


@pytest.fixture(autouse=True)
def keys() -> Iterator[None]:
    with signing_with():
        yield


@pytest.fixture
def auditor(caller: Caller) -> Caller:
    """An agent whose key may read the log, of a tenant with 300 sealed facts beside those of its making."""
    _, key = access.create_key(agent=caller.agent, scopes=["evidence:read"], by=caller.by)
    write_facts(caller.by.tenant_id, 300)
    seal_everything(batch=200)
    return Caller(caller.agent, key, caller.by)


def checkpoint_of(auditor: Caller, query: str = "") -> notes.Checkpoint:
    answer = auditor.get(f"/evidence/log/checkpoint{query}")
    about = auditor.get("/evidence/log").json()["data"]
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-cache"
    return notes.open_checkpoint(answer.content, about["vkeys"], origin=about["origin"])


@pytest.mark.req("TOOLS-18")
def test_the_whole_log_can_be_read_as_tiles_and_leads_to_its_checkpoint(auditor: Caller) -> None:
    checkpoint = checkpoint_of(auditor)
    got = {}
    for place in tiles.iter_tiles(checkpoint.size):
        answer = auditor.get(f"/evidence/log/{place}")
        assert answer.headers["Cache-Control"] == f"private, {EVER}", place
        got[place.level, place.n] = answer.content

    leaves = [leaf for n in range(2) for leaf in tiles.unpack_entries(got[tiles.ENTRIES, n])]
    tree = merkle.Tiles(lambda level, n: got[level, n])
    assert len(leaves) == checkpoint.size
    assert tree.root(checkpoint.size) == checkpoint.root
    assert [tree.node(0, n) for n in range(checkpoint.size)] == [merkle.leaf_hash(leaf) for leaf in leaves]


@pytest.mark.req("TOOLS-18")
def test_a_fact_is_proved(auditor: Caller) -> None:
    fact = Fact.objects.filter(tenant_id=auditor.by.tenant_id).order_by("pk")[77]

    answer = auditor.get(f"/evidence/facts/{fact.wire_id}/proof")

    proof = InclusionProof.parse(answer.content.decode())
    proof.verify(bytes(fact.leaf), checkpoint_of(auditor))


@pytest.mark.req("TOOLS-18")
def test_a_later_log_continues_an_older_one(auditor: Caller) -> None:
    older = checkpoint_of(auditor, "?size=200")

    answer = auditor.get("/evidence/log/consistency?old=200")

    ConsistencyProof.parse(answer.content.decode()).verify(older, checkpoint_of(auditor))


@pytest.mark.req("TOOLS-18")
def test_a_checkpoint_is_in_the_log_that_everybody_may_look_at(auditor: Caller) -> None:
    mine = notes.split_note(auditor.get("/evidence/log/checkpoint").content)[0]

    answer = auditor.get("/evidence/log/anchor")

    vkeys = Client().get("/log/checkpoints/vkeys").content.decode().splitlines()
    everybodys = notes.open_checkpoint(Client().get("/log/checkpoints/checkpoint").content, vkeys)
    InclusionProof.parse(answer.content.decode()).verify(mine.encode(), everybodys)


@pytest.mark.req("TOOLS-18", "TOOLS-21")
def test_everybody_may_read_hashes_of_the_global_log_and_nobody_its_leaves(auditor: Caller) -> None:
    size = reader.checkpoint_at(GLOBAL_LOG).size

    hashes = Client().get(f"/log/checkpoints/tile/0/000.p/{size}")
    leaves = Client().get(f"/log/checkpoints/tile/entries/000.p/{size}")

    assert (hashes.status_code, len(hashes.content)) == (200, 32 * size)
    assert hashes.headers["Cache-Control"] == f"public, {EVER}"
    assert leaves.status_code == 404


@pytest.mark.req("TOOLS-22")
def test_a_log_of_another_tenant_has_other_leaves(auditor: Caller, foreign_caller: Caller) -> None:
    _, key = access.create_key(agent=foreign_caller.agent, scopes=["evidence:read"], by=foreign_caller.by)
    stranger = Caller(foreign_caller.agent, key, foreign_caller.by)
    fact = Fact.objects.filter(tenant_id=auditor.by.tenant_id).first()
    assert fact is not None

    assert stranger.get(f"/evidence/facts/{fact.wire_id}/proof").status_code == 404
    assert stranger.get("/evidence/log").json()["data"]["origin"].endswith(stranger.agent.tenant.wire_id)
    bundle = stranger.get("/evidence/log/tile/entries/000.p/1").content
    assert auditor.agent.tenant.wire_id.encode() not in bundle


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/evidence/log/tile/0/001", 404, "EVIDENCE.NO_SUCH_TREE"),  # not full yet
        ("/evidence/log/tile/0/000.p/0", 404, "RESOURCE.NOT_FOUND"),
        ("/evidence/log/tile/0/0", 404, "RESOURCE.NOT_FOUND"),
        ("/evidence/log/tile/entries/007", 404, "EVIDENCE.NO_SUCH_TREE"),
        ("/evidence/log/checkpoint?size=123", 404, "EVIDENCE.NO_SUCH_TREE"),
        ("/evidence/log/consistency?old=9999", 404, "EVIDENCE.NO_SUCH_TREE"),
        ("/evidence/log/consistency?old=-1", 422, "SCHEMA.VALIDATION_FAILED"),
    ],
)
def test_what_is_not_there_is_said(auditor: Caller, path: str, status: int, reason: str) -> None:
    answer = auditor.get(path)

    assert (answer.status_code, answer.json()["error"]["reason"]) == (status, reason)


@pytest.mark.req("TOOLS-18")
def test_a_fact_that_waits_has_no_proof_yet(auditor: Caller, tenant: Tenant) -> None:
    (fact,) = write_facts(tenant.pk, 1)

    answer = auditor.get(f"/evidence/facts/{fact.wire_id}/proof")

    assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "EVIDENCE.NOT_SEALED")
    assert auditor.get("/evidence/log").json()["data"]["pending"] == 1
