"""Debian: how files of Debian's packages get here without a container registry.

They are downloaded and unpacked, and none of their scripts is run (7 s instead of 28): what comes of it is taken apart, it
never boots.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.provision import packages
from scripts.provision.console import run_program

if TYPE_CHECKING:
    from collections.abc import Sequence

SUITE = "bookworm"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def read_package_names(*files: Path) -> list[str]:
    """The package names in lists with one a line; comments and blank lines are allowed."""
    lines = (line.strip() for file in files for line in file.read_text().splitlines())
    return sorted({line for line in lines if line and not line.startswith("#")})


def unpack_packages(
    names: Sequence[str], archive: Path, *, by_hand: str, inside: Sequence[Sequence[str]] = (), **given: Path
) -> None:
    """Unpack these packages and what they need into a root file system, and that into ``archive``.

    With ``inside`` these commands are run in there, with each folder that is ``given`` at ``/build/<its name>``; then
    the archive gets ``/rootfs`` only, which they made.
    """
    mine = () if os.geteuid() == 0 else ("uidmap",)  # lets a user unpack files that belong to root
    packages.ensure_packages("mmdebstrap", *mine, purpose="Making a sandbox image without a container registry")
    if not KEYRING.exists():
        packages.ensure_packages("debian-archive-keyring", purpose="Checking the signatures of Debian's packages")
    command = [
        "mmdebstrap",
        "--variant=extract",
        f"--include={','.join(names)}",
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        '--aptopt=Acquire::Languages "none"',
    ]
    if inside:
        copies = [
            f'mkdir -p "$1/build" && cp -r {shlex.quote(str(path))} "$1/build/{name}"' for name, path in given.items()
        ]
        calls = [f'chroot "$1" {shlex.join(call)}' for call in inside]
        made = f'tar --directory "$1/rootfs" --create --file {shlex.quote(str(archive))} .'
        command += ["--format=null", *(f"--extract-hook={hook}" for hook in (*copies, *calls, made))]
    remedy = f"Are Debian's packages ({SUITE}) reachable from here?"
    if os.geteuid() != 0:
        remedy += f"\nIf this user may not make namespaces, type (as root):  {by_hand}"
    run_program([*command, SUITE, "-" if inside else str(archive)], remedy=remedy)
