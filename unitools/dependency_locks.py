"""Dependency locks: what one says, the packages, in which versions, from which files.

A lock is a list of lines, each as pip writes and reads it: ``name==version --hash=sha256:…``, with a marker if it needs one.
A line that begins with ``npm:`` is of a lock of npm (:mod:`unitools.npm_locks`).
Nothing else is taken: no address, no option, no range. In a requirements file that a lock is made from, options that only say
where files come from are passed over: the hashes name the files, and the hub's settings say where it gets them.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from unitools.npm_locks import NpmPackage, is_of_npm, read_npm_dependency, read_npm_line, read_package_lock

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LINE = 16_384
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,100}[A-Za-z0-9])?"
EXTRAS = r"(?:\[[A-Za-z0-9._, -]{1,200}\])?"
VERSION = r"[0-9][A-Za-z0-9.!+_-]{0,100}"
_LINE = re.compile(
    rf"(?P<name>{NAME}){EXTRAS}\s*==\s*(?P<version>{VERSION})"
    r"\s*(?:;\s*(?P<marker>[A-Za-z0-9_ .<>=!~'\"()+*-]{1,500}?))?"
    r"(?P<hashes>(?:\s+--hash=sha256:[0-9a-f]{64})+)\s*"
)
_CLAUSE = rf" ?(?:[<>]=?|[~=!]=) ?{VERSION}(?:\.\*)? ?"
_CONSTRAINT = re.compile(rf"(?P<name>{NAME})(?P<versions>{_CLAUSE}(?:,{_CLAUSE})*)")

_SOURCES = (
    "-i",
    "--index-url",
    "--pypi-url",
    "--extra-index-url",
    "--no-index",
    "-f",
    "--find-links",
    "--trusted-host",
)
WHERE_FROM = frozenset((*_SOURCES, "--no-binary", "--only-binary", "--prefer-binary", "--require-hashes"))


class LockedPackage(NamedTuple):
    """One package. ``name`` is in normal form, ``hashes`` are hexadecimal SHA-256 of the files it may come from, sorted."""

    name: str
    version: str
    hashes: tuple[str, ...]
    marker: str = ""

    @property
    def line(self) -> str:
        """In normal form."""
        marker = f" ; {self.marker}" if self.marker else ""
        return f"{self.name}=={self.version}{marker} " + " ".join(f"--hash=sha256:{each}" for each in self.hashes)


def normalize_name(name: str) -> str:
    """PEP 503: how two spellings of one package are told to be one."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_dependency_name(text: str) -> str:
    """The package that a line of ``dependencies`` names, however it is spelled."""
    if found := read_npm_dependency(text):
        return found[0]
    return normalize_name(re.split(r"[\s\[=<>!~;@]", text, maxsplit=1)[0])


def read_lock_line(text: str) -> LockedPackage:
    """``ValueError`` with a sentence when the line is none of a lock."""
    found = _LINE.fullmatch(text) if len(text) <= MAX_LINE else None
    if found is None:
        raise ValueError(f"{text.strip()[:80]!r} is not name==version with the sha256 of its files.")
    hashes = sorted(set(re.findall(r"sha256:([0-9a-f]{64})", found["hashes"])))
    marker = re.sub(r"\s+", " ", found["marker"] or "").strip()
    return LockedPackage(normalize_name(found["name"]), found["version"], tuple(hashes), marker)


def format_constraint(text: str) -> str:
    """The line of a constraints file, written from what was read: a name and versions, and nothing else. ``ValueError`` with a
    sentence when the text says anything beside them.

    pip finds options in the lines of such a file, and ``===`` of the standard takes any text, line ends with it.
    """
    found = _CONSTRAINT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:100]!r} is no constraint: it names one package and its versions, for example mcp<2.")
    return f"{normalize_name(found['name'])}{found['versions'].replace(' ', '')}"


def read_lock_lines(text: str) -> list[str]:
    """The lines of a requirements file in normal form: comments and WHERE_FROM gone, continued lines joined, sorted. Or those of a
    package-lock.json."""
    if text.lstrip().startswith("{"):
        return read_package_lock(text)
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines()]
    return normalize_lock_lines(line for line in lines if line and not _says_where_from(line))


def _says_where_from(line: str) -> bool:
    """``ValueError`` when it is an option that says more than that."""
    if not line.startswith("-"):
        return False
    option = re.split(r"[\s=]", line, maxsplit=1)[0]
    if option not in WHERE_FROM:
        raise ValueError(
            f"The option {option[:80]} has a say in what is installed. Only its packages stand in a lock, each in a line of its own."
        )
    return True


def read_lock_entry(text: str) -> LockedPackage | NpmPackage:
    """Of either kind of lock. ``ValueError`` with a sentence when the line is none of a lock."""
    return read_npm_line(text) if is_of_npm(text) else read_lock_line(text)


def normalize_lock_lines(lines: Iterable[str]) -> list[str]:
    return sorted({read_lock_entry(line).line for line in lines})


def compute_lock_digest(lines: Iterable[str]) -> str:
    """``sha256:…`` of the lines in normal form: the same however they were written."""
    return "sha256:" + hashlib.sha256("\n".join(normalize_lock_lines(lines)).encode()).hexdigest()
