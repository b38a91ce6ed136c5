"""Packages: which Debian or Ubuntu packages are missing, and how they get here."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from scripts.provision.console import SetupError, announce_step, as_root, query_program, run_program
from scripts.provision.processes import take_turn

if TYPE_CHECKING:
    from pathlib import Path

INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300")
DOWNLOAD = ("apt-get", "download")
UPDATE = ("apt-get", "update", "-o", "DPkg::Lock::Timeout=300")


def find_missing(names: tuple[str, ...]) -> list[str]:
    """Those of the packages that are not installed."""
    if not names:
        return []
    listed = query_program(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n", *names])
    if listed is None:  # dpkg-query fails as soon as one name is unknown: ask one by one
        return [
            name
            for name in names
            if "installed" not in (query_program(["dpkg-query", "-W", "-f", "${db:Status-Status}", name]) or "").split()
        ]
    installed = {line.split()[1] for line in listed.splitlines() if line.startswith("installed ")}
    return [name for name in names if name not in installed]


def is_known(name: str) -> bool:
    """Whether the lists of packages that are here have it."""
    return bool((query_program(["apt-cache", "show", "--no-all-versions", name]) or "").strip())


def ensure_packages(*names: str, purpose: str) -> None:
    """Install what is missing of these packages."""
    if find_missing(names):
        with take_turn("packages"):  # apt takes none where it updates its lists
            _install(find_missing(names), purpose)


def _install(wanted: list[str], purpose: str) -> None:
    if not wanted:
        return
    if shutil.which("apt-get") is None:
        raise SetupError(
            f"{purpose} needs {', '.join(wanted)}, and this is not a Debian or Ubuntu machine (there is no apt-get).",
            "Install them in this system's own way and run this again.",
        )
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    by_hand = f"apt-get install {' '.join(wanted)}"
    install = as_root(["env", "DEBIAN_FRONTEND=noninteractive", *INSTALL, *wanted], purpose=purpose, by_hand=by_hand)
    update = as_root(UPDATE, purpose=purpose, by_hand=by_hand)
    with announce_step(f"installing {' '.join(wanted)}", f"installed {' '.join(wanted)}"):
        try:
            run_program(install, env=env)
        except SetupError:  # package lists that are missing or too old are the usual reason
            run_program(update, env=env, remedy="Is the network there? `apt-get update` says more.")
            run_program(install, env=env, remedy=f"Type (as root):  {by_hand}\nand run this again.")


def unpack_package(name: str, folder: Path, *, purpose: str) -> None:
    """Put the files of a package into a folder, without installing it: what it would start does not start."""
    if shutil.which("apt-get") is None:
        raise SetupError(
            f"{purpose} needs the Debian package {name}, and this is not a Debian or Ubuntu machine (there is no apt-get).",
            "Install its programs in this system's own way and run this again.",
        )
    by_hand = f"apt-get update && apt-get download {name}"
    with announce_step(f"fetching {name}", f"{name} fetched"):
        try:
            run_program([*DOWNLOAD, name], cwd=folder)
        except SetupError:  # package lists that are missing or too old are the usual reason
            run_program(as_root(UPDATE, purpose=purpose, by_hand=by_hand))
            run_program([*DOWNLOAD, name], cwd=folder, remedy=f"Type:  {by_hand}\nand run this again.")
        for archive in folder.glob("*.deb"):
            run_program(["dpkg-deb", "--extract", str(archive), str(folder)])
            archive.unlink()
