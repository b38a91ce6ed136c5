"""The hub's own log: does a program that we did not write accept what the hub itself sealed and signed?"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from evidence.log import reader
from evidence.models import Checkpoint
from evidence.verify import mirror
from evidence.verify.tiles import iter_tiles
from tests.support.evidence_logs import seal_everything, signing_with, write_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.conftest import Caller

pytestmark = pytest.mark.django_db
FACTS = 1_000


def test_a_thousand_proofs_of_the_hub_and_all_its_checkpoints_are_accepted(
    caller: Caller, foreign: Callable[[Sequence[dict[str, str | bytes]]], list[str]]
) -> None:
    tenant_id = caller.by.tenant_id
    with signing_with():
        facts = write_facts(tenant_id, FACTS)
        seal_everything(batch=97)
    key = reader.list_vkeys(reader.load_origin(tenant_id))[0]
    notes = {row.size: row.note.encode() for row in Checkpoint.objects.filter(tenant_id=tenant_id).order_by("size")}
    pairs = list(combinations(notes, 2))

    proofs: list[dict[str, str | bytes]] = [
        {
            "Kind": "inclusion",
            "Key": key,
            "Leaf": bytes(fact.leaf),
            "Proof": reader.build_inclusion_proof(fact).encode(),
        }
        for fact in facts
    ]
    links: list[dict[str, str | bytes]] = [
        {
            "Kind": "consistency",
            "Key": key,
            "Older": notes[old],
            "Proof": reader.build_consistency_proof(tenant_id, old, new).encode(),
        }
        for old, new in pairs
    ]

    assert len(notes) > 10
    assert foreign([*proofs, *links]) == ["ok"] * (FACTS + len(pairs))


def test_a_log_that_was_copied_over_http_is_verified_without_the_hub(caller: Caller, tmp_path: Path) -> None:
    tenant_id = caller.by.tenant_id
    with signing_with():
        write_facts(tenant_id, 300)
        seal_everything()
    keys = reader.list_vkeys(reader.load_origin(tenant_id))
    size = reader.checkpoint_at(tenant_id).size
    for name in ["checkpoint", *map(str, iter_tiles(size))]:
        answer = caller.get(f"/evidence/log/{name}")
        assert answer.status_code == 200, name
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(answer.content)

    report = mirror.verify_mirror(tmp_path, keys=keys)

    assert report.findings == []
    assert report.good == size >= 300
    assert report.signed_at is not None
