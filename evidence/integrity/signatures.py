"""Signatures: whether the log signed a checkpoint, and with the time, and whether the public keys are those of the log."""

from __future__ import annotations

import base64
import contextlib
from typing import TYPE_CHECKING

from evidence.integrity.findings import FindingCode, IntegrityFinding
from evidence.kinds import Kind
from evidence.leaves.hub import SigningKey
from evidence.log.signing_keys import list_vkeys
from evidence.models import Fact, LogKey, read_leaf
from evidence.verify.notes import COSIGNATURE, Checkpoint, VerifierKey, open_note
from evidence.verify.problems import InvalidEvidence
from kernel.database.tenancy import NO_TENANT

if TYPE_CHECKING:
    from evidence.models import Checkpoint as CheckpointRow
    from evidence.models import Log


def trusted_keys(log: Log) -> list[VerifierKey]:
    """Without those that are no keys: what they have signed has no signature, and the log of checkpoints says which they are."""
    found = []
    for key in list_vkeys(log.origin):
        with contextlib.suppress(InvalidEvidence):
            found.append(VerifierKey.parse(key))
    return found


def verify_note(row: CheckpointRow, log: Log, keys: list[VerifierKey]) -> list[IntegrityFinding]:
    """Whether the row says what its note says, the log signed that, and the clock when."""
    last = row.size - 1
    try:
        opened = open_note(row.note, keys)
        said = Checkpoint.parse(opened.text)
    except InvalidEvidence as error:
        return [IntegrityFinding(FindingCode.CHECKPOINT_SIGNATURE, last, str(error)[:200])]
    clocks = {key.name for key in keys if key.alg == COSIGNATURE}
    signed_by = {each.name for each in opened.verified}
    if log.origin not in signed_by or not signed_by & clocks:
        return [IntegrityFinding(FindingCode.CHECKPOINT_SIGNATURE, last, f"signed by {', '.join(sorted(signed_by))}")]
    wrong = [
        name
        for name, good in {
            "origin": said.origin == log.origin,
            "size": said.size == row.size,
            "root": said.root == bytes(row.root),
        }.items()
        if not good
    ]
    return [IntegrityFinding(FindingCode.CHECKPOINT_COLUMNS, last, ", ".join(wrong))] if wrong else []


def verify_public_keys() -> list[IntegrityFinding]:
    """Each public key must be one that a fact of the hub tells of, and each such fact have its key."""
    told = {}
    for leaf in Fact.objects.filter(tenant_id=NO_TENANT, kind=Kind.LOG_KEY_ADDED).values_list("leaf", flat=True):
        key = SigningKey.from_data(read_leaf(bytes(leaf)).get("data"))  # of a leaf that is none the key is not told
        told[key.key or ""] = (key.log or None, key.clock or None)
    there = {
        row.name: (base64.b64encode(row.public).decode(), base64.b64encode(row.clock).decode())
        for row in LogKey.objects.all()
    }
    different = sorted(name for name in told.keys() | there.keys() if told.get(name) != there.get(name))
    return [IntegrityFinding(FindingCode.KEY_WRONG, None, name) for name in different]
