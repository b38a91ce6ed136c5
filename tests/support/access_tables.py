"""Access tables: who may do what, one line for each method of each address, in ``ACCESS`` of the ``urls.py`` that has it.

console: method, route, permission, and whom a request must not be refused as (403):
  H owns the hub, and the tenant · O owner · P operator · R reviewer · A auditor · D developer · - nobody of that role
api: method, route, and the scope without which a key is refused; - for what only people do.
people: what is open to people's sessions in the API: method, route, permission, and whom it must not refuse.

A line is a decision: it is written by hand.
"""

from __future__ import annotations

from toolhub.addresses import load_url_modules


def read_access_tables() -> dict[str, list[list[str]]]:
    """The rows of each section, of all packages."""
    found: dict[str, list[list[str]]] = {"console": [], "api": [], "people": []}
    for module in load_url_modules():
        for line in getattr(module, "ACCESS", "").splitlines():
            if line.startswith("["):
                rows = found[line.strip("[]")]
            elif line.strip():
                rows.append(line.split())
    return found


def locate_rows() -> dict[str, set[str]]:
    """The packages whose tables name a route."""
    found: dict[str, set[str]] = {}
    for module in load_url_modules():
        for line in getattr(module, "ACCESS", "").splitlines():
            if line.strip() and not line.startswith("["):
                found.setdefault(line.split()[1], set()).add(module.__name__.rpartition(".")[0])
    return found
