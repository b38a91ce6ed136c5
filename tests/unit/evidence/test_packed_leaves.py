"""Packed leaves: is each found again byte for byte, also what was packed before, and is nothing made of what somebody has changed?"""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evidence.packed_leaves import MAX_LEAF_BYTES, WORDS, pack_leaf, unpack_leaf
from kernel.ids import encode, new_id

HERE = Path(__file__).parent
GOLDEN = [json.loads(line)["leaf"].encode() for line in (HERE / "golden_leaves.jsonl").read_text("utf-8").splitlines()]
PACKED = [json.loads(line) for line in (HERE / "golden_packed_leaves.jsonl").read_text("utf-8").splitlines()]
BEGIN = max((leaf for leaf in GOLDEN if b'"kind":"invocation.began"' in leaf), key=len)
ID, DIGITS = encode("inv", new_id()).encode(), b"0f" * 32


def test_what_was_packed_once_is_unpacked_for_ever() -> None:
    """The words are those of then, too: never edit either file."""
    assert hashlib.sha256(WORDS).hexdigest() == "d7db443c44f4b24536c16dba19c917db248290382c82f844e390752c45efd1f4"
    assert len(PACKED) > 20
    for each in PACKED:
        assert unpack_leaf(bytes.fromhex(each["packed"])) == each["leaf"].encode()


def test_every_golden_leaf_is_found_again_in_fewer_bytes() -> None:
    for leaf in GOLDEN:
        packed = pack_leaf(leaf)
        assert unpack_leaf(packed) == leaf
        assert len(packed) < len(leaf)


def test_a_leaf_of_before_is_read_as_it_is() -> None:
    for leaf in GOLDEN:
        assert unpack_leaf(leaf) == leaf


_texts = st.lists(
    st.one_of(
        st.binary(max_size=8),
        st.sampled_from(
            [
                *(b'"%s"' % each for each in (ID, ID[4:], DIGITS, DIGITS[:32], DIGITS[:63], b"hmac-sha256:" + DIGITS)),
                *(b'"', b'{"kind":"', b"\1", b"\1\2", b"\1 "),
            ]
        ),
    ),
    max_size=40,
).map(b"".join)


@given(_texts)
@example(b"")
@example(b"\0")
@example(b"\1")
@example(b'"inv_8' + b"z" * 25 + b'"')  # more than 128 bits
@example(b'"' + b'","'.join(encode("inv", new_id()).encode() for _ in range(300)) + b'"')
@example(b'{"n":"' + b"x" * MAX_LEAF_BYTES + b'"}')
def test_whatever_bytes_a_leaf_has_they_are_found_again(leaf: bytes) -> None:
    assert unpack_leaf(pack_leaf(leaf)) == leaf


@given(st.binary(max_size=300))
def test_what_is_nothing_packed_is_read_as_it_stands_there_or_as_some_other_leaf(stored: bytes) -> None:
    assert len(unpack_leaf(b"\1" + stored)) <= max(MAX_LEAF_BYTES, len(stored) + 1)


def test_a_bit_that_was_changed_makes_another_leaf() -> None:
    """But for the last bits of the last byte of the text, which say nothing."""
    packed = pack_leaf(BEGIN)
    changes = [
        packed[:at] + bytes([packed[at] ^ 1 << bit]) + packed[at + 1 :] for at in range(len(packed)) for bit in range(8)
    ]

    assert sum(unpack_leaf(changed) == BEGIN for changed in changes) < 8


def test_more_or_less_than_was_packed_is_nothing_packed() -> None:
    packed = pack_leaf(BEGIN)
    for changed in (packed + b"\0", packed[:-1], packed[:40], packed[:1]):
        assert unpack_leaf(changed) == changed


def _deflate(text: bytes) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -13, zdict=WORDS)
    return b"\1" + deflater.compress(text) + deflater.flush()


@pytest.mark.parametrize(
    "bomb",
    [
        _deflate(b"x" * (MAX_LEAF_BYTES + 1)),
        _deflate(b"x" * 100_000_000),
        _deflate(b"\1\4" + b"\1 " * 8_000) + bytes(32),
        _deflate(b"\1 "),
        _deflate(b"\1"),
    ],
    ids=["a byte too many", "a hundred million bytes", "many bytes from marks", "a mark of nothing", "a mark alone"],
)
def test_no_more_is_unpacked_than_a_leaf_may_have(bomb: bytes) -> None:
    assert unpack_leaf(bomb) == bomb
