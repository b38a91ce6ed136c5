"""Capsules that tests make: good ones, and keys to sign them with."""

from __future__ import annotations

import zipfile
from io import BytesIO
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.support.manifests import manifest
from unitools.capsules import Capsule, pack_capsule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
ANOTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
SOURCE = "def run(text: str = '') -> dict:\n    return {'said': text.upper()}\n"


def pem_of(key: Any = PRIVATE) -> bytes:
    return bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def public_pem_of(key: Any = PRIVATE) -> str:
    return str(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


def shouting(version: str = "1.0.0", name: str = "shout", **changes: Any) -> dict[str, Any]:
    """A manifest of a tool that no tools root has."""
    said = {
        "id": f"acme.voice.{name}",
        "version": version,
        "implementation": {"module": "acme_voice.main", "entry": "run"},
    }
    return manifest(name, **(said | changes))


def capsule(*manifests: dict[str, Any], source: str = SOURCE, **more: Any) -> Capsule:
    files = {"acme_voice/__init__.py": b"", "acme_voice/main.py": source.encode()}
    return pack_capsule(manifests or [shouting()], files, **more)


def zipped(files: Mapping[str, bytes] | Sequence[tuple[Any, bytes]], kind: int = zipfile.ZIP_STORED) -> bytes:
    """A zip that anybody may have written."""
    memory = BytesIO()
    with zipfile.ZipFile(memory, "w", kind) as archive:
        for name, content in files if not hasattr(files, "items") else files.items():
            archive.writestr(name, content)
    return memory.getvalue()


def entries_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
