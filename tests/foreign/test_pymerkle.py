"""pymerkle: does pymerkle, which we did not write either, make the same trees, and accept our proofs?"""

from __future__ import annotations

import random

import pymerkle
import pytest

from evidence.verify.merkle import inclusion_proof, leaf_hash
from tests.unit.evidence.verify.trees import MemoryTiles, leaves_of

SIZE = 600
LEAVES = leaves_of(SIZE)
OURS = MemoryTiles(LEAVES)


@pytest.fixture(scope="module")
def theirs() -> pymerkle.InmemoryTree:
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for leaf in LEAVES:
        tree.append_entry(leaf)
    return tree


def test_the_roots_are_equal_at_every_size(theirs: pymerkle.InmemoryTree) -> None:
    assert [OURS.root(size) for size in range(1, SIZE + 1)] == [theirs.get_root(size) for size in range(1, SIZE + 1)]


def test_our_inclusion_proofs_are_accepted(theirs: pymerkle.InmemoryTree) -> None:
    """Theirs begin with the leaf itself and count leaves from 1."""
    chance = random.Random(4)
    for _ in range(300):
        size = chance.randint(1, SIZE)
        index = chance.randrange(size)
        hash = leaf_hash(LEAVES[index])
        shape = theirs.prove_inclusion(index + 1, size)
        proof = pymerkle.InclusionProof(
            "sha256", True, size, index + 1, shape.rule, [hash, *inclusion_proof(OURS, index, size)]
        )
        pymerkle.verify_inclusion(hash, OURS.root(size), proof)


def test_their_consistency_proofs_lead_from_our_roots_to_our_roots(theirs: pymerkle.InmemoryTree) -> None:
    chance = random.Random(5)
    for _ in range(300):
        old, new = sorted(chance.sample(range(1, SIZE + 1), 2))
        pymerkle.verify_consistency(OURS.root(old), OURS.root(new), theirs.prove_consistency(old, new))
        with pytest.raises(pymerkle.InvalidProof):
            pymerkle.verify_consistency(OURS.root(old), OURS.root(old), theirs.prove_consistency(old, new))
