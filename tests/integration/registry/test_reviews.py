"""Reviews: does a review take the right people, and has each who approves seen every risky change?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from access import services as access
from registry.models import Decision, Review, ToolVersion, VersionState
from registry.problems import NotAcknowledged, OwnSubmission, WrongBump
from registry.versions import services
from tests.conftest import make_caller
from tests.support.manifests import manifest
from unitools.changes import find_acknowledgement_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Person

CLOSED = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
TOKEN = [{"name": "API_TOKEN", "description": "What the service asks for."}]
WIDER = CLOSED | {"properties": {"text": {"type": "string"}, "loud": {"type": "boolean"}}}


@pytest.fixture
def risky(enable: Callable[..., Tool], submit: Callable[..., ToolVersion]) -> ToolVersion:
    """A version that now writes, needs a consent and a secret, and is described anew."""
    enable("write")
    return submit("write", version="2.0.0", side_effect="Write", secrets=TOKEN, description="It writes now.")


def to_be_seen(version: ToolVersion) -> list[str]:
    return [change["id"] for change in version.changes if find_acknowledgement_reason(change)]


def decide(version: ToolVersion, person: Person, *seen: str, decision: Decision = Decision.APPROVE) -> Review:
    return services.review_version(version_id=version.pk, decision=decision, note="no", acknowledged=seen, by=person.by)


@pytest.mark.req("TOOLS-7")
def test_each_risky_change_is_confirmed_by_whoever_approves(risky: ToolVersion, operator: Person) -> None:
    assert len(to_be_seen(risky)) > 1

    for seen in ([], to_be_seen(risky)[1:], ["something else"]):
        with pytest.raises(NotAcknowledged) as caught:
            decide(risky, operator, *seen)
        assert {each["id"] for each in caught.value.details["missing"]} == set(to_be_seen(risky)) - set(seen)
    review = decide(risky, operator, *to_be_seen(risky), "something else")

    assert review.acknowledged == sorted(to_be_seen(risky))
    assert ToolVersion.objects.get(pk=risky.pk).review_state == VersionState.APPROVED


def test_a_refusal_needs_no_confirmation(risky: ToolVersion, operator: Person) -> None:
    decide(risky, operator, decision=Decision.REFUSE)

    assert ToolVersion.objects.get(pk=risky.pk).review_state == VersionState.REFUSED


def test_both_reviewers_of_high_risk_confirm_for_themselves(
    enable: Callable[..., Tool], submit: Callable[..., ToolVersion], operator: Person, second_operator: Person
) -> None:
    enable()
    version = submit(version="2.0.0", safety_class="High", secrets=TOKEN)
    decide(version, operator, *to_be_seen(version))

    with pytest.raises(NotAcknowledged):
        decide(version, second_operator)
    decide(version, second_operator, *to_be_seen(version))

    assert ToolVersion.objects.get(pk=version.pk).review_state == VersionState.APPROVED


def test_nobody_reviews_what_an_agent_of_their_own_submitted(operator: Person, second_operator: Person) -> None:
    robot = make_caller(operator.by, "robot")
    version = services.submit_version(document=manifest(), by=robot.by)

    with pytest.raises(OwnSubmission, match="agent"):
        decide(version, operator)
    decide(version, second_operator)

    assert ToolVersion.objects.get().review_state == VersionState.APPROVED


def test_holding_a_key_of_the_agent_is_enough_to_be_barred(operator: Person, second_operator: Person) -> None:
    robot = make_caller(operator.by, "robot")
    access.create_key(agent=robot.agent, by=second_operator.by)
    version = services.submit_version(document=manifest(), by=robot.by)

    with pytest.raises(OwnSubmission):
        decide(version, second_operator)


def test_two_versions_that_were_submitted_side_by_side_do_not_pass_each_other(
    enable: Callable[..., Tool], submit: Callable[..., ToolVersion], operator: Person
) -> None:
    enable(input_schema=CLOSED)
    wider = submit(version="1.1.0", input_schema=WIDER)
    patch = submit(version="1.1.1", input_schema=CLOSED, description="The sample tool echo, corrected.")
    decide(wider, operator, *to_be_seen(wider))

    with pytest.raises(WrongBump) as caught:
        decide(patch, operator, *to_be_seen(patch))

    assert caught.value.details["base"] == "1.1.0"
    assert ToolVersion.objects.get(pk=patch.pk).review_state == VersionState.SUBMITTED


# The page.


def test_the_page_asks_for_each_risky_change_and_keeps_what_was_ticked(risky: ToolVersion, operator: Person) -> None:
    client = operator.client()
    page = client.get(reverse("review", args=[risky.pk])).content.decode()
    assert page.count('name="acknowledged"') == len(to_be_seen(risky))
    assert page.count("checked") == 0

    address = reverse("review_decide", args=[risky.pk])
    refused = client.post(address, {"decision": "approve", "note": "fine", "acknowledged": to_be_seen(risky)[:1]})

    again = refused.content.decode()
    assert (refused.status_code, again.count(" checked")) == (422, 1)
    assert "Confirm each risky change" in again
    assert not Review.objects.filter(version=risky).exists()
    done = client.post(address, {"decision": "approve", "note": "fine", "acknowledged": to_be_seen(risky)})
    assert done.status_code == 302
    assert Review.objects.get(version=risky).acknowledged == sorted(to_be_seen(risky))


@pytest.mark.req("TOOLS-17")
def test_the_page_says_how_apart_calls_are_kept_and_asks_when_that_becomes_less(
    enable: Callable[..., Tool], submit: Callable[..., ToolVersion], operator: Person
) -> None:
    enable("write", isolation="single", isolate_by="agent")
    version = submit("write", version="1.1.0", isolation="fresh")

    page = operator.client().get(f"/reviews/{version.wire_id}").content.decode()

    assert "at least <code>fresh</code>" in page
    assert "Calls may share more with each other: fresh instead of single." in page
    assert len(to_be_seen(version)) == 2


def test_the_page_says_why_a_person_may_not_decide(operator: Person, second_operator: Person) -> None:
    robot = make_caller(operator.by, "robot")
    version = services.submit_version(document=manifest(), by=robot.by)

    page = operator.client().get(reverse("review", args=[version.pk])).content.decode()

    assert "An agent that you made" in page
    assert 'value="approve"' not in page
    assert 'value="approve"' in second_operator.client().get(reverse("review", args=[version.pk])).content.decode()


def test_the_page_says_when_the_number_has_become_wrong(
    enable: Callable[..., Tool], submit: Callable[..., ToolVersion], operator: Person
) -> None:
    enable(input_schema=CLOSED)
    wider = submit(version="1.1.0", input_schema=WIDER)
    patch = submit(version="1.1.1", input_schema=CLOSED)
    decide(wider, operator, *to_be_seen(wider))

    page = operator.client().get(reverse("review", args=[patch.pk])).content.decode()

    assert "It cannot be approved with this version number." in page
    assert "1.1.0" in page


def test_a_wrong_number_is_a_finding_on_the_page_of_submissions(enable: Callable[..., Tool], developer: Person) -> None:
    enable(input_schema=CLOSED)
    typed = json.dumps(manifest(version="1.0.1", input_schema=WIDER))
    answer = developer.client().post(reverse("tool_submit"), {"text": typed})

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "/input_schema/properties/loud" in page
    assert "MINOR" in page


@pytest.mark.req("TOOLS-7")
def test_what_breaks_callers_or_adds_words_for_models_is_confirmed_too(
    enable: Callable[..., Tool], submit: Callable[..., ToolVersion], operator: Person
) -> None:
    enable(input_schema=CLOSED)
    shorter = CLOSED | {
        "properties": {"text": {"type": "string", "maxLength": 5, "description": "Always say it twice."}}
    }
    version = submit(version="2.0.0", input_schema=shorter)

    page = operator.client().get(reverse("review", args=[version.pk])).content.decode()

    kinds = {change["kind"] for change in version.changes if change["id"] in to_be_seen(version)}
    assert kinds == {"input.length_changed", "input.description_changed"}
    assert page.count('name="acknowledged"') == 2
    assert "can break callers" in page
    assert "models read it" in page
    with pytest.raises(NotAcknowledged):
        decide(version, operator)
