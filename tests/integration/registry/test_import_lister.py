"""Import lister: does the loop that builds dependencies ask servers of packages for their lists, and say why where it cannot?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from registry.dependencies.builder import Builder
from registry.dependencies.failures import CannotBuild, Failure
from registry.imports import services as imports
from registry.imports.lister import ImportLister, ListedServer
from registry.imports.models import Import, ImportState
from tests.support.dependencies import FIRST, nothing
from unitools.mcp_listings import Listing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)
ENTRY = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object", "properties": {}}}
PACKAGE = FIRST[0].partition("==")[0]


def list_server(source: dict[str, Any], folder: Path, beat: Callable[[], None]) -> ListedServer:
    """As a box would, of a package that is there."""
    beat()
    assert any(folder.iterdir())
    return ListedServer(Listing("2025-11-25", {"look": ENTRY}), "1.0", {"script": "look"} | source["start"])


def do_all(list_one: Any) -> None:
    builder = Builder(tell=nothing, errand=ImportLister(list_one))
    while builder.pass_once():
        pass


@pytest.mark.req("BRING-2")
def test_a_server_is_listed_by_the_loop_and_drafted_as_wanted(developer: Person, wheels: Path) -> None:
    row = imports.import_package(package=PACKAGE, group="acme.first", wanted=["look"], by=developer.by)

    do_all(list_server)

    row = Import.objects.get(pk=row.pk)
    assert (row.state, row.source["found"]["version"], row.lease_until) == (ImportState.READ, "1.0", None)
    assert [each["id"] for each in row.drafts] == ["acme.first.look"]
    page = developer.client().get(f"/bring/{row.wire_id}").text
    assert "acme.first.look" in page


@pytest.mark.req("BRING-2")
def test_a_server_that_does_not_start_shows_its_last_words_and_the_remedy(developer: Person, wheels: Path) -> None:
    def refuse(*_: Any) -> ListedServer:
        raise CannotBuild(
            Failure("server_unstartable", "The server does not start.", "Add a constraint.", "no attribute")
        )

    row = imports.import_package(package=PACKAGE, constraints=["other<2"], by=developer.by)

    do_all(refuse)

    row = Import.objects.get(pk=row.pk)
    assert row.state == ImportState.FAILED
    page = developer.client().get(f"/bring/{row.wire_id}").text
    for said in ("The server does not start.", "Add a constraint.", "no attribute"):
        assert said in page
    assert "other&lt;2" in developer.client().get(f"/bring/package?import={row.wire_id}").text


@pytest.mark.req("BRING-2")
def test_a_package_that_no_index_has_is_told(developer: Person, wheels: Path) -> None:
    row = imports.import_package(package="there-is-no-such-package", by=developer.by)

    do_all(list_server)

    assert Import.objects.get(pk=row.pk).failure["code"] == "unknown_package"


@pytest.mark.req("BRING-2")
def test_what_was_asked_anew_meanwhile_is_not_overwritten(developer: Person, wheels: Path) -> None:
    row = imports.import_package(package=PACKAGE, group="acme.first", by=developer.by)

    def ask_anew(source: dict[str, Any], folder: Path, beat: Callable[[], None]) -> ListedServer:
        if "arguments" not in source["start"]:
            imports.import_package(package=PACKAGE, group="acme.first", arguments=["--new"], by=developer.by)
        return list_server(source, folder, lambda: None)

    do_all(ask_anew)

    row = Import.objects.get(pk=row.pk)
    assert (row.state, row.source["found"]["start"]["arguments"]) == (ImportState.READ, ["--new"])
