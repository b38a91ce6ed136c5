"""Files: are the files that carry proofs, tiles and signatures read exactly as they are written?"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.verify.dsse import PAYLOAD_TYPE, Statement, open_statement, sign_statement, signed_bytes
from evidence.verify.notes import Signer
from evidence.verify.problems import InvalidEvidence, InvalidSignature, MalformedEvidence, UnknownSigner
from evidence.verify.proofs import ConsistencyProof, InclusionProof
from evidence.verify.strict import decode_base64, decode_json, encode_base64
from evidence.verify.tiles import ENTRIES, TilePath, iter_tiles, pack_entries, unpack_entries
from tests.unit.evidence.verify.trees import SIGNER, private_key, unhurried

HASHES = st.lists(st.binary(min_size=32, max_size=32), max_size=63)
NOTE = "origin\n1\nx\n\n— origin AAAA\n"


@unhurried
@given(st.integers(0, 2**63 - 1), HASHES, st.binary(max_size=40))
def test_a_tlog_proof_reads_back_as_it_was_written(index: int, path: list[bytes], extra: bytes) -> None:
    proof = InclusionProof(index, tuple(path), NOTE, extra)

    assert InclusionProof.parse(proof.text()) == proof
    assert ConsistencyProof.parse(ConsistencyProof(index, tuple(path), NOTE).text()).path == tuple(path)


ONE = InclusionProof(5, (bytes(32), bytes(32)), NOTE).text()


@pytest.mark.parametrize(
    "text",
    [
        "",
        ONE.replace("@v1", "@v2"),
        ONE.replace("index 5", "index 05"),
        ONE.replace("index 5", "index +5"),
        ONE.replace("index 5", "index 9223372036854775808"),
        ONE.replace("index 5\n", ""),
        ONE.replace("A=\n", "B=\n", 1),
        ONE.replace("A=\n", "A= \n", 1),
        ONE.replace("AAAA", "AAA", 1),
        ONE.replace("\n\n", "\n", 1),
        ONE.partition("\n\n")[0] + "\n\n",
        ONE.replace("index 5\n", "index 5\n" + encode_base64(bytes(32)) * 2 + "\n"),
        InclusionProof(5, (bytes(32),) * 64, NOTE).text(),
        ONE.replace("\n", "\r\n"),
        ONE.replace("index", "extra AA\nindex"),
    ],
)
def test_what_is_not_exactly_a_tlog_proof_is_malformed(text: str) -> None:
    with pytest.raises(MalformedEvidence):
        InclusionProof.parse(text)


@unhurried
@given(st.text(alphabet="ABab01+/= \n-_", max_size=12))
def test_base64_has_one_spelling_for_each_content(text: str) -> None:
    try:
        data = decode_base64(text, where="It")
    except MalformedEvidence:
        return
    assert encode_base64(data) == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b'{"a":1,"a":1}', "It has the key 'a' twice."),
        (b'[{"b":{"a":1,"a":2}}]', "It has the key 'a' twice."),
        (b"[NaN]", "It holds NaN, which is not JSON."),
        (b"[-Infinity]", "It holds -Infinity, which is not JSON."),
        (b'["\\ud800"]', "It is not JSON."),
        (b"[" * 100_000, "It is not JSON."),
        (b"1" * 5_000, "It is not JSON."),
        (b"\xff", "It is not UTF-8."),
        (b"{} {}", "It is not JSON."),
        (b"", "It is not JSON."),
    ],
)
def test_json_that_can_be_read_in_two_ways_is_refused(text: bytes, sentence: str) -> None:
    with pytest.raises(MalformedEvidence) as refused:
        decode_json(text, where="It")
    assert str(refused.value) == sentence


# c2sp.org/tlog-tiles: the numbers of tiles are cut into groups of three digits, all but the last with an x.
@pytest.mark.parametrize(
    ("path", "tile"),
    [
        ("tile/0/x001/x234/067", TilePath(0, 1_234_067)),
        ("tile/1/000.p/5", TilePath(1, 0, 5)),
        ("tile/entries/x001/000.p/255", TilePath(ENTRIES, 1_000, 255)),
    ],
)
def test_tiles_have_the_addresses_of_tlog_tiles(path: str, tile: TilePath) -> None:
    assert str(tile) == path
    assert TilePath.parse(path) == tile


@unhurried
@given(st.integers(-1, 63), st.integers(0, 10**12), st.integers(1, 256))
def test_the_address_of_a_tile_reads_back(level: int, n: int, width: int) -> None:
    assert TilePath.parse(str(TilePath(level, n, width))) == TilePath(level, n, width)


@pytest.mark.parametrize(
    "path",
    ["tile/0/1", "tile/0/0001", "tile/64/000", "tile/00/000", "tile/0/x000/001", "tile/0/000.p/0", "tile/0/000.p/256",
     "tile/0/000.p/01", "tile/0/000/", "/tile/0/000", "tile/0/../000", "tile/0/x1000/000", "tile/0/٠٠٠"],
)  # fmt: skip
def test_what_is_no_address_of_a_tile_is_refused(path: str) -> None:
    with pytest.raises(MalformedEvidence):
        TilePath.parse(path)


def test_a_tree_has_the_tiles_that_its_size_gives() -> None:
    assert [str(tile) for tile in iter_tiles(0)] == []
    assert [str(tile) for tile in iter_tiles(3)] == ["tile/entries/000.p/3", "tile/0/000.p/3"]
    assert [str(tile) for tile in iter_tiles(513)] == [
        "tile/entries/000", "tile/0/000", "tile/entries/001", "tile/0/001", "tile/entries/002.p/1", "tile/0/002.p/1",
        "tile/1/000.p/2",
    ]  # fmt: skip


@unhurried
@given(st.lists(st.binary(max_size=300), max_size=20), st.data())
def test_an_entry_bundle_reads_back_and_a_cut_one_is_refused(leaves: list[bytes], data: st.DataObject) -> None:
    packed = pack_entries(leaves)
    assert unpack_entries(packed) == leaves
    if packed:
        cut = packed[: data.draw(st.integers(0, len(packed) - 1))]
        try:
            assert len(unpack_entries(cut)) < len(leaves)
        except MalformedEvidence as refused:
            assert "ends within its leaf" in str(refused)


STATEMENT = Statement({"a": "0" * 64, "b": "1" * 64}, "urn:x", {"y": 1})


def test_the_bytes_that_are_signed_are_those_of_dsse() -> None:
    """The example of github.com/secure-systems-lab/dsse, protocol.md."""
    assert (
        signed_bytes(b"hello world", "http://example.com/HelloWorld")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_signed_statement_is_opened_by_its_key_and_by_no_other() -> None:
    envelope = sign_statement(STATEMENT, SIGNER)

    assert open_statement(envelope, [SIGNER.key]) == (STATEMENT, [SIGNER.key])
    with pytest.raises(UnknownSigner):
        open_statement(envelope, [Signer(SIGNER.name, private_key(5)).key])
    with pytest.raises(UnknownSigner, match="names nobody"):
        open_statement(envelope[: envelope.index(b"[")] + b"[]}", [SIGNER.key])


@unhurried
@given(st.data())
def test_an_envelope_with_any_bit_changed_is_refused(data: st.DataObject) -> None:
    raw = bytearray(sign_statement(STATEMENT, SIGNER))
    at = data.draw(st.integers(0, len(raw) - 2))  # the last byte is a newline, and other white space would do
    raw[at] ^= 1 << data.draw(st.integers(0, 7))

    with pytest.raises(InvalidEvidence):
        open_statement(bytes(raw), [SIGNER.key])


@pytest.mark.parametrize(
    "payload",
    [
        [],
        {},
        {"_type": "https://in-toto.io/Statement/v0.1"},
        {"subject": {}},
        {"subject": [{"name": "a", "digest": {"sha256": "0" * 64, "sha1": "0"}}]},
        {"subject": [{"name": "a", "digest": {"sha256": "0" * 63}}]},
        {"subject": [{"name": "a", "digest": {"sha256": "A" * 64}}]},
        {"subject": [{"name": "a", "digest": {"sha256": "0" * 64}}] * 2},
        {"predicate": []},
        {"predicateType": 1},
        {"more": 1},
    ],
)
def test_what_is_signed_must_be_a_statement(payload: object) -> None:
    document = json.loads(STATEMENT.to_bytes()) | payload if isinstance(payload, dict) and payload else payload

    with pytest.raises(MalformedEvidence):
        Statement.parse(json.dumps(document).encode())


def test_a_wrong_signature_by_a_trusted_key_is_refused_and_so_is_another_type() -> None:
    document = json.loads(sign_statement(STATEMENT, SIGNER))
    wrong = document | {"signatures": [document["signatures"][0] | {"sig": encode_base64(bytes(64))}]}

    with pytest.raises(InvalidSignature):
        open_statement(json.dumps(wrong).encode(), [SIGNER.key])
    with pytest.raises(MalformedEvidence, match=PAYLOAD_TYPE.replace("+", r"\+")):
        open_statement(json.dumps(document | {"payloadType": "text/plain"}).encode(), [SIGNER.key])
