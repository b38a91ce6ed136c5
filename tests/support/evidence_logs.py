"""Evidence logs: how do tests write facts, seal them and look at what came of it?"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.tools import PausedTool
from evidence.log import reader, sealer, signer
from evidence.log.signers.files import InMemorySigner
from evidence.models import Checkpoint, Pending, Seal
from evidence.verify import merkle, notes
from kernel.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from evidence.log.signers.base import CheckpointSigner
    from evidence.models import Fact


sealer.FROZEN_AFTER_S = 0  # never: a test is one transaction, and does other things in it
KEYS = InMemorySigner()  # of all tests of a process: what they have signed goes on


@contextmanager
def signing_with(keys: CheckpointSigner | None = None) -> Iterator[CheckpointSigner]:
    """The signer of this process for a while: keys in memory, unless others are given."""
    keys = keys or KEYS
    signer.get_signer.cache_clear()
    before, signer.get_signer._make = signer.get_signer._make, lambda: keys
    try:
        yield keys
    finally:
        signer.get_signer._make = before
        signer.get_signer.cache_clear()


def write_facts(tenant_id: UUID, count: int, reason: str = "") -> list[Fact]:
    by = Principal.system("test", tenant_id=tenant_id)
    said = PausedTool(from_="enabled", to="paused", reason=reason)
    with transaction.atomic():
        return [
            evidence.record(kind=Kind.TOOL_PAUSED, subject=f"soul:tool:a.b.c{n}", actor=by, data=said)
            for n in range(count)
        ]


def seal_everything(*, batch: int | None = None) -> int:
    sealed = 0
    while Pending.objects.exists():
        sealed += sealer.seal_pending(batch=batch)[0]
    return sealed


def check_log(tenant_id: UUID) -> int:
    """That leaves, seals, tiles and every checkpoint of a log fit together; returns its size. Nothing of the sealer is used."""
    found = list(reader.iter_leaves(tenant_id, 0, Seal.objects.filter(tenant_id=tenant_id).count()))
    assert [index for index, _, _ in found] == list(range(len(found)))
    assert all(merkle.leaf_hash(leaf) == hash for _, leaf, hash in found)
    frontier, roots = merkle.Frontier(), {}
    for _, leaf, _ in found:
        frontier.append_many([merkle.leaf_hash(leaf)])
        roots[frontier.size] = frontier.root()
    origin = reader.load_origin(tenant_id)
    for row in Checkpoint.objects.filter(tenant_id=tenant_id):
        opened = notes.open_checkpoint(row.note, reader.list_vkeys(origin), origin=origin)
        assert (opened.size, opened.root) == (row.size, bytes(row.root))
        assert opened.root == roots[row.size]
    newest = reader.latest_checkpoint(tenant_id)
    assert (newest.size if newest else 0) == len(found)
    assert reader.load_tree(tenant_id).root(len(found)) == frontier.root()
    return len(found)
