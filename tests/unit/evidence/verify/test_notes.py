"""Notes: are notes and checkpoints read as C2SP writes them, and in no other way?"""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from evidence.verify.notes import (
    Checkpoint,
    Cosigner,
    NoteSignature,
    Signer,
    VerifierKey,
    add_lines,
    cosigned_message,
    open_checkpoint,
    open_note,
    sign,
)
from evidence.verify.problems import InvalidEvidence, InvalidSignature, MalformedEvidence, UnknownSigner
from tests.unit.evidence.verify.trees import ORIGIN, SIGNER, private_key, unhurried

# golang.org/x/mod/sumdb/note, note_test.go and the package's documentation (BSD): the key and the note of PeterNeumann.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETERS_TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
PETERS_NOTE = (
    PETERS_TEXT
    + "\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)

# transparency-dev/formats, note/note_cosigv1_test.go: the key of a witness.
REMORA = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2"

TEXT = Checkpoint(ORIGIN, 7, bytes(32)).text()
NOTE = sign(TEXT, SIGNER)
VKEY = str(SIGNER.key)
WITNESS = Cosigner("witness.example/w1", private_key(2))


def test_a_note_that_the_go_team_signed_is_opened() -> None:
    opened = open_note(PETERS_NOTE, [PETER])

    assert opened.text == PETERS_TEXT
    assert [found.name for found in opened.verified] == ["PeterNeumann"]


def test_a_key_reads_back_as_it_was_written() -> None:
    assert str(VerifierKey.parse(PETER)) == PETER
    assert str(VerifierKey.parse(REMORA)) == REMORA
    assert VerifierKey.parse(VKEY) == SIGNER.key


@pytest.mark.parametrize(
    "vkey",
    [
        "",
        "name",
        PETER.replace("c74f20a3", "c74f20a4"),
        PETER.replace("c74f20a3", "C74F20A3"),
        PETER.replace("10TW", "10TX"),
        PETER + "\n",
        PETER.replace("PeterNeumann", "Peter Neumann"),
        "x+00000000+BBBB",
    ],
)
def test_a_key_that_was_changed_or_cut_is_refused(vkey: str) -> None:
    with pytest.raises(MalformedEvidence):
        VerifierKey.parse(vkey)


@unhurried
@given(st.data())
def test_a_note_with_any_byte_changed_is_refused(data: st.DataObject) -> None:
    raw = bytearray(NOTE.encode())
    at, bit = data.draw(st.integers(0, len(raw) - 1)), data.draw(st.integers(0, 7))
    raw[at] ^= 1 << bit

    with pytest.raises(InvalidEvidence):
        open_note(bytes(raw), [VKEY])


@pytest.mark.parametrize(
    "note",
    [
        "",
        TEXT,
        TEXT + "\n",
        NOTE[:-1],
        NOTE.replace("\n\n", "\n"),
        NOTE + "\n",
        NOTE.replace("— ", "- "),
        NOTE.replace("— ", "—  "),
        NOTE.replace("=\n", "\n"),
        NOTE.replace("\n— ", "\r\n— "),
        NOTE.replace("7\n", "7\t\n"),
        NOTE + "— x AAAA\n",
        NOTE + "— x+y AAAAAAAAAAA=\n",
        NOTE + "— a b AAAAAAAAAAA=\n",
        NOTE + "— x AAAAAAAAAAB=\n",
        NOTE + "— x AAAAAAAAAAA=\n" * 100,
        NOTE + "\ud800",
        "x" * 1_000_001,
    ],
)
def test_what_is_not_exactly_a_note_is_malformed(note: str) -> None:
    with pytest.raises(MalformedEvidence):
        open_note(note, [VKEY])


def test_signatures_by_strangers_are_ignored_and_kept() -> None:
    stranger = Signer("stranger.example", private_key(3))

    opened = open_note(sign(TEXT, stranger, SIGNER), [VKEY])

    assert [found.name for found in opened.verified] == [ORIGIN]
    assert [found.name for found in opened.unknown] == ["stranger.example"]
    assert opened.unknown[0].line == stranger.line(TEXT)
    with pytest.raises(UnknownSigner, match=r"names hub\.example/evidence/ten_1, stranger\.example"):
        open_note(sign(TEXT, stranger, SIGNER), [])


def test_a_wrong_signature_by_a_known_key_spoils_the_note_even_beside_a_right_one() -> None:
    second = Signer("second.example", private_key(3))
    note = add_lines(NOTE, second.line("another text\n"))

    with pytest.raises(InvalidSignature, match=r"second\.example"):
        open_note(note, [VKEY, second.key])
    with pytest.raises(InvalidSignature):
        open_note(NOTE.replace("7\n", "8\n"), [VKEY])


def test_a_witness_says_when_it_saw_the_checkpoint() -> None:
    note = add_lines(NOTE, WITNESS.line(TEXT, at=1_700_000_000))

    opened = open_note(note, [VKEY, str(WITNESS.key)])

    assert [found.at for found in opened.verified] == [None, 1_700_000_000]
    seen = opened.verified[1]
    moved = NoteSignature(seen.name, seen.id, (1_700_000_001).to_bytes(8, "big") + seen.data[8:])
    with pytest.raises(InvalidSignature, match=r"witness\.example/w1"):
        open_note(add_lines(NOTE, moved.line), [VKEY, str(WITNESS.key)])


def test_a_cosignature_is_over_the_words_of_its_specification_and_has_a_time() -> None:
    """The example of c2sp.org/tlog-cosignature."""
    sofa = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    never = 1 << 63
    timeless = NoteSignature(
        WITNESS.name, WITNESS.key.id, never.to_bytes(8, "big") + WITNESS.private.sign(cosigned_message(TEXT, never))
    )

    assert cosigned_message(sofa, 1679315147).decode() == f"cosignature/v1\ntime 1679315147\n{sofa}"
    with pytest.raises(InvalidSignature, match="has no time"):
        open_note(add_lines(NOTE, timeless.line), [WITNESS.key])


def test_a_witness_s_key_is_none_for_plain_notes() -> None:
    plain = VerifierKey(WITNESS.name, 1, WITNESS.key.public)

    with pytest.raises(UnknownSigner):
        open_note(add_lines(NOTE, WITNESS.line(TEXT, at=1)), [plain])


def test_a_checkpoint_reads_back_as_it_was_written() -> None:
    checkpoint = Checkpoint(ORIGIN, 7, bytes(32), ("an extension",))

    assert Checkpoint.parse(checkpoint.text()) == checkpoint
    assert open_checkpoint(sign(checkpoint.text(), SIGNER), [VKEY], origin=ORIGIN) == checkpoint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n1\n",
        TEXT[:-1],
        TEXT.replace("7", "07"),
        TEXT.replace("7", "-7"),
        TEXT.replace("7", "٧"),
        TEXT + "\n",
        TEXT.replace("AAA=", "AAB="),
    ],
)
def test_what_is_not_exactly_a_checkpoint_is_malformed(text: str) -> None:
    with pytest.raises(MalformedEvidence):
        Checkpoint.parse(text)


def test_a_checkpoint_counts_only_if_its_own_log_signed_it() -> None:
    other = Signer("other.example", Ed25519PrivateKey.generate())

    with pytest.raises(UnknownSigner, match="of that name"):
        open_checkpoint(sign(TEXT, other), [other.key])
    with pytest.raises(UnknownSigner, match=r"not of other\.example"):
        open_checkpoint(NOTE, [VKEY], origin="other.example")
