"""Brought remotes: where tools come from that a server somewhere else lists, and how it is spoken to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from unitools.brought_tools import CannotBring
from unitools.checks.operations import find_server_problem, read_server
from unitools.mcp_argument_headers import MarkUnfit, find_argument_headers
from unitools.mcp_http import MODERN
from unitools.publications import derive_package_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.mcp_listings import Listing

_NO_WORDS = frozenset({"mcp", "api", "www", "app", "server"})


@dataclass(frozen=True, slots=True)
class RemoteSource:
    """``credentials``: entries of ``implementation.remote.credentials``; ``account``: what ``implementation.remote.account`` says,
    where the server is asked as the person whom a call is for. None of both: what was chosen before stays."""

    url: str
    group: str
    revision: str
    credentials: tuple[dict[str, str], ...] | None = None
    account: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return self.url

    def describe(self) -> dict[str, Any]:
        host, port = read_server(self.url)
        methods = ["POST"] if self.revision == MODERN else ["DELETE", "POST"]
        said: dict[str, Any] = {
            "implementation": {
                "kind": "mcp_remote",
                "remote": {"url": self.url, "listing": derive_package_name(self.group)},
            },
            "origin": {"url": self.url},
            "capabilities": {"net": [{"host": host} | ({} if port == 443 else {"port": port}) | {"methods": methods}]},
            # What a server says of itself is a claim, and here nothing holds it to that.
            "side_effect": "Write",
            "safety_class": "Medium",
        }
        if self.account is not None:
            said["implementation"]["remote"]["account"] = self.account
        elif self.credentials:
            said["implementation"]["remote"]["credentials"] = list(self.credentials)
            said["secrets"] = self._list_secrets()
        return said

    def renew(
        self, document: dict[str, Any], before: dict[str, Any], made: dict[str, Any], then: dict[str, Any] | None
    ) -> None:
        """The address, and the credentials where they are said; effect, hosts and limits are the author's."""
        ours = {"url": self.url, "listing": derive_package_name(self.group)}
        remote = dict(before["implementation"]["remote"]) | ours
        if self.account is not None:
            remote = {name: part for name, part in remote.items() if name != "credentials"} | {"account": self.account}
            document.pop("secrets", None)
        elif self.credentials is not None:
            remote.pop("account", None)
            remote["credentials"] = list(self.credentials)
            document["secrets"] = self._list_secrets()
        document["implementation"] = before["implementation"] | {"remote": remote}
        if before["implementation"]["remote"]["url"] != self.url:
            document["capabilities"] = made["capabilities"]

    def _list_secrets(self) -> list[dict[str, Any]]:
        host = read_server(self.url)[0]
        names = dict.fromkeys(each["secret"] for each in self.credentials or ())
        return [{"name": name, "description": f"Sent to {host} by the gate.", "hosts": [host]} for name in names]


def check_address(url: str) -> None:
    """:class:`CannotBring` where no request goes there."""
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.query or parts.fragment or "@" in parts.netloc or not parts.hostname:
        raise CannotBring(
            f"{url[:200]!r} is no address of a server: https, a host by its name, and a path, such as https://mcp.example.com/mcp."
        )
    if problem := find_server_problem(url):
        raise CannotBring(f"{url[:200]!r} cannot be called by a hub: {problem}")


def derive_remote_group(url: str) -> str:
    """``mcp.linear`` for ``https://mcp.linear.app/mcp``."""
    labels = (urlsplit(url).hostname or "").split(".")
    names = [each for each in (labels[:-1] or labels) if each not in _NO_WORDS] or labels
    word = re.sub(r"[^a-z0-9_]", "_", names[-1]).strip("_") or "server"
    return f"mcp.{word if word[0].isalpha() else f's_{word}'}"


def check_argument_headers(listing: Listing, names: Sequence[str]) -> None:
    """:class:`CannotBring`, where a tool wants to hear arguments in headers otherwise than MCP has it."""
    if listing.protocol < MODERN:
        return
    for name in names:
        try:
            find_argument_headers(listing.tools.get(name, {}).get("inputSchema"))
        except MarkUnfit as error:
            raise CannotBring(f"{name} cannot be called: {error}") from error
