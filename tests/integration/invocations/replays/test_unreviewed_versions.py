"""Unreviewed versions: can a reviewer try one with a recorded call, and nobody else, before anybody has approved it?"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse
from django.utils import timezone

from access.roles import Role
from evidence.models import Fact
from invocations.models import Invocation, State
from invocations.replays import rerun as replays_rerun
from invocations.replays import services, version_impacts, worker
from invocations.replays.version_impacts import list_triable_calls
from invocations.run import execution
from kernel.problems import SchemaInvalid
from registry.models import Decision, VersionState
from registry.tools.lifecycle import yank_version
from registry.versions.services import review_version, submit_version
from tests.conftest import make_person
from tests.support.calls import row_of
from tests.support.made_calls import make_calls
from tests.support.manifests import manifest
from tests.support.replays import WHY, replay, replayed_tool, work_through
from tests.support.sandboxes import docker_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.sandbox.base import Profile, RunOutcome, Sandbox
    from registry.models import Tool, ToolVersion
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
DRAWS = {"implementation": {"module": "sample.replayed", "entry": "draws"}}


@pytest.fixture(scope="module")
def docker() -> Iterator[Sandbox]:
    sandbox = docker_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def call(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    docker: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> Invocation:
    """A call that has ended, of version 1.0.0."""
    for module in (execution, replays_rerun, worker):
        monkeypatch.setattr(module, "current_sandbox", lambda: docker)
    grant()
    enable(**replayed_tool("draws"))
    return row_of(caller.invoke("sample.tools.draws", {"text": "x"}))


@pytest.fixture
def waiting(call: Invocation, submit: Callable[..., ToolVersion]) -> ToolVersion:
    return submit(**replayed_tool("draws", version="1.1.0"))


@pytest.mark.req("TOOLS-28")
def test_a_reviewer_tries_a_version_with_a_recorded_call_and_that_is_on_record(
    call: Invocation, waiting: ToolVersion, operator: Person
) -> None:
    row = replay(call, by=operator.by, version="1.1.0")

    rerun = row.reruns.get()
    assert (row.state, rerun.verdict, rerun.version) == ("ended", "match", "1.1.0")
    assert {"other_version", "under_review"} <= set(rerun.notes)
    waiting.refresh_from_db()
    assert waiting.review_state == VersionState.SUBMITTED
    assert Invocation.objects.count() == 1  # it is no call
    facts = Fact.objects.filter(subject=row.wire_id).order_by("id")
    assert [fact.kind for fact in facts] == ["replay.began", "replay.ended"]
    assert facts[0].actor_id == operator.by.id
    assert json.loads(bytes(facts[0].leaf))["data"]["version"] == "1.1.0"


@pytest.mark.req("TOOLS-15")
def test_nobody_else_has_unreviewed_code_run(
    call: Invocation, waiting: ToolVersion, auditor: Person, tenant: Any
) -> None:
    author = make_person(tenant, "ada", Role.OPERATOR, Role.DEVELOPER)
    submit_version(document=manifest("draws", **DRAWS | {"version": "1.2.0"}), by=author.by)

    for version, person in (("1.1.0", auditor), ("1.2.0", author)):
        with pytest.raises(SchemaInvalid, match="no approved version"):
            services.replay_call(invocation_id=call.pk, reason=WHY, version=version, by=person.by)
        page = person.client().get(reverse("replay_new", args=[call.pk])).content.decode()
        assert f'value="{version}"' not in page


@pytest.mark.req("CARD-3")
def test_an_old_call_is_not_what_an_unreviewed_version_is_tried_with(
    call: Invocation, waiting: ToolVersion, operator: Person
) -> None:
    Invocation.objects.filter(pk=call.pk).update(created_at=call.created_at - timedelta(days=8))

    with pytest.raises(SchemaInvalid, match="last 7 days"):
        services.replay_call(invocation_id=call.pk, reason=WHY, version="1.1.0", by=operator.by)


@pytest.mark.req("CARD-3")
def test_a_version_that_does_not_take_the_arguments_says_so(
    call: Invocation, submit: Callable[..., ToolVersion], operator: Person
) -> None:
    narrower = {"type": "object", "properties": {"text": {"type": "integer"}}}
    submit(**replayed_tool("draws", version="2.0.0", input_schema=narrower))

    row = replay(call, by=operator.by, version="2.0.0")

    rerun = row.reruns.get()
    assert (rerun.verdict, rerun.why, rerun.runs) == ("cannot", "not_taken", 0)


@pytest.mark.req("TOOLS-15")
def test_a_version_that_was_refused_meanwhile_is_not_run(
    call: Invocation, waiting: ToolVersion, operator: Person, second_operator: Person
) -> None:
    row = services.replay_call(invocation_id=call.pk, reason=WHY, version="1.1.0", by=operator.by)
    review_version(
        version_id=waiting.pk, decision=Decision.REFUSE, note="It is not what was agreed.", by=second_operator.by
    )

    work_through()

    rerun = row.reruns.get()
    assert (rerun.verdict, rerun.why, rerun.runs) == ("cannot", "version_refused", 0)


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("is_approved", [False, True])
def test_a_version_that_was_yanked_is_not_run_in_place_of_the_recorded_one(
    is_approved: bool, call: Invocation, waiting: ToolVersion, operator: Person, second_operator: Person
) -> None:
    if is_approved:
        review_version(version_id=waiting.pk, decision=Decision.APPROVE, note="", by=second_operator.by)
    row = services.replay_call(invocation_id=call.pk, reason=WHY, version="1.1.0", by=operator.by)
    yank_version(version_id=waiting.pk, reason="It was never to be run.", by=second_operator.by)

    work_through()

    rerun = row.reruns.get()
    assert (rerun.verdict, rerun.why, rerun.runs) == ("cannot", "version_yanked", 0)
    with pytest.raises(SchemaInvalid, match="no approved version"):
        services.replay_call(invocation_id=call.pk, reason=WHY, version="1.1.0", by=operator.by)
    client = operator.client()
    assert 'value="1.1.0"' not in client.get(reverse("replay_new", args=[call.pk])).content.decode()
    said = "This version was yanked, and is not run any more."
    assert said in client.get(reverse("replay", args=[row.pk])).content.decode()


@pytest.mark.req("CARD-3")
def test_a_recorded_version_that_was_yanked_since_may_be_looked_into(
    call: Invocation, operator: Person, second_operator: Person
) -> None:
    assert call.version is not None
    yank_version(version_id=call.version.pk, reason="It answered wrongly.", by=second_operator.by)

    assert replay(call, by=operator.by).reruns.get().verdict == "match"


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(("asked", "given"), [("cold", "cold"), ("shared", "single"), (None, "single")])
def test_a_version_is_tried_at_the_isolation_that_it_asks_for_itself(
    asked: str | None,
    given: str,
    call: Invocation,
    submit: Callable[..., ToolVersion],
    operator: Person,
    docker: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the recorded version was content with."""
    submit(**replayed_tool("draws", version="1.2.0"), **({"isolation": asked} if asked else {}))
    run, levels = docker.run, list[str]()

    def noted(profile: Profile, *more: Any) -> RunOutcome:
        levels.append(profile.isolation)
        return run(profile, *more)

    monkeypatch.setattr(docker, "run", noted)
    row = replay(call, by=operator.by, version="1.2.0")

    assert row.reruns.get().verdict == "match"
    assert levels == [given]


@pytest.mark.req("CARD-3")
def test_calls_to_try_a_version_with_are_looked_for_among_the_newest_alone(
    call: Invocation, waiting: ToolVersion, caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A review is opened again and again, whatever number of calls were denied."""
    make_calls(caller, timezone.now(), state=State.DENIED, tool=call.tool, times=3)
    monkeypatch.setattr(version_impacts, "MAX_LOOKED_AT", 4)
    assert list_triable_calls(waiting, by=operator.by) == [call]

    monkeypatch.setattr(version_impacts, "MAX_LOOKED_AT", 3)

    assert list_triable_calls(waiting, by=operator.by) == []
    page = operator.client().get(reverse("review", args=[waiting.pk])).content.decode()
    assert "None of the newest calls of the last seven days ran to an end" in page


@pytest.mark.req("CARD-3")
def test_the_page_of_the_review_leads_to_a_try_with_each_recorded_call(
    call: Invocation, waiting: ToolVersion, operator: Person, developer: Person
) -> None:
    client = operator.client()

    page = client.get(reverse("review", args=[waiting.pk])).content.decode()
    to = f"{reverse('replay_new', args=[call.pk])}?version=1.1.0"
    form = client.get(to).content.decode()

    assert list_triable_calls(waiting, by=operator.by) == [call]
    assert f'href="{to}"' in page
    assert '<option value="1.1.0" selected>1.1.0 · under review</option>' in form
    answer = client.post(reverse("replay_new", args=[call.pk]), {"version": "1.1.0", "reason": WHY})
    assert answer.status_code == 302
