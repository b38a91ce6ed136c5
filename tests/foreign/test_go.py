"""A verifier in Go: does somebody else's verifier agree with ours: on what is right, on every changed bit, on every rewritten
history?

The other one is golang.org/x/mod (sumdb/note and sumdb/tlog), which checks Go's own module database.
"""

from __future__ import annotations

import random
from base64 import b64decode
from binascii import Error as NotBase64
from typing import TYPE_CHECKING, Any

import pytest

from evidence.verify import bundle
from evidence.verify.merkle import consistency_proof
from evidence.verify.notes import open_checkpoint
from evidence.verify.problems import InvalidEvidence
from evidence.verify.proofs import ConsistencyProof, InclusionProof
from tests.unit.evidence.verify.bundles import Log, leaf
from tests.unit.evidence.verify.trees import ORIGIN, SIGNER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Foreign = Callable[[Sequence[dict[str, str | bytes]]], list[str]]

KEY = str(SIGNER.key)
SIZE = 3_000
PROOFS, FLIPS, REWRITES = 1_000, 1_500, 200


@pytest.fixture(scope="module")
def log() -> Log:
    return Log([leaf(number, "tool.enabled", data={"n": number * 7919}) for number in range(SIZE)])


def inclusion(log: Log, index: int, size: int) -> dict[str, str | bytes]:
    proof = InclusionProof(index, tuple(log.proof(index, size)), log.checkpoint(size)).text().encode()
    return {"Kind": "inclusion", "Key": KEY, "Leaf": log.leaves[index], "Proof": proof}


def consistency(log: Log, old: int, new: int, *, older: bytes | None = None) -> dict[str, str | bytes]:
    path = consistency_proof(log.tiles, old, new)
    proof = bundle.consistency_file(old=old, path=path, checkpoint=log.checkpoint(new))
    return {"Kind": "consistency", "Key": KEY, "Older": older or log.checkpoint(old).encode(), "Proof": proof}


def ours(task: dict[str, Any]) -> str:
    """What our own verifier says to a task of the foreign one."""
    try:
        text = task["Proof"].decode()
        if task["Kind"] == "inclusion":
            proof = InclusionProof.parse(text)
            proof.verify(task["Leaf"], open_checkpoint(proof.note, [KEY], origin=ORIGIN))
        else:
            link = ConsistencyProof.parse(text)
            newer = open_checkpoint(link.note, [KEY], origin=ORIGIN)
            link.verify(open_checkpoint(task["Older"], [KEY], origin=ORIGIN), newer)
    except (InvalidEvidence, UnicodeDecodeError) as error:
        return f"refused: {error}"
    return "ok"


def of_any_kind(log: Log, chance: random.Random) -> dict[str, str | bytes]:
    size = chance.randint(2, SIZE)
    if chance.random() < 0.5:
        return inclusion(log, chance.randrange(size), size)
    return consistency(log, chance.randint(1, size - 1), size)


def test_a_thousand_proofs_are_accepted_by_both(log: Log, foreign: Foreign) -> None:
    chance = random.Random(1)
    tasks = [of_any_kind(log, chance) for _ in range(PROOFS)]

    assert foreign(tasks) == ["ok"] * PROOFS
    assert [ours(task) for task in tasks] == ["ok"] * PROOFS


def flipped(task: dict[str, str | bytes], chance: random.Random) -> dict[str, str | bytes]:
    name = chance.choice([name for name, value in task.items() if isinstance(value, bytes)])
    raw = bytearray(task[name])  # type: ignore[arg-type]
    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    return task | {name: bytes(raw)}


def means_the_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Is each line of a file the same after lenient base64? Then a flip has changed no decoded byte."""

    def decoded(data: bytes) -> list[bytes]:
        words = [word for line in data.split(b"\n") for word in line.split(b" ")]
        return [_lenient(word) for word in words]

    return all(decoded(one[name]) == decoded(other[name]) for name in one if isinstance(one[name], bytes))


def _lenient(word: bytes) -> bytes:
    try:
        return b64decode(word, validate=True) if len(word) >= 16 else word
    except NotBase64:
        return word


def test_every_bit_that_changes_what_is_said_is_refused_by_both(log: Log, foreign: Foreign) -> None:
    """The hub's own cosignature is by a key that this verifier was not given, so by the format its bits count for nothing."""
    chance = random.Random(2)
    tasks: list[dict[str, str | bytes]] = []
    while len(tasks) < FLIPS:
        task = without_clock(of_any_kind(log, chance))
        changed = flipped(task, chance)
        if not means_the_same(task, changed):
            tasks.append(changed)

    assert [answer for answer in foreign(tasks) if answer == "ok"] == []
    assert [task for task in tasks if ours(task) == "ok"] == []


def test_another_spelling_of_the_same_base64_is_refused_by_ours(log: Log) -> None:
    task = without_clock(inclusion(log, 7, 100))
    assert isinstance(task["Proof"], bytes)
    lines = task["Proof"].split(b"\n")
    lines[2] = lines[2][:-2] + bytes([lines[2][-2] + 1]) + b"="
    changed = task | {"Proof": b"\n".join(lines)}

    assert means_the_same(task, changed)
    assert ours(changed) == "refused: A hash of a tlog-proof is not canonical base64."


def without_clock(task: dict[str, str | bytes]) -> dict[str, str | bytes]:
    def cut(data: str | bytes) -> str | bytes:
        if isinstance(data, str) or "— ".encode() not in data:
            return data
        first, second = data.rsplit("— ".encode(), 2)[:2]
        return first + "— ".encode() + second

    return {name: cut(value) for name, value in task.items()}


def rewritten(leaves: list[bytes], old: int, chance: random.Random) -> list[bytes]:
    """Another history: among the first ``old`` leaves one is changed, left out, added or two are exchanged."""
    leaves = list(leaves)
    at = chance.randrange(old)
    match chance.choice(["change", "delete", "insert", "swap", "truncate"]):
        case "change":
            leaves[at] = leaf(at, "tool.enabled", data={"n": "another"})
        case "delete":
            del leaves[at]
        case "insert":
            leaves.insert(at, leaf(at, "tool.paused"))
        case "swap":
            other = (at + 1) % old
            leaves[at], leaves[other] = leaves[other], leaves[at]
        case "truncate":
            leaves[old - 1 :] = [leaf(number, "tool.paused") for number in range(len(leaves) - old + 1)]
    return leaves


def test_every_rewritten_history_is_refused_by_whoever_holds_an_older_checkpoint(foreign: Foreign) -> None:
    """The operator has the database and the real key: the tree is built again and signed, with proofs of its own."""
    chance = random.Random(3)
    honest = Log([leaf(number, "tool.enabled", data={"n": number}) for number in range(150)])
    tasks = []
    for _ in range(REWRITES):
        old = chance.randint(2, 150)
        kept = honest.checkpoint(old).encode()
        forged = Log(rewritten(honest.leaves, old, chance))
        new = chance.randint(min(old, len(forged.leaves)), len(forged.leaves))
        tasks.append(consistency(forged, min(old, new), new, older=kept))

    assert [answer for answer in foreign(tasks) if answer == "ok"] == []
    assert [ours(task) for task in tasks if ours(task) == "ok"] == []
