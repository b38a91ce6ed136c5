"""Access tables: who may do what, written by hand beside the addresses. The hub serves no address whose view says otherwise.

``ACCESS`` of a ``urls`` module has a line for each method of each address that is not open to everybody:

console: method, route, permission, and who has it:
  H owns the hub, and the tenant · O owner · P operator · R reviewer · A auditor · D developer · - nobody of that role
api: method, route, and the scope without which a key is refused; - for what only people do.
people: what is open to people's sessions in the API: method, route, permission, and who has it.

A line is a decision, and the view that keeps it names the same permission or scope. So nobody loosens a view, or gives a role a
permission, by a change in one place: :func:`check_access_tables` compares both, and the roles, whenever the addresses are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.core.exceptions import ImproperlyConfigured
from django.urls import URLResolver

from access.roles import HUB_PERMISSIONS, ROLE_PERMISSIONS, Role
from toolhub.addresses import load_url_modules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from django.urls import URLPattern

CONSOLE, API, PEOPLE = "console", "api", "people"
HUB_OWNER = "H"
LETTERS = dict(zip("OPRAD", Role, strict=True))
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class AccessRow(NamedTuple):
    """``needed``: a permission, or a scope; ``roles``: the letters of those who have the permission."""

    package: str
    section: str
    method: str
    route: str
    needed: str
    roles: str = ""


def list_access_rows() -> list[AccessRow]:
    """The lines of all packages."""
    rows = []
    for module in load_url_modules():
        section = ""
        for line in getattr(module, "ACCESS", "").splitlines():
            if line.startswith("["):
                section = line.strip("[]")
            elif line.strip():
                rows.append(AccessRow(str(module.__package__), section, *line.split()))
    return rows


def check_access_tables(addresses: Iterable[URLPattern | URLResolver]) -> None:
    """Raises ``ImproperlyConfigured`` where a line and what is enforced differ, or either is missing, and for a page that neither
    needs a permission nor is public."""
    written: dict[tuple[str, str], dict[str, str]] = {}
    wrong = []
    for row in list_access_rows():
        written.setdefault((row.section, row.route), {})[row.method] = row.needed
        if row.section != API and row.roles != (held := name_roles(row.needed)):
            wrong.append(f"{row.method} {row.route} is for {row.roles}, and {row.needed} is held by {held}")
    for address in _walk(addresses):
        if not hasattr(address.callback, "needs") and not hasattr(address.callback, "cls"):
            wrong.append(f"{address.name} is a page that neither needs a permission nor is public")
        for section, asked in _list_asked(address.callback):
            lines = written.pop((section, address.name or ""), {})
            # Whether a page has a line for each of its methods is for a test to find: only its decorators know them.
            expected = dict.fromkeys(lines, asked) if isinstance(asked, str) else asked
            if not lines or lines != expected:
                wrong.append(f"[{section}] of {address.name} says {lines or 'nothing'}, and its view asks for {asked}")
    wrong += [f"[{section}] names {route}, which is no such address" for section, route in written]
    if wrong:
        raise ImproperlyConfigured("ACCESS of a module of addresses and what is enforced differ:\n" + "\n".join(wrong))


def name_roles(permission: str) -> str:
    """Who has a permission, as a line says it."""
    owner = HUB_OWNER if permission in {*ROLE_PERMISSIONS[Role.OWNER], *HUB_PERMISSIONS} else "-"
    return owner + "".join(letter if permission in ROLE_PERMISSIONS[role] else "-" for letter, role in LETTERS.items())


def _walk(addresses: Iterable[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    for address in addresses:
        if isinstance(address, URLResolver):
            yield from _walk(address.url_patterns)
        else:
            yield address


def _list_asked(view: Any) -> Iterator[tuple[str, str | dict[str, str]]]:
    """What a view asks for, by section: a page for all of its methods, an endpoint for each."""
    if needed := getattr(view, "needs", None):
        yield CONSOLE, needed
    endpoint: Any = getattr(view, "cls", None)
    if not hasattr(endpoint, "required_scope"):
        return
    methods = [method for method in METHODS if hasattr(endpoint, method.lower())]
    yield API, {method: _of(endpoint.required_scope, method) or "-" for method in methods}
    permission = getattr(endpoint, "required_permission", "")
    if people := {method: needed for method in methods if (needed := _of(permission, method))}:
        yield PEOPLE, people


def _of(said: str | Mapping[str, str], method: str) -> str:
    return said if isinstance(said, str) else said[method]
