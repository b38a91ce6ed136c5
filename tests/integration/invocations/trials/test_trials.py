"""Trials: does a reviewer see what a version answers to arguments that they write, and nobody else, before anybody has approved it?"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse
from django.utils import timezone

from access.members.services import give_permission
from access.roles import Role
from evidence.erasures.holders import CLASSES
from evidence.models import Fact, Snapshot
from invocations.models import Invocation
from invocations.replays.models import Replay, What
from invocations.sandbox.base import RunOutcome, RunStatus
from invocations.trials.answers import read_trial
from invocations.trials.services import request_trial
from registry.installations import services as installations
from registry.installations.services import Setup
from registry.models import Decision, VersionState
from registry.tools.lifecycle import enable_tool, share_tool
from registry.versions.services import review_version, submit_version
from tests.conftest import make_person
from tests.support.erasures import forget
from tests.support.manifests import manifest
from tests.support.policies_in_force import permit, put_in_force
from tests.support.replays import replayed_tool, work_through
from tests.support.sent_forms import SentForm
from tests.support.trials import SCHEMA, find_trial, see, send, try_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from invocations.sandbox.base import Profile, Sandbox
    from registry.models import Tool, ToolVersion
    from tests.conftest import Person

pytestmark = pytest.mark.django_db


@pytest.mark.req("CARD-3", "TOOLS-28")
def test_a_reviewer_writes_arguments_and_reads_the_answer_in_the_review(
    waiting: ToolVersion, reviewer: Person, docker: Sandbox
) -> None:
    answer = send(reviewer, waiting, **{"t:/text": "hello there"})
    row = find_trial(answer)
    assert "A worker starts it as soon as possible" in see(reviewer, answer.url)
    work_through()

    row.refresh_from_db()
    assert (row.what, row.state, row.result["state"]) == (What.TRIAL, "ended", "succeeded")
    for address in (answer.url, reverse("review", args=[waiting.pk])):
        page = see(reviewer, address)
        assert "The result matches the output schema of the version." in page
        assert "hello there" in page
    assert SentForm(see(reviewer, answer.url).partition("<main")[2]).values["t:/text"] == "hello there"
    waiting.refresh_from_db()
    assert waiting.review_state == VersionState.SUBMITTED


def test_lists_of_trials_are_live_while_one_of_them_has_no_end(
    waiting: ToolVersion, reviewer: Person, docker: Sandbox
) -> None:
    address = send(reviewer, waiting, **{"t:/text": "hello there"}).url
    pages = (address, reverse("trial_new", args=[waiting.pk]), reverse("review", args=[waiting.pk]))

    for each in pages:
        page = see(reviewer, each)
        assert f'data-live="trials" hx-get="{each}"' in page, each
        assert 'hx-trigger="live"\n     hx-select="#trial-list"' in page
    work_through()

    for each in pages:
        assert 'data-live="trials"' not in see(reviewer, each), each


def test_a_list_of_trials_asks_for_the_review_where_a_decision_was_not_accepted(
    waiting: ToolVersion, reviewer: Person, docker: Sandbox
) -> None:
    send(reviewer, waiting, **{"t:/text": "hello there"})
    address = reverse("review_decide", args=[waiting.pk])

    for target in ({}, {"HX-Request": "true", "HX-Target": "review-panel"}):
        answer = reviewer.client().post(address, {}, headers=target)

        assert answer.status_code == 422
        asked = f'data-live="trials" hx-get="{reverse("review", args=[waiting.pk])}"'
        assert asked in answer.content.decode()


def test_who_may_review_one_tool_alone_has_a_list_of_trials_that_asks_by_itself(
    waiting: ToolVersion, tenant: Tenant, docker: Sandbox
) -> None:
    owner = make_person(tenant, "owen", Role.OWNER)
    nora = make_person(tenant, "nora", Role.DEVELOPER)
    give_permission(user_id=nora.user.pk, permission="tools.review", on=waiting.tool, by=owner.by)
    address = send(nora, waiting, **{"t:/text": "hello there"}).url

    for each in (address, reverse("trial_new", args=[waiting.pk]), reverse("review", args=[waiting.pk])):
        page = see(nora, each)
        assert f'data-live="trials" hx-get="{each}"' in page, each
        assert 'hx-trigger="every 5s"\n     hx-select="#trial-list"' in page
    work_through()

    assert 'data-live="trials"' not in see(nora, address)


@pytest.mark.req("TOOLS-28")
def test_a_trial_is_on_record_without_its_values_and_is_no_call(
    waiting: ToolVersion, reviewer: Person, docker: Sandbox
) -> None:
    row = try_version(waiting, by=reviewer, text="secret words")

    assert Invocation.objects.count() == 0
    began, ended = Fact.objects.filter(subject=row.wire_id, kind__startswith="replay.").order_by("id")
    assert (began.kind, began.actor_id, ended.kind) == ("replay.began", reviewer.by.id, "replay.ended")
    said, told = (json.loads(bytes(fact.leaf))["data"] for fact in (began, ended))
    assert (said["what"], said["version"], told["counts"]) == ("trial", waiting.version, {"succeeded": 1})
    kept = {row.kind: row.commitment for row in Snapshot.objects.filter(invocation_id=row.pk)}
    assert kept == {"input": said["arguments"]["commit"], "output": told["values"]["commit"]}
    assert "secret words" not in bytes(began.leaf).decode() + bytes(ended.leaf).decode() + json.dumps(row.result)


@pytest.mark.req("CARD-3")
def test_arguments_that_the_schema_refuses_are_named_at_their_field_and_nothing_runs(
    waiting: ToolVersion, reviewer: Person
) -> None:
    answer = send(reviewer, waiting, **{"t:/text": "x" * 21})

    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Nothing was called yet." in page
    assert SentForm(page.partition("<main")[2]).values["t:/text"] == "x" * 21
    assert not Replay.objects.exists()
    assert not Snapshot.objects.filter(kind="input").exists()


@pytest.mark.req("CARD-3")
def test_the_form_goes_to_json_and_back_with_what_was_typed(waiting: ToolVersion, reviewer: Person) -> None:
    address = reverse("trial_new", args=[waiting.pk])
    sent = SentForm(see(reviewer, address).partition("<main")[2]).values | {"t:/text": "hello"}

    page = reviewer.client().post(address, sent | {"do": "view:json"}).content.decode()
    as_json = SentForm(page.partition("<main")[2]).values
    assert json.loads(as_json["raw"]) == {"text": "hello"}
    back = reviewer.client().post(address, as_json | {"do": "view:fields"}).content.decode()

    assert SentForm(back.partition("<main")[2]).values["t:/text"] == "hello"


@pytest.mark.req("CARD-3")
def test_a_result_unlike_the_output_schema_is_a_finding_with_its_places(
    submit: Callable[..., ToolVersion], reviewer: Person, docker: Sandbox
) -> None:
    promised = {"type": "object", "properties": {"draw": {"type": "string"}}}
    version = submit(**replayed_tool("draws", input_schema=SCHEMA, output_schema=promised))

    row = try_version(version, by=reviewer, text="x")

    page = see(reviewer, reverse("trial", args=[version.pk, row.pk]))
    assert row.result["problem"] == "SCHEMA.OUTPUT_INVALID"
    assert "These places of the result do not match the output schema" in page
    assert "<code>/draw</code>" in page
    assert "The result matches" not in page


@pytest.mark.req("TOOLS-15")
def test_the_box_of_a_trial_reaches_nothing_and_the_run_is_dry(
    submit: Callable[..., ToolVersion], reviewer: Person, docker: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = {
        "capabilities": {"net": [{"host": "example.org", "ports": ["443"]}]},
        "secrets": [{"name": "API_TOKEN", "description": "of a service"}],
        "side_effect": "Network",
    }
    version = submit(**replayed_tool("reaches", input_schema=SCHEMA), **asks)
    run, given = docker.run, list[Any]()

    def noted(profile: Profile, call: Any, *more: Any) -> RunOutcome:
        given.extend([profile, call])
        return run(profile, call, *more)

    monkeypatch.setattr(docker, "run", noted)

    row = try_version(version, by=reviewer, text="x")

    profile, call = given
    assert profile.outside == ()
    assert call.context["dry_run"] is True
    assert not call.secrets
    page = see(reviewer, reverse("trial", args=[version.pk, row.pk]))
    assert "Run without the network that the version asks for." in page
    assert {"trial_without_network", "trial_without_secrets"} <= set(row.result["notes"])


@pytest.mark.req("TOOLS-15", "TOOLS-17")
def test_a_trial_is_as_isolated_as_policy_demands_of_calls_of_the_tool(
    waiting: ToolVersion, reviewer: Person, tenant: Tenant, docker: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = {"id": "cold", "effect": "isolation", "when": {"tool": {"matches": "sample.*"}}, "level": "cold"}
    # What asks about the agent counts as well: a trial has none.
    nobodys = {"id": "nobodys", "effect": "isolation", "when": {"agent_name": {"equals": "shop"}}, "untrusted": True}
    given: list[Profile] = []
    run = docker.run

    def noted(profile: Profile, *more: Any) -> RunOutcome:
        given.append(profile)
        return RunOutcome(RunStatus.START_FAILED) if profile.untrusted else run(profile, *more)

    monkeypatch.setattr(docker, "run", noted)
    try_version(waiting, by=reviewer, text="x")
    put_in_force(permit(), level, nobodys, tenant=tenant)

    row = try_version(waiting, by=reviewer, text="x")

    assert [each.untrusted for each in given] == [False, True]
    assert (given[0].isolation, given[1].isolation) == ("single", "cold")
    assert (row.verdict, row.result["why"]) == ("cannot", "untrusted")
    assert "may run such code" in see(reviewer, reverse("trial", args=[waiting.pk, row.pk]))


def configured(*required: str) -> dict[str, Any]:
    """A tool that says what it was configured with."""
    names = {each: {"type": "string", "maxLength": 20} for each in ("region", "city")}
    schema = {"type": "object", "additionalProperties": False, "properties": names, "required": list(required)}
    return replayed_tool("reaches", input_schema=SCHEMA, config_schema=schema, limits={"artifacts": 1})


@pytest.mark.req("TOOLS-15")
def test_a_trial_has_the_configuration_of_its_tool_where_the_version_takes_it(
    submit: Callable[..., ToolVersion],
    enable: Callable[..., Tool],
    reviewer: Person,
    operator: Person,
    docker: Sandbox,
) -> None:
    tool = enable(**configured("region"))
    values = Setup(config={"region": "north"})
    installations.configure_installation(name=tool.name, values=values, reason="we are there", by=operator.by)

    fits = try_version(submit(version="1.0.1", **configured("region")), by=reviewer, text="x")
    unfit = try_version(submit(version="2.0.0", **configured("region", "city")), by=reviewer, text="x")

    assert read_trial(fits, by=reviewer.by).data["config"] == {"region": "north"}
    assert (unfit.verdict, unfit.result["why"]) == ("cannot", "config_unfit")


@pytest.mark.req("TOOLS-15", "TOOLS-22")
def test_a_trial_has_nothing_that_was_set_for_another_publishers_tool_of_its_name(
    submit: Callable[..., ToolVersion],
    reviewer: Person,
    operator: Person,
    stranger: Person,
    foreign_tenant: Tenant,
    docker: Sandbox,
) -> None:
    author = make_person(foreign_tenant, "ada", Role.DEVELOPER)
    described = configured("region")
    theirs = submit_version(document=manifest(described.pop("name"), **described), by=author.by)
    review_version(version_id=theirs.pk, decision=Decision.APPROVE, note="", by=stranger.by)
    enable_tool(name=theirs.tool.name, version_id=theirs.pk, reason="to test", by=stranger.by)
    share_tool(name=theirs.tool.name, reason="to test", by=stranger.by)
    values = Setup(config={"region": "theirs"})
    installations.install_tool(
        name=theirs.tool.name, publisher="foreign", values=values, reason="to test", by=operator.by
    )

    row = try_version(submit(**configured()), by=reviewer, text="x")

    assert read_trial(row, by=reviewer.by).data["config"] == {}


@pytest.mark.req("SPEC-10")
def test_what_a_reviewer_wrote_and_was_answered_goes_when_they_are_erased(
    waiting: ToolVersion, reviewer: Person, auditor: Person, operator: Person, docker: Sandbox
) -> None:
    row = try_version(waiting, by=reviewer, text="forget me")
    assert Snapshot.objects.filter(invocation_id=row.pk).count() == 2

    forget(reviewer.by.id, by=auditor.by)

    assert not Snapshot.objects.filter(invocation_id=row.pk).exists()
    assert "Erased, or kept no longer" in see(reviewer, reverse("trial", args=[waiting.pk, row.pk]))
    assert Fact.objects.filter(subject=row.wire_id, kind="replay.ended").exists()


@pytest.mark.req("SPEC-10")
def test_what_was_written_and_answered_goes_by_age_once_the_trial_has_ended(
    waiting: ToolVersion, reviewer: Person, docker: Sandbox
) -> None:
    old = try_version(waiting, by=reviewer, text="of last year")
    waits = request_trial(version_id=waiting.pk, arguments={"text": "x"}, by=reviewer.by)
    tenant_id, now = reviewer.by.tenant_id, timezone.now()
    Snapshot.objects.update(created_at=now - timedelta(days=9))
    assert CLASSES["inputs"].remove(tenant_id, now - timedelta(days=2), 10) == 0  # it ended just now
    Replay.objects.filter(pk=old.pk).update(finished_at=now - timedelta(days=9))

    gone = [CLASSES[each].remove(tenant_id, now - timedelta(days=2), 10) for each in ("inputs", "outputs")]

    assert gone == [1, 1]
    assert not Snapshot.objects.filter(invocation_id=old.pk).exists()
    assert Snapshot.objects.filter(invocation_id=waits.pk).exists()
    assert "Erased, or kept no longer" in see(reviewer, reverse("trial", args=[waiting.pk, old.pk]))


@pytest.mark.req("SPEC-10")
@pytest.mark.parametrize("kind", ["input", "output"])
def test_a_value_that_cannot_be_read_takes_nothing_but_itself_from_the_review(
    waiting: ToolVersion, reviewer: Person, docker: Sandbox, kind: str
) -> None:
    row = try_version(waiting, by=reviewer, text="hello there")
    one, other = (reverse("trial", args=[waiting.pk, row.pk]), reverse("review", args=[waiting.pk]))
    see(reviewer, one)
    Snapshot.objects.filter(invocation_id=row.pk, kind=kind).update(ciphertext=b"changed" * 20)

    for address in (one, other):
        page = see(reviewer, address)
        assert "The key of the stored values is not available." in page
        assert "The result matches the output schema" not in page
        assert "Erased, or kept no longer" not in page


@pytest.mark.req("SPEC-10")
def test_a_trial_of_whoever_was_erased_before_it_ran_is_not_run(
    waiting: ToolVersion, reviewer: Person, auditor: Person, docker: Sandbox
) -> None:
    row = request_trial(version_id=waiting.pk, arguments={"text": "forget me"}, by=reviewer.by)
    forget(reviewer.by.id, by=auditor.by)

    work_through()

    row.refresh_from_db()
    assert row.verdict == "cannot"
    assert row.result["why"] in ("no_values", "erased")
