"""Trees: which small logs do the tests of verification speak of?"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import settings

from evidence.verify.merkle import HASH_BYTES, TILE_LEVELS, TILE_WIDTH, Frontier, Tiles, leaf_hash
from evidence.verify.notes import Signer

unhurried = settings(deadline=None)  # nothing here is about how long an example takes
ORIGIN = "hub.example/evidence/ten_1"


def private_key(seed: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(seed.to_bytes(32, "big"))


SIGNER = Signer(ORIGIN, private_key(1))


class MemoryTiles(Tiles):
    """The tiles of a tree over these leaves, kept in memory."""

    def __init__(self, leaves: list[bytes]) -> None:
        self.tiles: dict[tuple[int, int], bytes] = {}
        self.frontier = Frontier()
        self.frontier.append_many(map(leaf_hash, leaves), self._keep)
        super().__init__(lambda level, n: self.tiles.get((level, n)))

    def _keep(self, level: int, index: int, hash: bytes) -> None:
        n, at = divmod(index, TILE_WIDTH)
        key = (level // TILE_LEVELS, n)
        self.tiles[key] = self.tiles.get(key, b"") + hash
        assert len(self.tiles[key]) == (at + 1) * HASH_BYTES


def leaves_of(size: int) -> list[bytes]:
    return [f"leaf {index}".encode() for index in range(size)]
