"""Certificate authority: the hub's own, for the certificates of workers and of sandbox hosts.

A certificate of a host serves only, one of a worker asks only: neither stands in for the other. Whoever has an authority of their
own, as cert-manager, uses that; only the names and the uses count.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from invocations.sandbox.wire.identities import IdentityFiles

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

AUTHORITY, AUTHORITY_KEY = "ca.pem", "ca.key"
HOLDS = timedelta(days=90)
AUTHORITY_HOLDS = timedelta(days=3650)
_BEFORE = timedelta(minutes=5)  # clocks differ
_MAX_NAME = 64  # a common name has no more
_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*", re.IGNORECASE)


class NameUnfit(ValueError):
    """Nobody can be reached by this name. The message says what one is."""


class CertificateAuthority:
    """In a folder: its certificate, which everybody may read, and its key, which only this user may. Both are made when it is new."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not (folder / AUTHORITY).exists():
            self._make()
        self._certificate = x509.load_pem_x509_certificate((folder / AUTHORITY).read_bytes())
        key = serialization.load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key

    def issue_for_worker(self, name: str, *, holds: timedelta = HOLDS) -> IdentityFiles:
        """``name``: as the hosts allow it (TOOLHUB_BOXD_WORKERS)."""
        return self._issue(f"worker-{name}", [name], ExtendedKeyUsageOID.CLIENT_AUTH, holds)

    def issue_for_host(self, name: str, others: Sequence[str] = (), *, holds: timedelta = HOLDS) -> IdentityFiles:
        """``name`` and ``others``: names and addresses by which workers reach it."""
        return self._issue(f"host-{name}", [name, *others], ExtendedKeyUsageOID.SERVER_AUTH, holds)

    def _make(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "toolhub sandbox hosts")])
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BEFORE)
            .not_valid_after(now + AUTHORITY_HOLDS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        _write_key(self.folder / AUTHORITY_KEY, key)
        _write(self.folder / AUTHORITY, certificate.public_bytes(serialization.Encoding.PEM), 0o644)

    def _issue(self, file: str, names: Sequence[str], use: x509.ObjectIdentifier, holds: timedelta) -> IdentityFiles:
        """``file``: what its files are called, after its side and the first of its names."""
        alternatives = x509.SubjectAlternativeName([_read_name(each) for each in names])
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])]))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BEFORE)
            .not_valid_after(now + holds)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(alternatives, critical=False)
            .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        files = IdentityFiles(self.folder / AUTHORITY, self.folder / f"{file}.pem", self.folder / f"{file}.key")
        _write_key(files.key, key)
        _write(files.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        return files


def _read_name(text: str) -> x509.GeneralName:
    with suppress(ValueError):
        return x509.IPAddress(ip_address(text))
    if len(text) > _MAX_NAME or not _DNS_NAME.fullmatch(text):
        raise NameUnfit(
            f"{text!r} is neither an address nor a name of letters, digits and hyphens, with dots between, of at most "
            f"{_MAX_NAME} characters."
        )
    return x509.DNSName(text)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    _write(path, pem, 0o600)


def _write(path: Path, data: bytes, mode: int) -> None:
    """Nobody meets a half of it, and no key is open for a moment."""
    beside = path.with_name(f"{path.name}.new")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    beside.replace(path)
