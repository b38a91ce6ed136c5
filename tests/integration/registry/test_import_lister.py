"""Import lister: does the loop that builds dependencies ask servers of packages for their lists, and say why where it cannot?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kernel.database.connections import database_time
from registry.dependencies import find_dependency_folder, store
from registry.dependencies.builder import Builder
from registry.dependencies.failures import PAUSES_S, CannotBuild, CannotBuildYet, Failure
from registry.imports import services as imports
from registry.imports.lister import ImportLister, ListedServer
from registry.imports.models import Import, ImportState
from tests.support.dependencies import FIRST, nothing
from tests.support.wheels import make_wheel
from unitools.mcp_listings import Listing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from registry.models import ToolVersion
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
    assert (row.state, row.source["found"]["version"], row.worker) == (ImportState.READ, "1.0", "")
    assert row.lease_until is not None
    assert row.lease_until <= database_time()
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


HANGS = Failure("server_unstartable", "The server did not list its tools within 60 seconds.", "Mend it.")


def list_in_turn(then: Callable[[str], object] = nothing) -> list[str]:
    """The groups of all imports whose servers hang, in the order in which they hold the host. ``then``: done after each."""
    order: list[str] = []

    def hang(source: dict[str, Any], *_: Any) -> ListedServer:
        order.append(source["start"]["arguments"][0])
        raise CannotBuildYet(HANGS, attempts=2)

    builder = Builder(tell=nothing, errand=ImportLister(hang))
    while (is_done := builder.pass_once()) or end_pauses():
        if is_done:
            then(order[-1])
        assert len(order) < 20
    return order


def end_pauses() -> int:
    """As if the time had passed after which what was put off is tried again. How many there were."""
    waiting = Import.objects.filter(state=ImportState.LISTING, lease_until__gt=database_time())
    return waiting.update(lease_until=database_time())


def bring(group: str, by: Person, package: str = PACKAGE) -> Import:
    return imports.import_package(package=package, group=f"acme.{group}", arguments=[group], by=by.by)


@pytest.mark.req("BRING-2")
def test_a_tenant_whose_servers_hang_is_in_nobodys_way(developer: Person, stranger: Person, wheels: Path) -> None:
    for group in ("one", "two", "three"):
        bring(group, developer)
    bring("theirs", stranger)

    order = list_in_turn()

    assert order[:3] == ["one", "theirs", "two"]  # one that hangs is behind the others of its tenant, too
    assert sorted(order) == sorted(["one", "two", "three", "theirs"] * 2)
    assert not Import.objects.exclude(state=ImportState.FAILED).exists()


@pytest.mark.req("BRING-2")
def test_what_hangs_and_is_alone_is_tried_again_after_a_pause(developer: Person, wheels: Path) -> None:
    row, tries = bring("one", developer), list[str]()

    def hang(source: dict[str, Any], *_: Any) -> ListedServer:
        tries.append(source["package"])
        raise CannotBuildYet(HANGS, attempts=3)

    for attempt, pause in ((1, PAUSES_S[0]), (2, PAUSES_S[1])):
        put_off_after = database_time()
        do_all(hang)
        row = Import.objects.get(pk=row.pk)
        assert (row.state, row.attempt, len(tries)) == (ImportState.LISTING, attempt, attempt)
        assert row.lease_until is not None
        assert put_off_after + timedelta(seconds=pause) < row.lease_until <= database_time() + timedelta(seconds=pause)
        assert not ImportLister(hang).is_waiting()
        assert "It is tried again." in developer.client().get(f"/bring/{row.wire_id}").text
        assert end_pauses() == 1
    do_all(hang)

    assert (Import.objects.get(pk=row.pk).state, len(tries)) == (ImportState.FAILED, 3)


@pytest.mark.req("BRING-2")
def test_who_asks_anew_does_not_wait_for_the_pause(developer: Person, wheels: Path) -> None:
    row = bring("one", developer)

    def hang(*_: Any) -> ListedServer:
        raise CannotBuildYet(HANGS, attempts=3)

    do_all(hang)
    bring("one", developer)
    do_all(list_server)

    assert Import.objects.get(pk=row.pk).state == ImportState.READ


@pytest.mark.req("BRING-2")
def test_who_asks_anew_at_once_has_been_served_all_the_same(developer: Person, stranger: Person, wheels: Path) -> None:
    for group in ("one", "two", "three", "four"):
        bring(group, developer)
    done = list[str]()

    def ask_anew(group: str) -> None:
        done.append(group)
        if len(done) <= 3 and group != "theirs":
            bring(group, developer)
        if len(done) == 1:
            bring("theirs", stranger)

    assert list_in_turn(ask_anew)[:4] == ["one", "two", "theirs", "three"]


@pytest.mark.req("BRING-2", "SVC-9")
def test_what_a_host_lacks_does_not_wait_for_all_imports(
    ready: ToolVersion, developer: Person, wheels: Path, settings: Any, tmp_path: Path
) -> None:
    """What is enabled is called on this host, too; one tenant may have hundreds of imports."""
    make_wheel(wheels, "other")
    for group in ("one", "two", "three"):
        bring(group, developer, "other")
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "another host")
    built = list[bool]()

    list_in_turn(lambda _: built.append(store.folder_of_lock(ready.dependencies.lock_digest).is_dir()))

    assert built[:2] == [False, True]
    assert find_dependency_folder(ready) is not None
