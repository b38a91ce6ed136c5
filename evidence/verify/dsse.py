"""DSSE envelopes: who says that these files belong together.

A DSSE envelope (github.com/secure-systems-lab/dsse) around an in-toto Statement v1, which names files by their SHA-256. A key
is named as signed notes do it: ``name+hash``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidSignature as WrongSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .notes import ED25519
from .problems import InvalidSignature, MalformedEvidence, UnknownSigner
from .strict import decode_base64, decode_json, encode_base64

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .notes import Signer, VerifierKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
MAX_SIGNATURES = 16

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Statement:
    """``subjects``: file name to SHA-256 in hex. ``predicate``: what is said about them, of type ``predicate_type``."""

    subjects: dict[str, str]
    predicate_type: str
    predicate: dict[str, Any]

    def to_bytes(self) -> bytes:
        document = {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": name, "digest": {"sha256": hash}} for name, hash in sorted(self.subjects.items())],
            "predicateType": self.predicate_type,
            "predicate": self.predicate,
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def parse(cls, data: bytes) -> Statement:
        document = _object(decode_json(data, where="The statement"), "The statement")
        if document.keys() != {"_type", "subject", "predicateType", "predicate"}:
            raise MalformedEvidence("The statement does not have exactly _type, subject, predicateType and predicate.")
        if document["_type"] != STATEMENT_TYPE or not isinstance(document["predicateType"], str):
            raise MalformedEvidence(f"The statement is not of type {STATEMENT_TYPE}.")
        subjects: dict[str, str] = {}
        for each in _list(document["subject"], "The statement's subject"):
            match each:
                case {"name": str(name), "digest": {"sha256": str(hash), **others}, **more} if not others and not more:
                    if name in subjects or not _SHA256.fullmatch(hash):
                        raise MalformedEvidence(f"The statement names {name!r} twice or without a SHA-256.")
                    subjects[name] = hash
                case _:
                    raise MalformedEvidence("A subject of the statement does not have exactly a name and a SHA-256.")
        return cls(subjects, document["predicateType"], _object(document["predicate"], "The predicate"))


def signed_bytes(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """The pre-authentication encoding: what the signature is over."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def key_id(key: VerifierKey) -> str:
    return f"{key.name}+{key.id.hex()}"


def sign_statement(statement: Statement, *signers: Signer) -> bytes:
    """The envelope, as the bytes of a file."""
    payload = statement.to_bytes()
    signatures = [
        {"keyid": key_id(signer.key), "sig": encode_base64(signer.private.sign(signed_bytes(payload)))}
        for signer in signers
    ]
    envelope = {"payloadType": PAYLOAD_TYPE, "payload": encode_base64(payload), "signatures": signatures}
    return json.dumps(envelope, separators=(",", ":")).encode() + b"\n"


def open_statement(envelope: bytes, keys: Iterable[VerifierKey]) -> tuple[Statement, list[VerifierKey]]:
    """The statement and which of ``keys`` signed it: at least one, and none of them wrongly."""
    document = _object(decode_json(envelope, where="The envelope"), "The envelope")
    if document.keys() != {"payloadType", "payload", "signatures"} or document["payloadType"] != PAYLOAD_TYPE:
        raise MalformedEvidence(f"The envelope does not have exactly a payload of type {PAYLOAD_TYPE} and signatures.")
    payload = decode_base64(_text(document["payload"], "The payload"), where="The payload of the envelope")
    known = {key_id(key): key for key in keys if key.alg == ED25519}
    signatures = _list(document["signatures"], "The envelope's signatures")
    if len(signatures) > MAX_SIGNATURES:
        raise MalformedEvidence(f"The envelope has more than {MAX_SIGNATURES} signatures.")
    signed_by, named = [], []
    for each in signatures:
        match each:
            case {"keyid": str(name), "sig": str(text), **more} if not more:
                named.append(name)
                signature = decode_base64(text, where=f"The signature of {name} over the files")
            case _:
                raise MalformedEvidence("A signature of the envelope does not have exactly a keyid and a sig.")
        if key := known.get(name):
            try:
                Ed25519PublicKey.from_public_bytes(key.public).verify(signature, signed_bytes(payload))
            except (WrongSignature, ValueError) as error:
                raise InvalidSignature(f"The signature of {name} over the list of files does not fit it.") from error
            signed_by.append(key)
    if not signed_by:
        raise UnknownSigner(f"No trusted key signed the list of files; it names {', '.join(named) or 'nobody'}.")
    return Statement.parse(payload), signed_by


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MalformedEvidence(f"{what} is not a JSON object.")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise MalformedEvidence(f"{what} is not a list.")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise MalformedEvidence(f"{what} is not a text.")
    return value
