"""Identities: by which certificate a worker or a host says who it is, and whom it believes.

TLS 1.3 only, both sides have a certificate of one authority. The files are looked at again before each connection, so a new
certificate counts without a restart.
"""

from __future__ import annotations

import ssl
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cryptography import x509

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class IdentityUnusable(Exception):
    """The files cannot be used. The message says which, and why."""


@dataclass(frozen=True, slots=True)
class IdentityFiles:
    """``authority``: who signs for both sides; ``certificate`` and ``key``: of this side. All PEM."""

    authority: Path
    certificate: Path
    key: Path


class Identity:
    """May be used from many threads. ``serves``: the side that is connected to."""

    def __init__(self, files: IdentityFiles, *, serves: bool) -> None:
        self.files = files
        self._serves = serves
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._seen: tuple[tuple[int, int], ...] = ()

    def load(self) -> ssl.SSLContext:
        """The context of the files as they are now."""
        with self._lock:
            seen = self._look()
            if self._context is None or seen != self._seen:
                self._context, self._seen = self._build(), seen
            return self._context

    def count_days_left(self) -> int:
        """For how many days its certificate holds; less than 0 when it has run out."""
        try:
            certificate = x509.load_pem_x509_certificate(self.files.certificate.read_bytes())
        except (OSError, ValueError) as error:
            raise IdentityUnusable(f"{self.files.certificate} cannot be read: {error}") from error
        return (certificate.not_valid_after_utc - datetime.now(UTC)).days

    def _look(self) -> tuple[tuple[int, int], ...]:
        try:
            found = [path.stat() for path in (self.files.authority, self.files.certificate, self.files.key)]
        except OSError as error:
            raise IdentityUnusable(f"A file of the certificate is not there: {error}") from error
        return tuple((each.st_mtime_ns, each.st_ino) for each in found)

    def _build(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if self._serves else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(self.files.authority)
            context.load_cert_chain(self.files.certificate, self.files.key)
        except (OSError, ssl.SSLError) as error:
            raise IdentityUnusable(f"The certificate {self.files.certificate} cannot be used: {error}") from error
        if self._serves:
            context.num_tickets = 0  # connections are kept, and none is resumed
        return context


def read_worker_name(certificate: Mapping[str, object]) -> str:
    """Whose a verified certificate is: its first DNS name, else its common name; empty when it has neither."""
    for kind, name in certificate.get("subjectAltName", ()):  # type: ignore[attr-defined]
        if kind == "DNS":
            return str(name)
    for part in certificate.get("subject", ()):  # type: ignore[attr-defined]
        for field, name in part:
            if field == "commonName":
                return str(name)
    return ""
