"""Dependency pages: can people and programs see how far dependencies are, and try again what has failed?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from registry.dependencies import states
from registry.dependencies.failures import Failure
from registry.models import Decision, ToolVersion
from registry.versions import services
from tests.support.calls import assert_problem
from tests.support.dependencies import FIRST, build_all, enabled, state_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
POLLS = 'hx-trigger="live, every 10s"'
FAILURE = Failure("no_wheel", "first==1.0 has no wheel.", "Name another version.")


def page_of(version: ToolVersion, person: Person, where: str = "versions") -> str:
    """What the page shows of its dependencies."""
    answer = person.client().get(f"/{where}/{version.wire_id}")
    assert answer.status_code == 200
    text = answer.content.decode()
    start = text.index('id="dependencies"')
    return text[start : text.index("</section>", start)]


def failed(version: ToolVersion) -> None:
    claimed = states.claim_next()
    assert claimed is not None
    assert claimed.version_id == version.pk
    states.write_failed(claimed, FAILURE)


@pytest.mark.req("SVC-9")
def test_the_page_follows_until_there_is_nothing_to_wait_for(
    submit: Callable[..., ToolVersion], operator: Person, lock: list[str]
) -> None:
    version = submit(dependencies=FIRST, dependency_lock=lock)
    locked = page_of(version, operator)
    enabled(version, operator)
    wanted = page_of(version, operator)
    states.queue_wanted()
    claimed = states.claim_next()
    assert claimed is not None
    states.report_progress(claimed, ["Downloading first-1.0-py3-none-any.whl"])
    building = page_of(version, operator)
    states.give_back(claimed)
    build_all()
    ready = page_of(version, operator)

    assert [POLLS in each for each in (locked, wanted, building, ready)] == [False, True, True, False]
    assert "Downloading first-1.0-py3-none-any.whl" in building
    assert "Downloading" not in ready
    for word in ("first", "second", "named by the manifest", "needed by another package"):
        assert word in ready


def test_a_failure_is_shown_with_its_remedy_and_a_button_for_those_who_may(
    submit: Callable[..., ToolVersion], operator: Person, developer: Person, wheels: Path
) -> None:
    version = submit(dependencies=FIRST)
    failed(version)

    shown, without = page_of(version, operator), page_of(version, developer)

    for text in (shown, without):
        assert FAILURE.message in text
        assert FAILURE.remedy in text
        assert POLLS not in text
    assert "Try again" in shown
    assert "Try again" not in without
    address = f"/versions/{version.wire_id}/dependencies/retry"
    assert developer.client().post(address).status_code == 403
    assert operator.client().post(address).headers["Location"] == f"/versions/{version.wire_id}"
    assert state_of(version) == "resolving"
    assert operator.client().post(address).status_code == 409


def test_a_tool_without_dependencies_says_nothing_about_them(
    submit: Callable[..., ToolVersion], operator: Person
) -> None:
    version = submit()

    for where in ("versions", "reviews"):
        assert 'id="dependencies"' not in operator.client().get(f"/{where}/{version.wire_id}").content.decode()


@pytest.mark.req("SVC-9", "TOOLS-9")
def test_a_reviewer_sees_what_comes_along_and_cannot_approve_before(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path
) -> None:
    version = submit(dependencies=FIRST)
    before = page_of(version, operator, "reviews")
    sent = {"decision": "approve", "note": ""}

    refused = operator.client().post(f"/reviews/{version.wire_id}/decision", sent)
    build_all()
    after = page_of(version, operator, "reviews")
    approved = operator.client().post(f"/reviews/{version.wire_id}/decision", sent)

    assert POLLS in before
    assert refused.status_code == 422
    assert "not known yet which code" in refused.content.decode()
    assert POLLS not in after
    assert "second" in after
    assert approved.status_code == 302


def test_what_the_lock_changes_stands_among_the_changes_of_the_version(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path, caller: Caller
) -> None:
    enabled(submit(), operator)
    version = submit(version="1.0.1", dependencies=FIRST)
    build_all()
    review = operator.client().get(f"/reviews/{version.wire_id}").content.decode()
    services.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator.by)

    shown = operator.client().get(f"/versions/{version.wire_id}").content.decode()
    told = caller.get(f"/tools/{ECHO}/versions/1.0.1").json()["data"]

    for text in (review, shown):
        assert "Further code of others comes along: second==1.0" in text
    assert {each["kind"] for each in told["changes"]} == {"dependencies.added", "lock.added"}


@pytest.mark.req("BRING-2")
def test_what_a_server_said_last_is_shown_as_text_with_what_is_hidden_in_it(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path, caller: Caller
) -> None:
    version = submit(dependencies=FIRST)
    claimed = states.claim_next()
    assert claimed is not None
    states.write_failed(claimed, Failure("server_unstartable", "It does not start.", "Mend it.", "<b>a\u200bb</b>"))

    shown = page_of(version, operator)
    seen = caller.get(f"/tools/{ECHO}/versions/1.0.0").json()["data"]["dependencies"]["failure"]

    assert "What it said last" in shown
    assert "&lt;b&gt;a" in shown
    assert "\u200b" not in shown
    assert seen["output"] == "<b>a\u200bb</b>"


@pytest.mark.req("BRING-4")
def test_what_was_brought_from_an_object_says_whose_it_is_and_is_tried_also_with_a_lock_of_its_own(
    submit: Callable[..., ToolVersion], operator: Person, lock: list[str]
) -> None:
    of_package = {"name": "first:Find", "framework": "langchain", "package": "first", "version": "1.0"}
    of_author = {"name": "shop:find", "framework": "function", "source_digest": f"sha256:{'0' * 64}"}
    said = {"dependencies": FIRST, "dependency_lock": lock}

    one, other = [
        submit(version=number, origin={"object": each, "object_digest": f"sha256:{'0' * 64}"}, **said)
        for number, each in (("1.0.0", of_package), ("1.0.1", of_author))
    ]
    build_all()  # by a builder that has no sandbox to try in

    assert [state_of(each) for each in (one, other)] == ["unresolved"] * 2
    shown = [operator.client().get(f"/reviews/{each.wire_id}").content.decode() for each in (one, other)]
    assert "first:Find" in shown[0]
    assert "modules of its author" in shown[1]
    assert "as_brought.json does not hold what the origin pins" in shown[0]


@pytest.mark.req("SVC-9")
def test_programs_see_the_same_and_try_again(submit: Callable[..., ToolVersion], wheels: Path, caller: Caller) -> None:
    version = submit(dependencies=FIRST)
    failed(version)
    address = f"/tools/{ECHO}/versions/1.0.0"

    seen = caller.get(address).json()["data"]["dependencies"]
    again = caller.post(f"{address}/dependencies/retry", {})
    build_all()
    found = caller.get(address).json()["data"]["dependencies"]

    assert (seen["state"], seen["failure"], seen["lock"], seen["packages"]) == (
        "unresolved",
        FAILURE.to_json(),
        None,
        [],
    )
    assert again.status_code == 200
    assert again.json()["data"]["state"] == "resolving"
    assert (found["state"], found["failure"]) == ("locked", None)
    assert [(each["name"], each["version"], each["named"]) for each in found["packages"]] == [
        ("first", "1.0", True),
        ("second", "1.0", False),
    ]
    assert_problem(caller.post(f"{address}/dependencies/retry", {}), 409, "STATE.CONFLICT")


def test_a_version_without_any_says_so(submit: Callable[..., ToolVersion], caller: Caller) -> None:
    submit()

    assert caller.get(f"/tools/{ECHO}/versions/1.0.0").json()["data"]["dependencies"] is None
    assert_problem(caller.post(f"/tools/{ECHO}/versions/1.0.0/dependencies/retry", {}), 409, "STATE.CONFLICT")
