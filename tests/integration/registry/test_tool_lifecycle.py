"""Tool lifecycle: does a tool become callable only by the people and along the steps that the rules name?"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from evidence.models import Fact
from evidence.services import open_free_text
from invocations.models import Attempt
from kernel.problems import Conflict, SchemaInvalid
from registry.models import TRANSITIONS, Decision, Review, Tool, ToolState, ToolVersion, VersionState
from registry.problems import ManifestInvalid, NotReviewed, OwnSubmission, UnknownTool, VersionExists
from registry.versions import services as registry
from tests.support.calls import PAIR, kinds_of, row_of
from tests.support.manifests import manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


def approve(version: ToolVersion, person: Person) -> Review:
    return registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=person.by)


def move(tool: Tool, to: ToolState, person: Person, reason: str = "because") -> Tool:
    match to:
        case ToolState.ENABLED:
            version = tool.versions.get()
            return registry.enable_tool(name=tool.name, version_id=version.pk, reason=reason, by=person.by)
        case ToolState.PAUSED:
            return registry.pause_tool(name=tool.name, reason=reason, by=person.by)
        case ToolState.DEPRECATED:
            sunset = timezone.now().date() + timedelta(days=30)
            return registry.deprecate_tool(name=tool.name, reason=reason, sunset_on=sunset, by=person.by)
        case _:
            raise Conflict(f"Nothing moves a tool to {to}.")


@pytest.mark.req("TOOLS-7")
@pytest.mark.parametrize("to", list(ToolState))
@pytest.mark.parametrize("state", list(ToolState))
def test_a_tool_moves_only_along_its_transitions_and_each_step_is_a_fact(
    state: ToolState, to: ToolState, submit: Callable[..., ToolVersion], operator: Person
) -> None:
    version = submit()
    approve(version, operator)
    current = None if state == ToolState.REGISTERED else version
    Tool.objects.update(state=state, current=current)
    tool = Tool.objects.get()
    told = Fact.objects.filter(kind__startswith="tool.")
    facts = told.count()

    if to in TRANSITIONS[state]:
        moved = move(tool, to, operator)
        assert (moved.state, moved.state_reason, moved.state_changed_by) == (to, "because", operator.by.id)
        fact = told.order_by("-pk")[0]
        assert told.count() == facts + 1
        assert (fact.kind, fact.subject, fact.actor_id) == (f"tool.{to}", f"soul:tool:{ECHO}", operator.by.id)
        assert open_free_text(fact) == {"reason": "because"}
    else:
        with pytest.raises(Conflict):
            move(tool, to, operator)
        assert told.count() == facts
        assert Tool.objects.get().state == state


@pytest.mark.req("TOOLS-7")
@pytest.mark.parametrize("to", [ToolState.ENABLED, ToolState.PAUSED, ToolState.DEPRECATED])
def test_a_step_without_a_reason_is_refused(to: ToolState, enable: Callable[..., Tool], operator: Person) -> None:
    tool = enable()
    if to == ToolState.ENABLED:
        move(tool, ToolState.PAUSED, operator)

    with pytest.raises(SchemaInvalid, match="why"):
        move(tool, to, operator, reason="  ")


@pytest.mark.req("TOOLS-22")
@pytest.mark.parametrize("to", [ToolState.ENABLED, ToolState.PAUSED, ToolState.DEPRECATED])
def test_a_stranger_moves_nothing(to: ToolState, enable: Callable[..., Tool], stranger: Person) -> None:
    with pytest.raises(UnknownTool):
        move(enable(), to, stranger)


def test_a_sunset_in_the_past_is_refused(enable: Callable[..., Tool], operator: Person) -> None:
    enable()

    with pytest.raises(SchemaInvalid) as caught:
        registry.deprecate_tool(name=ECHO, reason="old", sunset_on=date(2020, 1, 1), by=operator.by)
    assert caught.value.details["findings"][0]["pointer"] == "/sunset_on"


def test_a_deprecated_tool_answers_with_a_warning_and_is_hidden_from_discovery(
    enable: Callable[..., Tool], operator: Person, caller: Caller, grant: Callable[..., Any], bell: Bell
) -> None:
    move(enable(), ToolState.DEPRECATED, operator)
    grant()

    answer = caller.invoke(ECHO, {"text": "x"})

    assert answer.status_code == 200
    assert any("deprecated" in warning for warning in answer.json()["warnings"])
    assert caller.get("/tools").json()["data"]["tools"] == []
    assert len(caller.get("/tools?state=deprecated").json()["data"]["tools"]) == 1


# Reviews.


def test_nobody_reviews_their_own_submission(submit: Callable[..., ToolVersion], operator: Person) -> None:
    version = registry.submit_version(document=manifest(), by=operator.by)

    with pytest.raises(OwnSubmission):
        approve(version, operator)
    assert not Review.objects.exists()


def test_a_version_that_is_not_approved_cannot_be_enabled(submit: Callable[..., ToolVersion], operator: Person) -> None:
    version = submit()
    for state in (VersionState.SUBMITTED, VersionState.REFUSED):
        ToolVersion.objects.update(review_state=state)
        with pytest.raises(NotReviewed):
            registry.enable_tool(name=ECHO, version_id=version.pk, reason="x", by=operator.by)


def test_high_risk_takes_two_reviewers(
    submit: Callable[..., ToolVersion], operator: Person, second_operator: Person
) -> None:
    version = submit(safety_class="High")

    approve(version, operator)
    version.refresh_from_db()
    assert version.review_state == VersionState.SUBMITTED
    with pytest.raises(Conflict):
        approve(version, operator)
    with pytest.raises(NotReviewed):
        registry.enable_tool(name=ECHO, version_id=version.pk, reason="x", by=operator.by)

    approve(version, second_operator)
    version.refresh_from_db()
    assert version.review_state == VersionState.APPROVED


@pytest.mark.parametrize("safety", ["Low", "Medium", "High"])
def test_one_refusal_is_enough_and_needs_a_note(
    safety: str, submit: Callable[..., ToolVersion], operator: Person, second_operator: Person
) -> None:
    version = submit(safety_class=safety)
    with pytest.raises(SchemaInvalid):
        registry.review_version(version_id=version.pk, decision=Decision.REFUSE, note=" ", by=operator.by)

    registry.review_version(version_id=version.pk, decision=Decision.REFUSE, note="too broad", by=operator.by)

    version.refresh_from_db()
    assert version.review_state == VersionState.REFUSED
    with pytest.raises(Conflict):
        approve(version, second_operator)
    assert open_free_text(Fact.objects.get(kind="tool.reviewed")) == {"note": "too broad"}


def test_a_stranger_reviews_nothing(submit: Callable[..., ToolVersion], stranger: Person) -> None:
    with pytest.raises(ToolVersion.DoesNotExist):
        approve(submit(), stranger)


def test_an_approved_newer_version_takes_over_and_the_older_one_can_come_back(
    enable_by_review: Callable[..., Tool], operator: Person
) -> None:
    first = enable_by_review().current
    second = enable_by_review(version="1.1.0").current
    assert second is not None
    assert second.version == "1.1.0"
    assert first is not None

    back = registry.enable_tool(name=ECHO, version_id=first.pk, reason="1.1.0 is broken", by=operator.by)

    assert back.current == first
    assert Fact.objects.filter(kind="tool.enabled").count() == 3


# Versions.


def test_a_version_never_changes(submit: Callable[..., ToolVersion]) -> None:
    version = submit()
    version.manifest = {}

    for fields in (None, ["manifest"], ["manifest", "review_state"]):
        with pytest.raises(RuntimeError):
            version.save(update_fields=fields)
    assert ToolVersion.objects.get().manifest == manifest()


def test_the_same_content_again_is_the_same_version(submit: Callable[..., ToolVersion]) -> None:
    assert submit().pk == submit().pk
    assert Fact.objects.filter(kind="tool.registered").count() == 1


def test_other_content_under_the_same_number_is_refused(submit: Callable[..., ToolVersion], caller: Caller) -> None:
    submit()

    with pytest.raises(VersionExists):
        submit(description="Something else.")
    answer = caller.post("/tools", manifest(description="Something else."))
    assert (answer.status_code, answer.json()["error"]["reason"]) == (409, "TOOL.VERSION_EXISTS")
    assert answer.json()["error"]["details"]["existing"].startswith("sha256:")


def test_tools_of_two_tenants_share_a_name_and_nothing_else(
    submit: Callable[..., ToolVersion], stranger: Person
) -> None:
    mine = submit()
    theirs = registry.submit_version(document=manifest(description="Theirs."), by=stranger.by)

    assert mine.tool.name == theirs.tool.name
    assert mine.tool_id != theirs.tool_id


@pytest.mark.req("TOOLS-8")
def test_a_manifest_that_is_not_right_leaves_nothing(submit: Callable[..., ToolVersion], caller: Caller) -> None:
    with pytest.raises(ManifestInvalid):
        submit(side_effect="None", capabilities={"net": [{"host": "example.org"}]})

    answer = caller.post("/tools", {"id": "x"})
    assert (answer.status_code, answer.json()["error"]["reason"]) == (422, "MANIFEST.INVALID")
    assert not Tool.objects.exists()


@pytest.mark.parametrize("module", ["nowhere.tools", "sample.nothing"])
def test_a_manifest_whose_code_is_not_there_is_refused(module: str, submit: Callable[..., ToolVersion]) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        submit(implementation={"module": module, "entry": "echo"})

    finding = caught.value.details["findings"][0]
    assert (finding["pointer"], finding["rule"]) == ("/implementation/module", "implementation.unusable")


@pytest.mark.parametrize(
    ("program", "image", "place"),
    [
        (["/usr/bin/node", "nothing.js"], "node", "/implementation/program"),
        (["/usr/bin/node", "tools.py"], "no-such-image", "/implementation/image"),
    ],
)
def test_a_program_whose_file_or_image_is_not_there_is_refused(
    program: list[str], image: str, place: str, submit: Callable[..., ToolVersion]
) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        submit(implementation={"program": program, "package": "sample", "image": image})

    finding = caught.value.details["findings"][0]
    assert (finding["pointer"], finding["rule"]) == (place, "implementation.unusable")
    assert image in finding["message"] or "names a file" in finding["message"]


@pytest.fixture
def own_tools(tmp_path: Path, settings: Any) -> Path:
    """A tools root of this test, with the package ``mine``."""
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tools.py").write_text("def run(**rest):\n    return {'version': 1}\n")
    settings.TOOLHUB_TOOLS_PATH = [tmp_path]
    return package


@pytest.mark.parametrize("change", ["changed", "gone"])
def test_code_that_is_not_what_was_reviewed_does_not_run(
    change: str,
    own_tools: Path,
    enable: Callable[..., Tool],
    caller: Caller,
    grant: Callable[..., Any],
    bell: Bell,
) -> None:
    enable(id="mine.tools.run", implementation={"module": "mine.tools"})
    grant("*")
    good = caller.invoke("mine.tools.run", {})
    assert good.json()["data"] == {"version": 1}
    if change == "changed":
        (own_tools / "tools.py").write_text("def run(**rest):\n    return {'version': 2}\n")
    else:
        (own_tools / "tools.py").unlink()

    answer = caller.invoke("mine.tools.run", {})

    assert (answer.status_code, answer.json()["error"]["reason"]) == (409, "TOOL.BUILD_CHANGED")
    assert answer.json()["error"]["remedy"]
    row = row_of(answer)
    assert kinds_of(row) == PAIR
    assert Attempt.objects.get(invocation=row).box == ""


@pytest.mark.req("TOOLS-7")
def test_the_first_enabling_needs_no_version_where_one_is_approved(
    submit: Callable[..., ToolVersion], operator: Person
) -> None:
    approve(submit(), operator)
    submit(version="1.1.0")  # waits for its review

    tool = registry.enable_tool(name=ECHO, reason="first", by=operator.by)

    assert tool.current is not None
    assert (tool.state, tool.current.version) == (ToolState.ENABLED, "1.0.0")


def test_the_first_enabling_asks_which_where_several_are_approved(
    submit: Callable[..., ToolVersion], operator: Person
) -> None:
    for number in ("1.0.0", "1.1.0"):
        approve(submit(version=number), operator)

    with pytest.raises(SchemaInvalid) as refused:
        registry.enable_tool(name=ECHO, reason="first", by=operator.by)

    message = f"{ECHO} has never been enabled. Say which version: 1.0.0, 1.1.0."
    assert refused.value.details == {"findings": [{"pointer": "/version", "message": message}]}


def test_nothing_is_enabled_that_nobody_has_approved(submit: Callable[..., ToolVersion], operator: Person) -> None:
    submit()

    with pytest.raises(NotReviewed, match="no approved version"):
        registry.enable_tool(name=ECHO, reason="first", by=operator.by)


@pytest.mark.req("CARD-3")
def test_the_page_of_a_tool_says_in_words_what_it_may_reach_and_leads_to_a_grant_where_none_covers_it(
    submit: Callable[..., ToolVersion], operator: Person
) -> None:
    version = submit(side_effect="Network", capabilities={"net": [{"host": "shop.example.com"}], "tmp": 1_048_576})
    approve(version, operator)

    page = operator.client().get(f"/tools/{ECHO}").content.decode()
    filters = operator.client().get("/tools").content.decode()

    assert re.search(r"reach shop\.example\.com by HTTPS <code[^>]*>net:https://shop\.example\.com:443</code>", page)
    assert "temporary files at most 1 MiB" in page
    assert f'href="/grants/new?tools={ECHO}"' in page
    assert re.search(r'<option value="tmp">\s*Temporary files', filters)
