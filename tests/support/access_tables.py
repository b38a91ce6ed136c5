"""Access tables: who may do what, one line for each method of each address, in ``ACCESS`` of the ``urls.py`` that has it.

console: method, route, permission, and whom a request must not be refused as (403):
  H owns the hub, and the tenant · O owner · P operator · R reviewer · A auditor · D developer · - nobody of that role
api: method, route, and the scope without which a key is refused; - for what only people do.
people: what is open to people's sessions in the API: method, route, permission, and whom it must not refuse.

A line is a decision: it is written by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolhub.addresses import load_url_modules

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_access_tables() -> dict[str, list[list[str]]]:
    """The rows of each section, of all packages."""
    found: dict[str, list[list[str]]] = {"console": [], "api": [], "people": []}
    for _, section, words in _list_rows():
        found[section].append(words)
    return found


def locate_rows() -> dict[str, set[str]]:
    """The packages whose tables name a route."""
    found: dict[str, set[str]] = {}
    for package, _, words in _list_rows():
        found.setdefault(words[1], set()).add(package)
    return found


def _list_rows() -> Iterator[tuple[str, str, list[str]]]:
    """Package, section and words of each line."""
    for module in load_url_modules():
        section = ""
        for line in getattr(module, "ACCESS", "").splitlines():
            if line.startswith("["):
                section = line.strip("[]")
            elif line.strip():
                yield module.__name__.rpartition(".")[0], section, line.split()
