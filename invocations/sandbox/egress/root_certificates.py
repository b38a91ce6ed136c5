"""Root certificates: whom tools trust, where the operator names an authority of their own."""

from __future__ import annotations

import ssl
from pathlib import Path

_BUNDLE = "ca-certificates.crt"  # what Debian and others call it, in the folder that OpenSSL looks into
_BEGIN = b"-----BEGIN CERTIFICATE-----"


def _public() -> bytes:
    """The roots that this process itself trusts, in one file; nothing where it has none."""
    paths = ssl.get_default_verify_paths()
    files = [Path(paths.cafile)] if paths.cafile else []
    files += [Path(paths.capath, _BUNDLE)] if paths.capath else []
    return next((file.read_bytes() for file in files if file.is_file()), b"")


def read_roots(file: Path) -> bytes:
    """One bundle: libraries take a single file, and who names an authority of their own means it beside the public ones."""
    try:
        own = file.read_bytes()
    except OSError as error:
        raise OSError(f"TOOLHUB_SANDBOX_CA_FILE cannot be read: {error}") from error
    if _BEGIN not in own:
        raise OSError(f"TOOLHUB_SANDBOX_CA_FILE names {file}, which holds no certificate in PEM form.")
    return own.rstrip() + b"\n" + _public()
