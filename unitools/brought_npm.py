"""Brought npm servers: where tools come from that a server of a package of npm lists, and how it is started."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.brought_tools import NO_REACH, CannotBring, ServerReach, derive_group, renew_server
from unitools.npm_locks import NAME, VERSION, read_npm_line
from unitools.npm_names import PREFIX
from unitools.publications import derive_package_name
from unitools.server_secrets import describe_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

_ASKED = re.compile(rf"npm:(?P<name>{NAME})(?:@(?P<version>{VERSION}))?")
_NO_WORDS = ("mcp", "server", "mcp-server")


@dataclass(frozen=True, slots=True)
class NpmSource:
    """``package``: its name in npm; ``lock``: the lines of all that comes along; ``said``, ``is_whole``: as of a source of PyPI."""

    package: str
    version: str
    group: str
    start: dict[str, Any]
    lock: tuple[str, ...]
    said: dict[str, Any] = field(default_factory=dict)
    reach: ServerReach = NO_REACH
    is_whole: bool = False
    secrets: tuple[dict[str, str], ...] = ()

    @property
    def name(self) -> str:
        return self.package

    def describe(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "implementation": {
                "kind": "mcp_stdio",
                "server": self.start | {"listing": derive_package_name(self.group)},
                **self.reach.choose_image(),
            },
            "origin": {"package": f"{PREFIX}{self.package}", "version": self.version},
            "dependencies": [f"{PREFIX}{self.package}@{self.version}"],
            "dependency_lock": list(self.lock),
        }
        return said | describe_secrets(self.start) | self.reach.describe()

    def renew(
        self, document: dict[str, Any], before: dict[str, Any], made: dict[str, Any], then: dict[str, Any] | None
    ) -> None:
        renew_server(document, before, made, then, said=None if self.is_whole else self.said, secrets=self.secrets)
        document["dependencies"], document["dependency_lock"] = made["dependencies"], made["dependency_lock"]


def read_asked_package(text: str) -> tuple[str, str]:
    """Name and version of ``npm:NAME[@VERSION]``; without one it is empty. ``ValueError`` for anything else."""
    found = _ASKED.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is not npm:NAME or npm:NAME@VERSION, for example npm:@modelcontextprotocol/server-memory@2026.8.31."
        )
    return found["name"], found["version"] or ""


def derive_npm_group(package: str) -> str:
    """``mcp.memory`` for ``@modelcontextprotocol/server-memory``, ``mcp.playwright`` for ``@playwright/mcp``."""
    scope, _, name = package.rpartition("/")
    word = scope.removeprefix("@") if name in _NO_WORDS and scope else name.removeprefix("server-")
    return derive_group(word)


def find_locked_version(lock: Sequence[str], package: str) -> str:
    """The version in which the lock has the package itself."""
    for entry in map(read_npm_line, lock):
        if (entry.place, entry.name) == (f"node_modules/{package}", package):
            return entry.version
    raise CannotBring(f"The lock does not hold {package} at its own place.")


def list_programs(package_lock: str, package: str) -> dict[str, str]:
    """What the package's ``bin`` names in a package-lock.json: each program and its file."""
    said = json.loads(package_lock)["packages"].get(f"node_modules/{package}", {}).get("bin", {})
    return {str(name): str(file) for name, file in said.items()} if isinstance(said, dict) else {}
