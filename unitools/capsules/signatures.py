"""Signatures: who says that a capsule is theirs.

A DSSE envelope around an in-toto Statement v1 whose one subject is the capsule's digest, signed with Ed25519. The envelope stands in
a file of its own beside the capsule, so the digest of what is signed is that of the whole file.

Envelopes, signatures and the ids of keys are securesystemslib's, the library of in-toto and TUF, which others read as well. The
statement itself is a plain JSON object: its Python bindings (in-toto-attestation, last released in 2023) would bring protobuf for four
fields. The library is loaded when something is signed or checked.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import CryptoSigner, Signature, SSlibKey  # type: ignore[attr-defined]  # its __init__ names no __all__

from unitools.capsules.errors import AnotherCapsule, NotAKey, NotAnEnvelope, UnknownSigner, WrongSignature
from unitools.strict_json import STRICT, JsonRefused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unitools.capsules.layout import Capsule

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:unitools:capsule:v1"
MAX_ENVELOPE_BYTES = 64 * 1024
MAX_SIGNATURES = 16
MAX_KEY_BYTES = 4096


@dataclass(frozen=True, slots=True)
class CapsuleKey:
    """``pem``: as it is published. ``id``: 64 hexadecimal digits that signatures name it by, made from the key itself."""

    pem: str

    @property
    def id(self) -> str:
        return str(self.checker.keyid)

    @property
    def checker(self) -> SSlibKey:
        return SSlibKey.from_crypto(load_pem_public_key(self.pem.encode()))


def read_public_key(pem: str | bytes) -> CapsuleKey:
    """A public key as ``openssl pkey -pubout`` prints it."""
    data = pem.encode() if isinstance(pem, str) else pem
    if b"PRIVATE KEY" in data:
        raise NotAKey("This is a private key. Keep it to yourself, and give the public one (openssl pkey -pubout).")
    try:
        key = load_pem_public_key(data) if len(data) <= MAX_KEY_BYTES else None
    except (ValueError, UnsupportedAlgorithm) as error:
        raise NotAKey("This is no public key in PEM (-----BEGIN PUBLIC KEY-----).") from error
    if not isinstance(key, Ed25519PublicKey):
        raise NotAKey("The key is not an Ed25519 key. Make one with: openssl genpkey -algorithm ed25519")
    return CapsuleKey(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


def _private_key(pem: bytes) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise NotAKey("The private key is protected by a password; give it without one.") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise NotAKey("This is no private key in PEM (-----BEGIN PRIVATE KEY-----).") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise NotAKey("The key is not an Ed25519 key. Make one with: openssl genpkey -algorithm ed25519")
    return key


def build_statement(capsule: Capsule) -> dict[str, Any]:
    """What is signed. The names in it are for people; only the digest says which capsule it is."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": f"{capsule.package}.capsule", "digest": {"sha256": capsule.digest.removeprefix("sha256:")}}
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"package": capsule.package, "tools": capsule.tools},
    }


def sign(capsule: Capsule, private_pem: bytes) -> bytes:
    """The envelope, as the bytes of the file beside the capsule. The same key and capsule give the same bytes."""
    payload = json.dumps(build_statement(capsule), ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    envelope = Envelope(payload, PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(_private_key(private_pem)))
    return json.dumps(envelope.to_dict(), separators=(",", ":")).encode() + b"\n"


def read_signers(envelope: bytes) -> list[str]:
    """The ids of the keys that an envelope names. Nothing is believed of it yet."""
    return list(_opened(envelope).signatures)


def verify(capsule: Capsule, envelope: bytes, keys: Iterable[CapsuleKey]) -> CapsuleKey:
    """Which of ``keys`` signed exactly this capsule: the first one that the envelope names."""
    opened = _opened(envelope)
    _check_statement(opened, capsule)
    known = {key.id: key for key in keys}
    named = next((known[id] for id in opened.signatures if id in known), None)
    if named is None:
        said = ", ".join(id if id.isalnum() else repr(id) for id in opened.signatures)[:200]
        raise UnknownSigner(f"No trusted key signed it; the signature names {said or 'none'}.")
    try:
        named.checker.verify_signature(opened.signatures[named.id], opened.pae())
    except UnverifiedSignatureError as error:
        raise WrongSignature(f"The signature of {named.id} does not fit the capsule.") from error
    return named


def _opened(envelope: bytes) -> Envelope:
    """Stricter than the library: one spelling, nothing besides, and no name twice."""
    if len(envelope) > MAX_ENVELOPE_BYTES:
        raise NotAnEnvelope(f"The envelope has more than {MAX_ENVELOPE_BYTES:,} bytes.")
    document = _json(envelope, "The envelope")
    match document:
        case {"payloadType": str(kind), "payload": str(payload), "signatures": list(listed), **more} if not more:
            pass
        case _:
            raise NotAnEnvelope("The envelope does not have exactly payloadType, payload and signatures.")
    if kind != PAYLOAD_TYPE or len(listed) > MAX_SIGNATURES:
        raise NotAnEnvelope(f"The envelope is not of {PAYLOAD_TYPE}, or has more than {MAX_SIGNATURES} signatures.")
    signatures: dict[str, Signature] = {}
    for each in listed:
        match each:
            case {"keyid": str(id), "sig": str(text), **more} if not more and id not in signatures:
                signatures[id] = Signature(id, _bytes(text).hex())
            case _:
                raise NotAnEnvelope("A signature does not have exactly a keyid and a sig, or a key signed twice.")
    return Envelope(_bytes(payload), kind, signatures)


def _check_statement(envelope: Envelope, capsule: Capsule) -> None:
    said = _json(envelope.payload, "What was signed")
    wanted = build_statement(capsule)
    if not isinstance(said, dict) or {name: said.get(name) for name in ("_type", "predicateType")} != {
        name: wanted[name] for name in ("_type", "predicateType")
    }:
        raise NotAnEnvelope(f"What was signed is no statement of {STATEMENT_TYPE} about a capsule ({PREDICATE_TYPE}).")
    if said != wanted:
        raise AnotherCapsule(f"What was signed is not the capsule {capsule.digest}.")


def _bytes(text: str) -> bytes:
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error) as error:
        raise NotAnEnvelope("The envelope holds something that is not base64.") from error
    if base64.b64encode(data).decode() != text:
        raise NotAnEnvelope("The envelope holds base64 that is not in its one form.")
    return data


def _json(data: bytes, what: str) -> Any:
    try:
        return STRICT.read(data)
    except JsonRefused as refusal:
        twice = refusal.code == "duplicate_key"
        raise NotAnEnvelope(f"{what} has a key twice in one object." if twice else f"{what} is not JSON.") from refusal
