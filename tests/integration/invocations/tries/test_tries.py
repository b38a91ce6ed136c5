"""Tries: do people try tools from their pages by the way that every call takes, and does a page say what came of it?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.urls import reverse

from access.agents.services import disable_agent
from access.members import services as members
from access.models import Consent
from access.roles import Role
from evidence.kinds import Kind
from evidence.models import Fact
from invocations.artifacts.models import Artifact
from invocations.models import Invocation, State
from invocations.sandbox.base import LeftArtifact, RunOutcome, RunStatus
from invocations.tries.services import MARK, list_last_tries
from kernel.ids import decode
from registry.installations import services as installations
from registry.tools import lifecycle
from tests.conftest import make_person
from tests.support.calls import kinds_of, writer
from tests.support.erasures import forget
from tests.support.sent_forms import SentForm

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool, ToolVersion
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 20},
        "times": {"type": "integer", "minimum": 1},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]},
        },
    },
    "required": ["text"],
    "additionalProperties": False,
}


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "owen", Role.OWNER)


@pytest.fixture
def ready(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> None:
    enable(input_schema=SCHEMA)
    grant()


def url(tool: str = ECHO) -> str:
    return reverse("tool_try", args=[tool])


def see(person: Person, address: str) -> str:
    answer = person.client().get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


def fill(person: Person, caller: Caller, *, tool: str = ECHO, **typed: str) -> dict[str, str]:
    """What a browser sends of the page of a tool, with some of it typed."""
    return (
        SentForm(see(person, url(tool)).partition("<main")[2]).values
        | {"caller": caller.agent.wire_id, "mode": "dry"}
        | typed
    )


def run(person: Person, sent: dict[str, str], *, tool: str = ECHO) -> Any:
    return person.client().post(url(tool), sent)


def find_made(answer: Any) -> Invocation:
    assert answer.status_code == 302, answer.content.decode()
    return Invocation.objects.get(pk=decode("inv", answer.url.rpartition("/")[2]))


@pytest.mark.req("CARD-3", "SVC-6")
def test_a_try_is_a_call_of_the_agent_for_the_person_with_its_begin_and_end(
    ready: None, operator: Person, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    sent = fill(operator, caller, **{"t:/text": "hello", "t:/times": "2"})

    answer = run(operator, sent)

    made = find_made(answer)
    assert (made.state, made.dry_run, made.agent) == (State.SUCCEEDED, True, caller.agent)
    assert kinds_of(made) == [Kind.DRY_RUN_BEGAN, Kind.DRY_RUN_ENDED]
    assert json.loads(sandbox.calls[0][1].arguments) == {"text": "hello", "times": 2}
    shown = see(operator, answer.url)
    assert "scripted" in shown
    assert SentForm(shown.partition("<main")[2]).values["t:/text"] == "hello"
    looked = Fact.objects.filter(kind=Kind.SNAPSHOT_READ, actor_id=operator.by.id, invocation_id=made.pk)
    assert looked.count() == 2  # at what was sent and at what came back; the second look at them is none
    see(operator, answer.url)
    assert looked.count() == 2


@pytest.mark.req("CARD-3")
def test_the_same_form_sent_twice_makes_one_call_and_changed_another(
    ready: None, operator: Person, caller: Caller
) -> None:
    sent = fill(operator, caller, **{"t:/text": "hello"})

    first, again = find_made(run(operator, sent)), find_made(run(operator, sent))
    other = find_made(run(operator, sent | {"t:/text": "good day"}))

    assert first == again != other
    assert list_last_tries(ECHO, by=operator.by) == [other, first]


@pytest.mark.req("CARD-3")
def test_arguments_that_the_schema_refuses_are_shown_at_their_fields_with_what_was_typed(
    ready: None, operator: Person, caller: Caller
) -> None:
    sent = fill(operator, caller, **{"t:/text": "far too long for this schema", "t:/times": "0"})

    answer = run(operator, sent)

    assert answer.status_code == 422
    page = answer.content.decode()
    form = SentForm(page.partition("<main")[2])
    assert form.values.items() >= {"t:/text": "far too long for this schema", "t:/times": "0"}.items()
    assert page.count('aria-invalid="true"') == 2
    assert "is longer than 20 characters" in page
    assert "is less than the minimum of 1" in page
    refused = Invocation.objects.get()
    assert (refused.state, refused.reason) == (State.DENIED, "SCHEMA.VALIDATION_FAILED")
    assert refused.wire_id in page
    linked = page.partition('<div class="banner"')[2].partition("</div>")[0]
    assert all(
        f'href="#{each}"' in linked for each in form.ids if f'id="{each}"' in page and each + "_error" in form.ids
    )


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"t:/text": ""}, "Fill this in."),
        ({"t:/text": "a", "t:/times": "two"}, "Write a number, such as 3 or 2.5."),
        ({"view": "json", "raw": "{"}, "The body is not JSON"),
        ({"view": "json", "raw": "[]"}, "The arguments are an object"),
        ({"t:/text": "a", "caller": "agt_0"}, "Select a valid choice."),
    ],
)
def test_what_cannot_be_read_makes_no_call(
    ready: None, operator: Person, caller: Caller, typed: dict[str, str], said: str
) -> None:
    answer = run(operator, fill(operator, caller) | typed)

    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not Invocation.objects.exists()


@pytest.mark.req("CARD-3")
def test_what_was_typed_is_carried_from_fields_to_json_and_back(ready: None, operator: Person, caller: Caller) -> None:
    sent = fill(operator, caller, **{"t:/text": "hello", "t:/times": "2"})

    as_json = SentForm(run(operator, sent | {"do": "view:json"}).content.decode().partition("<main")[2]).values
    as_fields = run(
        operator, as_json | {"raw": '{"text": 5, "lines": [{"sku": "A"}], "new": true}', "do": "view:fields"}
    )
    back = SentForm(as_fields.content.decode().partition("<main")[2]).values

    assert as_json["raw"].replace("\r\n", "") == '{  "text": "hello",  "times": 2}'
    assert back["j:"]  # it has a name that the schema does not know, so no field could hold it
    assert not Invocation.objects.exists()
    made = find_made(run(operator, as_json | {"raw": '{"text": "x", "lines": [{"sku": "A"}]}'}))
    assert (
        SentForm(see(operator, reverse("tool_tried", args=[ECHO, made.pk])).partition("<main")[2]).values[
            "t:/lines#0/sku"
        ]
        == "A"
    )


@pytest.mark.req("CARD-3")
def test_only_the_part_of_the_arguments_is_drawn_again_for_htmx(ready: None, operator: Person, caller: Caller) -> None:
    sent = fill(operator, caller, **{"t:/text": "hello"}) | {"do": "add:/lines"}

    part = (
        operator.client().post(url(), sent, headers={"HX-Request": "true", "HX-Target": "arguments"}).content.decode()
    )

    assert part.strip().startswith('<div id="arguments"')
    assert SentForm(part).values.items() >= {"t:/text": "hello", "n:/lines": "1", "t:/lines#0/sku": ""}.items()


@pytest.mark.req("CARD-3")
def test_a_call_that_takes_effect_is_confirmed_by_name_and_reason_on_the_server(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    operator: Person,
    caller: Caller,
) -> None:
    writer(enable)
    grant()
    sent = fill(operator, caller, tool=WRITE, mode="real", **{"t:/text": "hello"})

    asked = run(operator, sent, tool=WRITE)
    unsure = [
        run(operator, sent | {"confirmed": "sample.tools.other", "purpose": "to see"}, tool=WRITE),
        run(operator, sent | {"confirmed": WRITE, "purpose": " "}, tool=WRITE),
    ]

    assert asked.status_code == 200
    assert "This call takes effect" in asked.content.decode()
    assert SentForm(asked.content.decode().partition("<main")[2]).values["t:/text"] == "hello"
    assert [each.status_code for each in unsure] == [422, 422]
    assert not Invocation.objects.exists()
    made = find_made(run(operator, sent | {"confirmed": WRITE, "purpose": "to see"}, tool=WRITE))
    assert not made.dry_run


@pytest.mark.req("CARD-3", "TOOLS-18")
def test_a_held_try_is_not_decided_on_by_who_made_it(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    operator: Person,
    second_operator: Person,
    caller: Caller,
) -> None:
    writer(enable, data_classes=["payment"])
    grant()
    sent = fill(operator, caller, tool=WRITE, mode="real", confirmed=WRITE, purpose="to see", **{"t:/text": "hello"})
    answer = run(operator, sent, tool=WRITE)
    made = find_made(answer)
    consent = Consent.objects.get()

    assert made.state == State.HELD
    assert consent.purpose == "to see"
    assert "It waits for a person." in see(operator, answer.url)
    decided = [
        each.client().post(
            reverse("consent_decide", args=[consent.pk]),
            {"decision": "approve", "mode": "once", "reason": "I know it."},
        )
        for each in (operator, second_operator)
    ]
    assert [each.status_code < 400 for each in decided] == [False, True]


@pytest.mark.req("CARD-3")
def test_a_refusal_is_shown_with_its_problem_its_remedy_and_the_next_step(
    enable: Callable[..., Tool], bell: Bell, sandbox: ScriptedSandbox, operator: Person, caller: Caller
) -> None:
    enable()

    answer = run(operator, fill(operator, caller))

    made, shown = find_made(answer), see(operator, answer.url)
    assert (made.state, made.reason) == (State.DENIED, "AUTH.NO_GRANT")
    assert "AUTH.NO_GRANT" in shown
    assert "What helps:" in shown
    assert "Give this grant" in shown


@pytest.mark.req("CARD-3")
def test_a_tools_own_message_is_shown_to_whoever_tried(
    ready: None, operator: Person, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    sandbox.outcome = RunOutcome(RunStatus.RAISED, error_type="KeyError", error_message="no such key", report={})

    answer = run(operator, fill(operator, caller, **{"t:/text": "a"}))

    assert "TOOL.EXECUTION_FAILED" in see(operator, answer.url)


@pytest.mark.req("CARD-3", "TOOLS-27")
def test_what_is_personal_in_a_tools_own_message_is_masked(
    ready: None, operator: Person, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    said = "There is no account of ann.example@example.org here."
    sandbox.outcome = RunOutcome(RunStatus.DOMAIN_ERROR, error_code="OUT_OF_STOCK", error_message=said, report={})

    answer = run(operator, fill(operator, caller, **{"t:/text": "a"}))

    shown = see(operator, answer.url)
    assert "There is no account of" in shown
    assert "ann.example@" not in shown


@pytest.mark.req("CARD-3", "TOOLS-32")
def test_what_a_try_left_is_opened_by_its_person_and_they_are_on_record_for_it(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    operator: Person,
    second_operator: Person,
    caller: Caller,
) -> None:
    enable(input_schema=SCHEMA, side_effect="None", limits={"artifacts": 5})
    grant()
    left = LeftArtifact("report.csv", "text/csv", b"name,number\n")
    sandbox.outcome = RunOutcome(RunStatus.OK, value={}, artifacts=(left,))
    answer = run(operator, fill(operator, caller, mode="real", **{"t:/text": "a"}))
    made, artifact = find_made(answer), Artifact.objects.get()
    address = reverse("tool_tried_artifact", args=[ECHO, made.pk, artifact.pk])
    other = find_made(run(operator, fill(operator, caller, mode="real", **{"t:/text": "b"})))

    shown = see(operator, answer.url)
    opened = operator.client().get(address)

    assert address in shown
    assert "/api/v1/artifacts/" not in shown
    assert (opened.status_code, opened.content) == (200, left.content)
    read = Fact.objects.get(kind=Kind.ARTIFACT_READ)
    assert (read.actor_id, read.invocation_id) == (operator.by.id, made.pk)
    elsewhere = reverse("tool_tried_artifact", args=[ECHO, other.pk, artifact.pk])
    answers = second_operator.client().get(address), operator.client().get(elsewhere)
    assert [each.status_code for each in answers] == [404, 404]


@pytest.mark.req("TOOLS-22")
def test_nobody_else_sees_a_try_and_a_caller_cannot_make_one_that_looks_like_it(
    ready: None, operator: Person, second_operator: Person, stranger: Person, caller: Caller
) -> None:
    made = find_made(run(operator, fill(operator, caller, **{"t:/text": "hello"})))
    address = reverse("tool_tried", args=[ECHO, made.pk])

    assert [each.client().get(address).status_code for each in (second_operator, stranger)] == [404, 404]
    forged = caller.invoke(ECHO, {"text": "a"}, user_id=operator.by.id, request_id=f"{MARK}{uuid4().hex}")
    plain = caller.invoke(ECHO, {"text": "a"}, user_id=operator.by.id)
    assert (forged.status_code, plain.status_code) == (422, 200)
    assert list_last_tries(ECHO, by=operator.by) == [made]


@pytest.mark.req("CARD-3")
def test_a_person_tries_as_agents_that_they_may_act_through_and_no_other(
    ready: None, developer: Person, operator: Person, owner: Person, caller: Caller
) -> None:
    assert "There is no agent to try it as" in see(developer, url())
    sent = fill(developer, caller, **{"t:/text": "a"})
    refused = run(developer, sent)

    members.give_permission(user_id=developer.user.pk, permission="agents.connect", on=caller.agent, by=owner.by)
    made = find_made(run(developer, sent))
    disable_agent(agent_id=caller.agent.pk, reason="for a test", by=operator.by)

    assert refused.status_code == 422
    assert run(developer, sent | {"token": str(uuid4())}).status_code == 422
    assert list(Invocation.objects.all()) == [made]


@pytest.mark.req("CARD-3")
def test_a_version_that_no_call_gets_is_shown_and_not_run(
    ready: None, submit: Callable[..., ToolVersion], operator: Person, caller: Caller
) -> None:
    changed = SCHEMA | {"properties": SCHEMA["properties"] | {"tone": {"enum": ["low", "high"]}}}  # type: ignore[operator]
    submit(version="1.1.0", input_schema=changed)
    address = url() + "?version=1.1.0"

    shown = see(operator, address)
    sent = SentForm(shown.partition("<main")[2]).values | {
        "caller": caller.agent.wire_id,
        "mode": "dry",
        "t:/text": "a",
    }

    assert "is not approved, and is not run as a call" in shown
    assert "k:/tone" in sent
    assert run(operator, sent).status_code == 422
    assert not Invocation.objects.exists()
    assert operator.client().get(url() + "?version=9.9.9").status_code == 404


@pytest.mark.req("CARD-3", "TOOLS-22")
def test_a_try_is_opened_after_a_tool_of_somebody_else_was_updated_or_removed(
    enable: Callable[..., Tool],
    enable_by_review: Callable[..., Tool],
    bell: Bell,
    sandbox: ScriptedSandbox,
    operator: Person,
    stranger: Person,
    foreign_caller: Caller,
) -> None:
    enable(input_schema=SCHEMA)
    lifecycle.share_tool(name=ECHO, reason="for everybody", by=operator.by)
    installations.install_tool(name=ECHO, publisher="acme", reason="we need it", by=stranger.by)
    address = run(stranger, fill(stranger, foreign_caller, **{"t:/text": "hello"})).url

    enable_by_review(version="1.1.0", input_schema=SCHEMA)
    updated = see(stranger, address)
    installations.pause_installation(name=ECHO, reason="no more", by=stranger.by)
    installations.remove_installation(name=ECHO, reason="no more", by=stranger.by)

    assert "Calls get version 1.1.0 here." in updated
    for shown in (updated, see(stranger, address)):
        assert SentForm(shown.partition("<main")[2]).values["t:/text"] == "hello"


@pytest.mark.req("CARD-3", "TOOLS-22")
def test_what_was_tried_is_gone_with_the_person(ready: None, operator: Person, owner: Person, caller: Caller) -> None:
    made = find_made(run(operator, fill(operator, caller, **{"t:/text": "hello"})))

    forget(operator.by.id, by=owner.by)

    assert operator.client().get(reverse("tool_tried", args=[ECHO, made.pk])).status_code == 404
    assert list_last_tries(ECHO, by=operator.by) == []


@pytest.mark.req("CARD-3")
def test_the_ways_to_the_page_are_where_people_look(
    ready: None, submit: Callable[..., ToolVersion], operator: Person, auditor: Person
) -> None:
    version = submit(version="1.1.0", description="Another one.")

    assert url() in see(operator, reverse("tool", args=[ECHO]))
    assert reverse("trial_new", args=[version.pk]) in see(operator, reverse("review", args=[version.pk]))
    assert url() not in see(auditor, reverse("tool", args=[ECHO]))
    assert auditor.client().get(url()).status_code == 403
