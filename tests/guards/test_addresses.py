"""Addresses: is each address declared beside its page or endpoint, and can each be reached?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.routes import Route, console_routes, routes
from toolhub.access_tables import list_access_rows
from toolhub.addresses import collect_navigation, load_url_modules

if TYPE_CHECKING:
    from django.urls import URLPattern

SPRITE = Path(__file__).resolve().parents[2] / "static" / "ui" / "icons.svg"
FREE = {"str": r"[^/]+", "path": r".+", "slug": r"[-\w]+", "int": r"\d+"}
PART = re.compile(r"(<\w+:\w+>)")
ENTRIES = [entry for _, entries in collect_navigation() for entry in entries]


def package_of(pattern: URLPattern | Route) -> str:
    view = pattern.view if isinstance(pattern, Route) else pattern.callback
    return str(getattr(view, "cls", view).__module__).rpartition(".")[0]


def test_an_address_is_declared_in_the_package_of_its_view() -> None:
    strays = {
        pattern.name: module.__package__
        for module in load_url_modules()
        for pattern in [*getattr(module, "PAGES", []), *getattr(module, "API", [])]
        if package_of(pattern) != module.__package__
    }

    assert len(load_url_modules()) > 30
    assert strays == {}


def test_a_row_of_the_access_table_stands_beside_the_view_that_it_is_about() -> None:
    packages = {route.name: package_of(route) for route in routes()}

    assert [row for row in list_access_rows() if packages.get(row.route) != row.package] == []


def test_an_entry_of_the_navigation_asks_for_what_its_page_needs() -> None:
    """But for the reference of the API, which everybody may read and those find in the menu who may see tools."""
    needs = {route.name: route.needs for route in console_routes()}

    assert len(ENTRIES) > 20
    assert {entry.key for entry in ENTRIES if entry.permission != needs[entry.address]} == {"api"}


def test_entries_of_the_navigation_have_a_key_and_a_place_of_their_own_and_an_icon() -> None:
    sprite = set(re.findall(r'<symbol id="([^"]+)"', SPRITE.read_text()))

    assert len({entry.key for entry in ENTRIES}) == len(ENTRIES)
    assert len({(entry.job, entry.order) for entry in ENTRIES}) == len(ENTRIES)
    assert {entry.icon for entry in ENTRIES} - sprite == set()


def expression_of(path: str) -> re.Pattern[str]:
    """What it matches; an id of one kind matches none of another."""
    parts = (
        FREE.get(part.strip("<").partition(":")[0], re.escape(part)) if PART.fullmatch(part) else re.escape(part)
        for part in PART.split(path)
    )
    return re.compile("".join(parts))


def example_of(path: str) -> str:
    return re.sub(r"<int:\w+>", "1", re.sub(r"<(?:str|path|slug):\w+>", "word", path))


def test_no_address_is_hidden_by_one_that_is_tried_before_it() -> None:
    """The order is that of packages (toolhub/packages.py): a word in an address must not be what another takes for a name."""
    tried = [(route, expression_of(route.path)) for route in routes()]
    hidden = [
        (route.path, before.path)
        for at, (route, _) in enumerate(tried)
        for before, expression in tried[:at]
        if expression.fullmatch(example_of(route.path))
    ]

    assert hidden == []
