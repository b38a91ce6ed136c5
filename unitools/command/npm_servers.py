"""Npm servers: how ``unitools bring mcp npm:NAME`` finds out what comes along with a package of npm, and what its server lists.

The author's own npm writes the lock, or has written it (``--lock``), and installs for ``--run-here`` without any script of a package.
A hub asks npm for nothing: it fetches what the lock names and unpacks it itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unitools.brought_npm import NpmSource, find_locked_version, list_programs, read_asked_package
from unitools.command.pack import read_file_bytes, read_file_text
from unitools.command.started_servers import list_server_tools, read_reach, read_secrets
from unitools.command.terminal import CannotRun, format_shown
from unitools.mcp_listings import Listing
from unitools.npm_locks import read_package_lock

if TYPE_CHECKING:
    import argparse

LOCK_FILE = "package-lock.json"
NPM_WITHIN_S = 600
_QUIETLY = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
_HINT = "What a server wants before it lists is often an --argument or an --environment; a program that is missing must be installed."
_WARNING = """\
This starts code of {package} and of all that it needs on this machine, with your rights and with your network: code that nobody here
has reviewed. A hub starts it in a sandbox. To start it here all the same, say --run-here; to start nothing, name a listing that you
took elsewhere: --listing FILE.
"""


def look_at_package(
    options: argparse.Namespace, group: str, start: dict[str, Any], said: dict[str, Any]
) -> tuple[Listing, NpmSource]:
    """What the server lists, and where it comes from."""
    package, version = read_asked_package(options.package)
    if options.constraint or options.module:
        raise CannotRun(
            "--constraint and --module are for packages of PyPI. For npm make a package-lock.json, with overrides where they are "
            "needed, and name it: --lock package-lock.json."
        )
    if not (options.listing or options.run_here):
        raise CannotRun(_WARNING.format(package=package))
    with tempfile.TemporaryDirectory(prefix="unitools-bring-") as folder:
        place = Path(folder)
        text = _take_lock(options.lock, place) if options.lock else _write_lock(package, version, place)
        lock = read_package_lock(text)
        found = find_locked_version(lock, package)
        if version and found != version:
            raise CannotRun(f"The lock holds {package} {found}, and {version} is asked for.")
        programs = list_programs(text, package)
        start = start if "script" in start else {"script": _only_program(programs, package)} | start
        if start["script"] not in programs:
            raise CannotRun(
                f"{package} brings no program {start['script']}; it has {', '.join(sorted(programs)) or 'none'}."
            )
        if options.listing:
            listing = Listing.from_bytes(read_file_bytes(options.listing))
        else:
            listing = _start_here(package, programs[start["script"]], start, place, keeps=bool(options.keep_files))
    reach, secrets = read_reach(options), read_secrets(options)
    return listing, NpmSource(package, found, group, start, tuple(lock), said=said, reach=reach, secrets=secrets)


def _take_lock(path: Path, place: Path) -> str:
    """The author's lock, with what it was made for."""
    text = read_file_text(path)
    read_package_lock(text)
    about = path.with_name("package.json")
    root = json.loads(text)["packages"].get("", {})
    made_for = read_file_text(about) if about.is_file() else json.dumps({"dependencies": root.get("dependencies", {})})
    (place / "package.json").write_text(made_for, encoding="utf-8")
    (place / LOCK_FILE).write_text(text, encoding="utf-8")
    return text


def _write_lock(package: str, version: str, place: Path) -> str:
    about = {"private": True, "dependencies": {package: version or "latest"}}
    (place / "package.json").write_text(json.dumps(about), encoding="utf-8")
    _run_npm(["install", "--package-lock-only", "--lockfile-version", "3"], place)
    return (place / LOCK_FILE).read_text(encoding="utf-8")


def _start_here(package: str, file: str, start: dict[str, Any], place: Path, *, keeps: bool) -> Listing:
    sys.stderr.write(f"Starting {package} on this machine, outside any sandbox.\n")
    _run_npm(["ci", "--omit", "dev"], place)
    program = place / "node_modules" / package / file
    return list_server_tools([_find("node"), str(program)], start, place, keeps=keeps, hint=_HINT)


def _only_program(programs: dict[str, str], package: str) -> str:
    own = package.rpartition("/")[2]
    if len(programs) == 1 or own in programs:
        return own if own in programs else next(iter(programs))
    many = (
        f"brings several programs ({', '.join(map(format_shown, sorted(programs)))})"
        if programs
        else "brings no program"
    )
    raise CannotRun(f"{package} {many}: say which with --script NAME.")


def _run_npm(arguments: list[str], place: Path) -> None:
    command = [_find("npm"), *arguments, *_QUIETLY]
    try:
        done = subprocess.run(
            command, cwd=place, env=dict(os.environ), capture_output=True, text=True, timeout=NPM_WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise CannotRun(f"npm was not done within {NPM_WITHIN_S} seconds.") from None
    if done.returncode:
        said = [format_shown(line) for line in done.stderr.splitlines() if "error" in line.lower()]
        raise CannotRun("\n".join(["npm could not do it:", *said[:4]]))


def _find(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise CannotRun(
            f"There is no {program} on this machine. Name a lock and a listing instead: --lock {LOCK_FILE} --listing FILE."
        )
    return found
