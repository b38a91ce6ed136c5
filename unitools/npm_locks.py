"""Npm locks: what one says, the packages of npm, in which versions, where each lies and which file it comes from.

A lock is a list of lines, made from a ``package-lock.json`` of version 3 that npm has written::

    npm:node_modules/@scope/name @scope/name@1.2.3 sha512-…= os=linux cpu=x64 libc=glibc optional

The place comes first, since one package may lie in several; what follows the SHA-512 is there where the package says so. Nothing else
is taken: no address, no link, no range, and no package that has to be built or run to be installed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from unitools.npm_names import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

LOCK_VERSION = 3
MAX_LOCK_BYTES = 8 * 2**20
MAX_LINE = 2048
MAX_PACKAGES = 600  # as of any lock in a manifest
MAX_PLACE_CHARS = 400
NAME = r"(?:@[A-Za-z0-9~-][A-Za-z0-9._~-]{0,99}/)?[A-Za-z0-9~-][A-Za-z0-9._~-]{0,113}"
VERSION = r"[0-9]{1,20}\.[0-9]{1,20}\.[0-9]{1,20}(?:[-+][A-Za-z0-9.+-]{1,100})?"
_WORDS = r"!?[a-z0-9_]{1,20}(?:,!?[a-z0-9_]{1,20}){0,9}"
_SHA512 = r"sha512-[A-Za-z0-9+/]{86}=="
_LINE = re.compile(
    rf"npm:(?P<place>node_modules/{NAME}(?:/node_modules/{NAME})*) (?P<name>{NAME})@(?P<version>{VERSION}) (?P<integrity>{_SHA512})"
    rf"(?: os=(?P<os>{_WORDS}))?(?: cpu=(?P<cpu>{_WORDS}))?(?: libc=(?P<libc>{_WORDS}))?(?P<optional> optional)?"
)
_DEPENDENCY = re.compile(rf"npm:(?P<name>{NAME})@(?P<version>{VERSION})")
_NOT_A_NAME = ("node_modules", "favicon.ico")


class NpmLockUnfit(ValueError):
    """This lock cannot be taken. The message says why, and what to do."""


class NpmPackage(NamedTuple):
    """One package at one place. ``os``, ``cpu``, ``libc``: where it runs, as npm writes it; empty: everywhere."""

    place: str
    name: str
    version: str
    integrity: str
    os: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    libc: tuple[str, ...] = ()
    is_optional: bool = False

    @property
    def line(self) -> str:
        words = [f"{PREFIX}{self.place}", f"{self.name}@{self.version}", self.integrity]
        words += [
            f"{what}={','.join(said)}"
            for what, said in (("os", self.os), ("cpu", self.cpu), ("libc", self.libc))
            if said
        ]
        return " ".join([*words, *(["optional"] if self.is_optional else [])])

    @property
    def hashes(self) -> tuple[str, ...]:
        return (self.integrity,)

    @property
    def marker(self) -> str:
        """Which of several entries of one package this is."""
        return "" if self.place == f"node_modules/{self.name}" else self.place

    @property
    def alias(self) -> str:
        """The name by which others find it here, where that is not its own: a package may stand in another's place."""
        found = self.place.rpartition("node_modules/")[2]
        return "" if found == self.name else found

    def fits(self, cpu: str) -> bool:
        """Whether it runs in a sandbox on such a machine, as npm names it: x64, arm64."""
        return _is_meant(self.os, "linux") and _is_meant(self.cpu, cpu) and _is_meant(self.libc, "glibc")


def _is_meant(said: tuple[str, ...], here: str) -> bool:
    if f"!{here}" in said:
        return False
    wanted = [each for each in said if not each.startswith("!")]
    return not wanted or here in wanted or "any" in wanted


def read_npm_dependency(text: str) -> tuple[str, str] | None:
    """Name and version of ``npm:name@version``."""
    found = _DEPENDENCY.fullmatch(text)
    return (found["name"], found["version"]) if found and _is_name(found["name"]) else None


def read_npm_line(text: str) -> NpmPackage:
    """``ValueError`` with a sentence when the line is none of a lock."""
    found = _LINE.fullmatch(text) if len(text) <= MAX_LINE else None
    if found is None or len(found["place"]) > MAX_PLACE_CHARS:
        raise NpmLockUnfit(
            f"{text.strip()[:80]!r} is not a place below node_modules, name@version and the sha512 of its file."
        )
    names = [found["name"], *found["place"].removeprefix("node_modules/").split("/node_modules/")]
    if not all(map(_is_name, names)):
        raise NpmLockUnfit(f"{text.strip()[:80]!r} names what is no package.")
    os, cpu, libc = (tuple(found[each].split(",")) if found[each] else () for each in ("os", "cpu", "libc"))
    return NpmPackage(
        found["place"], found["name"], found["version"], found["integrity"], os, cpu, libc, bool(found["optional"])
    )


def _is_name(name: str) -> bool:
    return name not in _NOT_A_NAME and name.rpartition("/")[2] not in _NOT_A_NAME


def normalize_npm_lines(lines: Iterable[str]) -> list[str]:
    found = sorted({read_npm_line(line).line for line in lines})
    if len(found) > MAX_PACKAGES:
        raise NpmLockUnfit(
            f"The lock holds {len(found):,} packages, and a lock has at most {MAX_PACKAGES}: choose a package that needs fewer."
        )
    return found


def read_package_lock(text: str) -> list[str]:
    """The lines of a ``package-lock.json``: what is installed beside an application, and nothing for its development.

    Raises :class:`NpmLockUnfit`. Left out is what is optional and runs elsewhere or would have to be built.
    """
    if len(text) > MAX_LOCK_BYTES:
        raise NpmLockUnfit(f"package-lock.json has more than {MAX_LOCK_BYTES >> 20} MiB.")
    try:
        said = json.loads(text)
        version, packages = said["lockfileVersion"], said["packages"].items()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise NpmLockUnfit("This is no package-lock.json of npm 7 or newer.") from error
    if version != LOCK_VERSION:
        raise NpmLockUnfit(
            f"package-lock.json is of version {version!r}; `npm install --package-lock-only --lockfile-version 3` writes version 3."
        )
    found = [_read_entry(str(place), entry) for place, entry in packages if place]
    return normalize_npm_lines(each.line for each in found if each is not None)


def _read_entry(place: str, entry: Any) -> NpmPackage | None:
    """None: it is not installed, or comes within the file of another."""
    shown = place[:100]
    if not isinstance(entry, dict):
        raise NpmLockUnfit(f"{shown} is no entry of a package-lock.json.")
    if entry.get("dev") is True or entry.get("extraneous") is True or entry.get("inBundle") is True:
        return None
    if entry.get("link") is True or not place.startswith("node_modules/"):
        raise NpmLockUnfit(
            f"{shown} is a folder of the author's, or a link to one: only packages of a registry are taken."
        )
    name = entry.get("name") or place.rpartition("node_modules/")[2]
    version, integrity = entry.get("version"), entry.get("integrity")
    is_optional = entry.get("optional") is True or entry.get("devOptional") is True
    if entry.get("hasInstallScript") is True:
        if is_optional:
            return None
        raise NpmLockUnfit(
            f"{name} {version} has an install script, or is built when it is installed. Nothing of a package is run to install it: "
            "use a version or another package that does without."
        )
    _check_source(name, version, entry.get("resolved"))
    sha512 = [each for each in str(integrity or "").split() if each.startswith("sha512-")]
    if len(sha512) != 1:
        raise NpmLockUnfit(
            f"{name} {version} has no sha512 in package-lock.json: let npm write it anew from a registry that says it."
        )
    package = NpmPackage(
        place,
        str(name),
        str(version),
        sha512[0],
        _words(entry, "os"),
        _words(entry, "cpu"),
        _words(entry, "libc"),
        is_optional,
    )
    if is_optional and not (_is_meant(package.os, "linux") and _is_meant(package.libc, "glibc")):
        return None
    return read_npm_line(package.line)


def _words(entry: dict[str, Any], what: str) -> tuple[str, ...]:
    said = entry.get(what, ())
    return (said,) if isinstance(said, str) else tuple(map(str, said)) if isinstance(said, list) else ()


def _check_source(name: Any, version: Any, resolved: Any) -> None:
    """npm may leave out where a file came from; where it says it, it is the file of a registry."""
    if resolved is None:
        return
    parts = urlsplit(str(resolved))
    wanted = f"/{name}/-/{str(name).rpartition('/')[2]}-{version}.tgz"
    if parts.scheme not in ("https", "http") or not parts.path.replace("%2f", "/").replace("%2F", "/").endswith(wanted):
        raise NpmLockUnfit(f"{name} comes from an address that is no file of a registry: name a version that one has.")
