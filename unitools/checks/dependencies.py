"""Dependencies: whether a manifest says exactly which code of others comes along."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from unitools.checks.findings import declare_rule
from unitools.dependency_locks import (
    EXTRAS,
    NAME,
    VERSION,
    LockedPackage,
    format_constraint,
    normalize_name,
    read_dependency_name,
    read_lock_line,
)
from unitools.npm_locks import NpmPackage, is_of_npm, read_npm_dependency, read_npm_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding
    from unitools.manifest import Manifest

PINNED = re.compile(
    rf"(?P<name>{NAME}){EXTRAS}\s*==\s*(?P<version>{VERSION})(?P<hashes>(\s+--hash=sha256:[0-9a-f]{{64}})*)"
)

OPEN = declare_rule(
    "dependencies.unpinned",
    "Each dependency names one exact version, with hashes where there are any.",
    "Write name==version, followed by --hash=sha256:… where you know it.",
)
TWICE = declare_rule("dependencies.duplicate", "Each dependency is named once.", "Remove one of them.")
LOCK_LINE = declare_rule(
    "dependencies.lock_line",
    "Each line of a lock names one package, one version and the SHA-256 of its files.",
    "Write it with `python -m unitools lock requirements.txt`, from what pip-compile or uv pip compile --generate-hashes made.",
)
LOCK_TWICE = declare_rule(
    "dependencies.lock_duplicate", "A lock names each package once, or once for each marker.", "Remove one of them."
)
NOT_LOCKED = declare_rule(
    "dependencies.not_locked",
    "A lock holds each dependency, in the version that is named.",
    "Make the lock anew from the dependencies.",
)
LOCK_ALONE = declare_rule(
    "dependencies.lock_alone", "A lock belongs to dependencies.", "Name the dependencies, or remove the lock."
)
CONSTRAINT = declare_rule(
    "dependencies.constraint",
    "A constraint names one package and its versions, and nothing else.",
    "Write for example mcp<2: no extras, no address, no marker, no ===.",
)
CONSTRAINT_ALONE = declare_rule(
    "dependencies.constraints_alone",
    "Constraints belong to dependencies.",
    "Name the dependencies, or remove the constraints.",
)
CONSTRAINT_BROKEN = declare_rule(
    "dependencies.constraint_broken",
    "A lock keeps to the constraints.",
    "Make the lock anew with the constraints, or correct them.",
)
NPM_SERVERS_ONLY = declare_rule(
    "dependencies.npm_without_server",
    "A package of npm belongs to a tool that a server of it answers, and stands alone.",
    "Let `unitools bring mcp npm:NAME@VERSION` write the manifest; packages of PyPI are a tool's of its own.",
)
NPM_UNLOCKED = declare_rule(
    "dependencies.npm_unlocked",
    "What comes along with a package of npm is said by the manifest, since a hub does not run npm.",
    "Write dependency_lock with `unitools lock package-lock.json`, or bring the server anew.",
)


def check_dependencies(manifest: Manifest) -> Iterator[ManifestFinding]:
    if any(map(is_of_npm, (*manifest.dependencies, *manifest.dependency_lock))) or manifest.is_on_node:
        yield from _check_npm(manifest)
        return
    seen: set[str] = set()
    lock, unreadable = list[LockedPackage](), list[str]()
    for place, text in enumerate(manifest.dependency_lock):
        try:
            lock.append(_read(text))
        except ValueError as error:
            unreadable.append(text)
            yield LOCK_LINE.at(("dependency_lock", place), str(error))
    for place, text in enumerate(manifest.dependencies):
        pinned = PINNED.fullmatch(text)
        if not pinned or not _is_version(pinned["version"]):
            yield OPEN.at(("dependencies", place), f"{text[:100]} does not name one exact version.")
        name = read_dependency_name(text)
        if name in seen:
            yield TWICE.at(("dependencies", place), f"{name} is named twice.")
        seen.add(name)
        if pinned and lock and not unreadable and not _is_locked(pinned, lock):
            yield NOT_LOCKED.at(("dependencies", place), f"The lock does not hold {text[:100]}.")
    yield from _check_lock(manifest, lock)
    yield from _check_constraints(manifest, lock)


def _check_npm(manifest: Manifest) -> Iterator[ManifestFinding]:
    if not manifest.is_on_node or len(manifest.dependencies) != 1:
        yield NPM_SERVERS_ONLY.at(
            ("dependencies",), "Packages of npm are named beside others, or no server of one answers."
        )
        return
    if manifest.dependency_constraints:
        yield CONSTRAINT_ALONE.at(
            ("dependency_constraints",), "A lock of npm says all versions; nothing is left to constrain."
        )
    named = read_npm_dependency(manifest.dependencies[0])
    if named is None:
        yield OPEN.at(
            ("dependencies", 0),
            f"{manifest.dependencies[0][:100]} does not name one exact version of a package of npm.",
        )
    lock = list[NpmPackage]()
    for place, text in enumerate(manifest.dependency_lock):
        try:
            lock.append(read_npm_line(text))
        except ValueError as error:
            yield LOCK_LINE.at(("dependency_lock", place), str(error))
            return
    if not lock:
        yield NPM_UNLOCKED.at(("dependency_lock",), "There is no lock.")
        return
    places = [each.place.lower() for each in lock]
    for found in sorted({each for each in places if places.count(each) > 1}):
        yield LOCK_TWICE.at(("dependency_lock",), f"{found[:200]} is named twice, or twice but for case.")
    if named and not any(
        (f"node_modules/{named[0]}", *named) == (each.place, each.name, each.version) for each in lock
    ):
        yield NOT_LOCKED.at(("dependencies", 0), f"The lock does not hold {named[0]} {named[1]} at its own place.")


def _check_constraints(manifest: Manifest, lock: list[LockedPackage]) -> Iterator[ManifestFinding]:
    if manifest.dependency_constraints and not manifest.dependencies:
        yield CONSTRAINT_ALONE.at(("dependency_constraints",), "There are constraints, and no dependencies.")
    for place, text in enumerate(manifest.dependency_constraints):
        try:
            said = Requirement(format_constraint(text))
        except ValueError as error:
            yield CONSTRAINT.at(("dependency_constraints", place), str(error))
            continue
        for each in lock:
            if each.name == normalize_name(said.name) and not said.specifier.contains(each.version, prereleases=True):
                message = f"The lock holds {each.name} {each.version}, and the constraint is {text[:100]}."
                yield CONSTRAINT_BROKEN.at(("dependency_constraints", place), message)


def _check_lock(manifest: Manifest, lock: list[LockedPackage]) -> Iterator[ManifestFinding]:
    if manifest.dependency_lock and not manifest.dependencies:
        yield LOCK_ALONE.at(("dependency_lock",), "There is a lock and no dependency.")
    names = [(each.name, each.marker) for each in lock]
    for entry in sorted({each for each in names if names.count(each) > 1}):
        yield LOCK_TWICE.at(("dependency_lock",), f"{entry[0]} is named twice.")


def _read(text: str) -> LockedPackage:
    found = read_lock_line(text)
    if not _is_version(found.version):
        raise ValueError(f"{found.version} is no version of a package.")
    try:
        Marker(found.marker or "os_name == 'posix'")
    except InvalidMarker:
        raise ValueError(f"{found.marker[:80]!r} is no marker.") from None
    return found


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _is_locked(pinned: re.Match[str], lock: list[LockedPackage]) -> bool:
    """By whatever marker. Hashes that stand beside the dependency bind the lock, too."""
    if not _is_version(pinned["version"]):
        return True  # said already
    wanted = set(re.findall(r"sha256:([0-9a-f]{64})", pinned["hashes"]))
    return any(
        each.name == normalize_name(pinned["name"])
        and Version(each.version) == Version(pinned["version"])
        and (not wanted or set(each.hashes) <= wanted)
        for each in lock
    )
