"""Notes: who signed a text, and which tree it speaks of.

Signed notes (c2sp.org/signed-note) with Ed25519 signatures, checkpoints (c2sp.org/tlog-checkpoint) as their text, and the
timestamped cosignatures of witnesses (c2sp.org/tlog-cosignature, cosignature/v1).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature as WrongSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from .merkle import HASH_BYTES
from .problems import InvalidSignature, MalformedEvidence, UnknownSigner
from .strict import decode_base64, decode_decimal, decode_text, encode_base64

if TYPE_CHECKING:
    from collections.abc import Iterable

ED25519 = 0x01
COSIGNATURE = 0x04

MAX_NOTE_BYTES = 1_000_000
MAX_SIGNATURES = 100

_DASH = "\u2014 "
_KEY_BYTES = 32
_ID_BYTES = 4
_TIME_BYTES = 8


@dataclass(frozen=True)
class VerifierKey:
    """A public key with the name of its owner, written ``name+hash+base64``: a *vkey*."""

    name: str
    alg: int
    public: bytes

    @classmethod
    def parse(cls, vkey: str) -> VerifierKey:
        name, _, rest = vkey.partition("+")
        id, _, encoded = rest.partition("+")
        _check_name(name)
        data = decode_base64(encoded, where=f"The key of {name}")
        if len(data) != 1 + _KEY_BYTES or data[0] not in (ED25519, COSIGNATURE):
            raise MalformedEvidence(f"The key of {name} is neither an Ed25519 key nor one of a witness.")
        key = cls(name, data[0], data[1:])
        if key.id.hex() != id:
            raise MalformedEvidence(
                f"The key of {name} has the hash {key.id.hex()}, not {id!r}: it was changed or cut."
            )
        return key

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{encode_base64(bytes([self.alg]) + self.public)}"

    @property
    def id(self) -> bytes:
        """What signatures name the key by."""
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([self.alg]) + self.public).digest()[:_ID_BYTES]

    def check(self, text: str, signature: bytes) -> int | None:
        """Raise :class:`InvalidSignature` unless ``signature`` (without the key's hash) fits; returns a cosignature's time."""
        at = None
        message = text.encode()
        if self.alg == COSIGNATURE:
            at = int.from_bytes(signature[:_TIME_BYTES], "big")
            if at >= 1 << 63:
                raise InvalidSignature(f"The cosignature of {self.name} ({self.id.hex()}) has no time.")
            signature, message = signature[_TIME_BYTES:], cosigned_message(text, at)
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except (WrongSignature, ValueError) as error:
            raise InvalidSignature(f"The signature of {self.name} ({self.id.hex()}) does not fit the text.") from error
        return at


@dataclass(frozen=True)
class Signer:
    """A private key with the name of its owner."""

    name: str
    private: Ed25519PrivateKey

    @property
    def key(self) -> VerifierKey:
        _check_name(self.name)
        return VerifierKey(self.name, ED25519, self.private.public_key().public_bytes_raw())

    def line(self, text: str) -> str:
        """The signature line for a note's text."""
        return _line(self.key, self.private.sign(text.encode()))


@dataclass(frozen=True)
class Cosigner:
    """The key of a witness, which says *when* it saw a checkpoint (seconds since 1970)."""

    name: str
    private: Ed25519PrivateKey

    @property
    def key(self) -> VerifierKey:
        _check_name(self.name)
        return VerifierKey(self.name, COSIGNATURE, self.private.public_key().public_bytes_raw())

    def line(self, text: str, *, at: int) -> str:
        return _line(self.key, at.to_bytes(_TIME_BYTES, "big") + self.private.sign(cosigned_message(text, at)))


@dataclass(frozen=True)
class NoteSignature:
    """One signature line. ``at`` is known of verified cosignatures only."""

    name: str
    id: bytes
    data: bytes
    at: int | None = None

    @property
    def line(self) -> str:
        return f"{_DASH}{self.name} {encode_base64(self.id + self.data)}\n"


@dataclass(frozen=True)
class Note:
    """A text, the signatures that were verified, and those by keys that the verifier does not know."""

    text: str
    verified: tuple[NoteSignature, ...]
    unknown: tuple[NoteSignature, ...] = ()


@dataclass(frozen=True)
class Checkpoint:
    """The head of a log: how many leaves it has, and the root of their tree."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def text(self) -> str:
        return "".join(f"{line}\n" for line in (self.origin, self.size, encode_base64(self.root), *self.extensions))

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        if not text.endswith("\n"):
            raise MalformedEvidence("A checkpoint does not end in a newline.")
        lines = text[:-1].split("\n")
        if len(lines) < 3 or not all(lines):
            raise MalformedEvidence("A checkpoint has fewer than three lines, or an empty one.")
        origin, size, root, *extensions = lines
        hash = decode_base64(root, where=f"The root of {origin}")
        if len(hash) != HASH_BYTES:
            raise MalformedEvidence(f"The root of {origin} does not have {HASH_BYTES} bytes.")
        return cls(origin, decode_decimal(size, where=f"The size of {origin}"), hash, tuple(extensions))


def sign(text: str, *signers: Signer) -> str:
    """The text as a note with a signature of each signer."""
    _check_text(text)
    return text + "\n" + "".join(signer.line(text) for signer in signers)


def add_lines(note: str, *lines: str) -> str:
    """The note with further signature lines, such as those of witnesses."""
    split_note("".join([note, *lines]))
    return "".join([note, *lines])


def split_note(note: str | bytes) -> tuple[str, list[NoteSignature]]:
    """The text and the signatures of a note; nothing is verified."""
    data = note.encode("utf-8", "surrogatepass") if isinstance(note, str) else note
    if len(data) > MAX_NOTE_BYTES:
        raise MalformedEvidence(f"A note has more than {MAX_NOTE_BYTES} bytes.")
    whole = decode_text(data, where="A note")
    head, separator, tail = whole.rpartition("\n\n")
    if not separator or not tail.endswith("\n"):
        raise MalformedEvidence("A note does not consist of a text, an empty line and signature lines.")
    text, lines = head + "\n", tail[:-1].split("\n")
    _check_text(text)
    if len(lines) > MAX_SIGNATURES:
        raise MalformedEvidence(f"A note has more than {MAX_SIGNATURES} signatures.")
    return text, [_parse_line(line) for line in lines]


def open_note(note: str | bytes, keys: Iterable[str | VerifierKey]) -> Note:
    """The note, if at least one of ``keys`` (vkeys) signed it and no signature by one of them is wrong.

    Signatures by other keys are ignored, as the format wants it.
    Raises :class:`UnknownSigner`, :class:`InvalidSignature` or :class:`MalformedEvidence`.
    """
    text, signatures = split_note(note)
    known: dict[tuple[str, bytes], VerifierKey] = {}
    for given in keys:
        key = VerifierKey.parse(given) if isinstance(given, str) else given
        if known.setdefault((key.name, key.id), key) != key:
            raise MalformedEvidence(f"Two keys of {key.name} have the same hash {key.id.hex()}.")
    verified: dict[tuple[str, bytes], NoteSignature] = {}
    unknown = []
    for found in signatures:
        name_and_id = (found.name, found.id)
        if name_and_id not in known:
            unknown.append(found)
            continue
        at = known[name_and_id].check(text, found.data)
        verified.setdefault(name_and_id, NoteSignature(found.name, found.id, found.data, at))
    if not verified:
        names = ", ".join(sorted({found.name for found in signatures}))
        raise UnknownSigner(f"No trusted key signed this note; it names {names}.")
    return Note(text, tuple(verified.values()), tuple(unknown))


def open_checkpoint(note: str | bytes, keys: Iterable[str | VerifierKey], *, origin: str | None = None) -> Checkpoint:
    """The checkpoint of a note that the log itself signed: with a key that bears the name of the checkpoint's origin."""
    trusted = [VerifierKey.parse(key) if isinstance(key, str) else key for key in keys]
    opened = open_note(note, trusted)
    checkpoint = Checkpoint.parse(opened.text)
    if origin is not None and checkpoint.origin != origin:
        raise UnknownSigner(f"This is a checkpoint of {checkpoint.origin}, not of {origin}.")
    own = {key.id for key in trusted if key.alg == ED25519 and key.name == checkpoint.origin}
    if not any(found.name == checkpoint.origin and found.id in own for found in opened.verified):
        raise UnknownSigner(f"The checkpoint of {checkpoint.origin} is not signed by a trusted key of that name.")
    return checkpoint


def clock_name(origin: str) -> str:
    """The name of the keys with which the owner of a log says when a checkpoint was signed. A clock of one's own is no witness."""
    return f"{origin.rpartition('/')[0]}/clock"


def cosigned_message(text: str, at: int) -> bytes:
    """What a witness signs for a checkpoint's text."""
    return f"cosignature/v1\ntime {at}\n{text}".encode()


def _line(key: VerifierKey, signature: bytes) -> str:
    return NoteSignature(key.name, key.id, signature).line


def _parse_line(line: str) -> NoteSignature:
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH):
        raise MalformedEvidence(f"A signature line of a note does not begin with {_DASH.strip()!r} and a space.")
    _check_name(name)
    data = decode_base64(encoded, where=f"A signature of {name}")
    if len(data) <= _ID_BYTES:
        raise MalformedEvidence(f"A signature of {name} is too short.")
    return NoteSignature(name, data[:_ID_BYTES], data[_ID_BYTES:])


def _check_name(name: str) -> None:
    if not name or "+" in name or any(character.isspace() for character in name):
        raise MalformedEvidence(f"{name!r} is no name of a key: it is empty, or has white space or a plus sign in it.")


def _check_text(text: str) -> None:
    if not text.endswith("\n") or any(character < " " and character != "\n" for character in text):
        raise MalformedEvidence("The text of a note does not end in a newline, or has control characters.")
