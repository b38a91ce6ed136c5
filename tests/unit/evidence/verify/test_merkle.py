"""Merkle: are trees and proofs those of RFC 9162? The vectors are certificate-transparency's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.verify.merkle import (
    EMPTY,
    Frontier,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    verify_consistency,
    verify_inclusion,
)
from evidence.verify.problems import InvalidProof
from tests.unit.evidence.verify.trees import MemoryTiles, leaves_of, unhurried

# The test leaves of certificate-transparency and the roots of the first n of them (google/certificate-transparency,
# merkle_tree_test.cc; the same in transparency-dev/merkle).
CT_LEAVES = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
CT_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
# Proofs over the same leaves: (index, size, hashes) and (old, new, hashes), of transparency-dev/merkle, proof/verify_test.go.
H = {
    "0": "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "1": "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "2-3": "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "0-1": "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "0-3": "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4": "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    "4-5": "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
    "4-7": "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    "6": "b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f",
    "6-7": "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
}
CT_INCLUSION = [
    (0, 8, ["1", "2-3", "4-7"]),
    (5, 8, ["4", "6-7", "0-3"]),
    (2, 3, ["0-1"]),
    (1, 5, ["0", "2-3", "4"]),
]
CT_CONSISTENCY = [
    (1, 1, []),
    (1, 8, ["1", "2-3", "4-7"]),
    (6, 8, ["4-5", "6-7", "0-3"]),
    (2, 5, ["2-3", "4"]),
    (6, 7, ["4-5", "6", "0-3"]),
]


def reference_root(leaves: list[bytes]) -> bytes:
    """MTH as RFC 9162, 2.1.1, writes it."""
    if not leaves:
        return EMPTY
    if len(leaves) == 1:
        return leaf_hash(leaves[0])
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return node_hash(reference_root(leaves[:k]), reference_root(leaves[k:]))


def test_the_roots_are_those_of_certificate_transparency() -> None:
    assert [MemoryTiles(CT_LEAVES[:size]).frontier.root().hex() for size in range(9)] == CT_ROOTS
    assert [MemoryTiles(CT_LEAVES).root(size).hex() for size in range(9)] == CT_ROOTS


@pytest.mark.parametrize(("index", "size", "names"), CT_INCLUSION)
def test_inclusion_proofs_are_those_of_certificate_transparency(index: int, size: int, names: list[str]) -> None:
    path = [bytes.fromhex(H[name]) for name in names]

    assert inclusion_proof(MemoryTiles(CT_LEAVES), index, size) == path
    verify_inclusion(leaf_hash(CT_LEAVES[index]), index, size, path, bytes.fromhex(CT_ROOTS[size]))


@pytest.mark.parametrize(("old", "new", "names"), CT_CONSISTENCY)
def test_consistency_proofs_are_those_of_certificate_transparency(old: int, new: int, names: list[str]) -> None:
    path = [bytes.fromhex(H[name]) for name in names]

    assert consistency_proof(MemoryTiles(CT_LEAVES), old, new) == path
    verify_consistency(old, new, bytes.fromhex(CT_ROOTS[old]), bytes.fromhex(CT_ROOTS[new]), path)


@unhurried
@given(st.integers(0, 700), st.integers(0, 700))
def test_a_frontier_grows_to_the_root_that_the_definition_gives(first: int, second: int) -> None:
    leaves = leaves_of(first + second)
    grown = Frontier()
    grown.append_many(map(leaf_hash, leaves[:first]))
    grown = Frontier.from_bytes(grown.size, grown.to_bytes())
    grown.append_many(map(leaf_hash, leaves[first:]))

    assert grown.size == first + second
    assert grown.root() == reference_root(leaves)


FOREST = MemoryTiles(leaves_of(70_000))  # three levels of tiles
ROOTS = {size: FOREST.root(size) for size in (0, 1, 255, 256, 257, 65_535, 65_536, 65_537, 70_000)}


@unhurried
@given(st.data())
def test_every_leaf_is_in_every_tree_that_holds_it(data: st.DataObject) -> None:
    size = data.draw(st.one_of(st.sampled_from(sorted(set(ROOTS) - {0})), st.integers(1, 70_000)))
    index = data.draw(st.integers(0, size - 1))

    verify_inclusion(
        leaf_hash(f"leaf {index}".encode()), index, size, inclusion_proof(FOREST, index, size), FOREST.root(size)
    )


@unhurried
@given(st.data())
def test_every_tree_continues_every_smaller_one(data: st.DataObject) -> None:
    sizes = st.one_of(st.sampled_from(sorted(ROOTS)), st.integers(0, 70_000))
    old, new = sorted([data.draw(sizes), data.draw(sizes)])

    verify_consistency(old, new, FOREST.root(old), FOREST.root(new), consistency_proof(FOREST, old, new))


@unhurried
@given(st.data())
def test_a_proof_with_any_bit_changed_is_refused(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 2_000))
    index = data.draw(st.integers(0, size - 1))
    hash, root = leaf_hash(f"leaf {index}".encode()), FOREST.root(size)
    parts = [hash, root, *inclusion_proof(FOREST, index, size)]
    at, bit = data.draw(st.integers(0, len(parts) - 1)), data.draw(st.integers(0, 255))
    parts[at] = (int.from_bytes(parts[at], "big") ^ 1 << bit).to_bytes(32, "big")

    with pytest.raises(InvalidProof):
        verify_inclusion(parts[0], index, size, parts[2:], parts[1])


@unhurried
@given(st.data())
def test_a_proof_of_another_leaf_or_of_another_length_is_refused(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 2_000))
    index = data.draw(st.integers(0, size - 1))
    other = data.draw(st.integers(0, size - 1).filter(lambda other: other != index))
    path, root = inclusion_proof(FOREST, index, size), FOREST.root(size)
    hash = leaf_hash(f"leaf {index}".encode())

    for wrong_index, wrong_path in (
        (other, path),
        (index, path[:-1]),
        (index, [*path, root]),
        (size, path),
        (-1, path),
    ):
        with pytest.raises(InvalidProof):
            verify_inclusion(hash, wrong_index, size, wrong_path, root)


@unhurried
@given(st.data())
def test_a_rewritten_history_is_not_a_continuation(data: st.DataObject) -> None:
    new = data.draw(st.integers(2, 300))
    old = data.draw(st.integers(1, new))
    at = data.draw(st.integers(0, old - 1))
    rewritten = leaves_of(new)
    rewritten[at] = b"another leaf"
    tiles = MemoryTiles(rewritten)

    with pytest.raises(InvalidProof):
        verify_consistency(old, new, FOREST.root(old), tiles.root(new), consistency_proof(tiles, old, new))


def test_hashes_of_another_length_are_no_proof() -> None:
    with pytest.raises(InvalidProof, match="32 bytes"):
        verify_inclusion(b"short", 0, 1, [], b"short")
    with pytest.raises(InvalidProof, match="frontier"):
        Frontier(3, [EMPTY])


def test_a_tile_that_is_cut_names_itself() -> None:
    tiles = MemoryTiles(leaves_of(300))
    tiles.tiles[0, 1] = tiles.tiles[0, 1][:-32]

    with pytest.raises(InvalidProof, match="Tile 1 of level 0 ends before hash 43"):
        tiles.root(300)
