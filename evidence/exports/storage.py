"""Export storage: where the content of an export is kept.

In rows, so that any keeper goes on with it and any web process serves it; encrypted under a key of the export, which goes when the
content does.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from evidence.keys.keystore import NONCE_BYTES, get_keystore
from evidence.models import ExportChunk, ExportJob
from evidence.problems import KeyUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator


def new_key(tenant_id_bytes: bytes) -> tuple[str, bytes]:
    """The name of the master key, and a data key that it wraps."""
    return get_keystore().wrap(AESGCM.generate_key(256), context=tenant_id_bytes)


def _key(job: ExportJob) -> AESGCM:
    return AESGCM(get_keystore().unwrap(job.key_id, bytes(job.wrapped_key), context=job.tenant_id.bytes))


def _context(job: ExportJob, number: int) -> bytes:
    return job.id.bytes + number.to_bytes(4, "big")


def keep_piece(job: ExportJob, content: bytes) -> None:
    """The next piece; ``job.chunks`` and ``job.size`` say which."""
    if not content:
        return
    nonce = os.urandom(NONCE_BYTES)
    ExportChunk.objects.create(
        job=job,
        number=job.chunks,
        offset=job.size,
        size=len(content),
        nonce=nonce,
        ciphertext=_key(job).encrypt(nonce, content, _context(job, job.chunks)),
    )
    job.chunks, job.size = job.chunks + 1, job.size + len(content)


def opened_piece(job: ExportJob, row: ExportChunk) -> bytes:
    try:
        return _key(job).decrypt(bytes(row.nonce), bytes(row.ciphertext), _context(job, row.number))
    except InvalidTag as error:
        raise KeyUnavailable("A piece of an export does not belong to it, or was changed.") from error


def iter_pieces(job: ExportJob) -> Iterator[bytes]:
    for number in range(job.chunks):
        yield opened_piece(job, ExportChunk.objects.get(job=job, number=number))


def compute_digest(job: ExportJob) -> str:
    found = hashlib.sha256()
    for piece in iter_pieces(job):
        found.update(piece)
    return f"sha256:{found.hexdigest()}"


def forget_content(job: ExportJob) -> None:
    """Without its key and its pieces only the row is left, which says what it was. Saves nothing of the row."""
    ExportChunk.objects.filter(job=job).delete()
    job.key_id, job.wrapped_key = "", b""
