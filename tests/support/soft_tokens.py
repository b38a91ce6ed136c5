"""Soft tokens: PKCS#11 tokens of SoftHSM, a library that behaves like a hardware security module."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pkcs11

MODULE = "/usr/lib/softhsm/libsofthsm2.so"
PIN = "4321"


@cache
def _store() -> Path:
    """Where the tokens of this process and its children are: the library reads its configuration once."""
    assert Path(MODULE).is_file() and shutil.which("softhsm2-util"), "Type:  apt-get install softhsm2"
    folder = Path(tempfile.mkdtemp(prefix="toolhub-softhsm-"))
    (folder / "tokens").mkdir()
    (folder / "pin").write_text(PIN + "\n")
    (folder / "softhsm2.conf").write_text(
        f"directories.tokendir = {folder}/tokens\nobjectstore.backend = file\nlog.level = ERROR\n"
    )
    os.environ["SOFTHSM2_CONF"] = str(folder / "softhsm2.conf")
    return folder


def make_token(name: str, *, prefix: str = "") -> str:
    """An empty token; its PKCS#11 URI."""
    folder = _store()
    subprocess.run(
        ["softhsm2-util", "--init-token", "--free", "--label", name, "--pin", PIN, "--so-pin", PIN],
        check=True,
        capture_output=True,
    )
    pkcs11.lib(MODULE).reinitialize()  # it sees the tokens that were there when it was initialised
    return (
        f"pkcs11:token={name}{f';object={prefix}' if prefix else ''}?module-path={MODULE}&pin-source=file:{folder}/pin"
    )


def list_files() -> set[str]:
    """Names of all files of the tokens."""
    return {path.name for path in _store().rglob("*") if path.is_file()}
