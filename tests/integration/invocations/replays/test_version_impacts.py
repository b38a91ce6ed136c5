"""Version impacts: does a reviewer see whom a version concerns, and which of their calls it would not take?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from evidence import services as evidence
from evidence.models import Fact
from evidence.problems import ValuesErased
from invocations.models import Invocation
from invocations.replays import version_impacts
from invocations.replays.version_impacts import load_version_impact, recall_version_impact
from tests.conftest import make_caller
from tests.support.calls import row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool, ToolVersion
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
SHORT = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 5}}, "additionalProperties": True}


@pytest.fixture
def called(
    enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox, caller: Caller
) -> list[Invocation]:
    """Two calls that fit, and one that is too long for the next version."""
    enable()
    grant()
    return [row_of(caller.invoke(ECHO, {"text": text})) for text in ("one", "ann.example@example.org", "two")]


@pytest.fixture
def breaking(called: list[Invocation], submit: Callable[..., ToolVersion]) -> ToolVersion:
    return submit(version="2.0.0", input_schema=SHORT)


@pytest.mark.req("TOOLS-7")
def test_it_says_who_calls_and_which_calls_would_be_refused(
    called: list[Invocation], breaking: ToolVersion, operator: Person, caller: Caller
) -> None:
    impact = load_version_impact(breaking, by=operator.by)

    assert [(agent.name, agent.calls) for agent in impact.agents] == [(caller.agent.name, 3)]
    assert (impact.calls, impact.examined, impact.refused, impact.not_kept) == (3, 3, 1, 0)
    (refused,) = impact.shown
    assert refused.call.pk == called[1].pk
    assert [each["pointer"] for each in refused.findings] == ["/text"]


@pytest.mark.req("TOOLS-7")
def test_the_page_shows_it_before_and_after_the_approval_and_no_value(
    called: list[Invocation], breaking: ToolVersion, operator: Person
) -> None:
    client, address = operator.client(), reverse("review", args=[breaking.pk])

    before = client.get(address).content.decode()
    seen = [change["id"] for change in breaking.changes]
    client.post(reverse("review_decide", args=[breaking.pk]), {"decision": "approve", "acknowledged": seen})
    after = client.get(address).content.decode()

    for page in (before, after):
        assert "1 of the newest 3 calls would be refused" in page
        assert reverse("invocation", args=[called[1].pk]) in page
        assert "ann.example" not in page
    assert "Enable for all" in after
    assert f'formaction="{reverse("version_stage", args=[breaking.pk])}"' in after
    assert not Fact.objects.filter(kind="snapshot.read").exists()


@pytest.mark.req("TOOLS-7")
@pytest.mark.parametrize("closed", ["additionalProperties", "unevaluatedProperties"])
def test_names_that_only_the_arguments_have_are_neither_shown_nor_kept(
    closed: str,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    caller: Caller,
    submit: Callable[..., ToolVersion],
    operator: Person,
) -> None:
    enable(input_schema={"type": "object", "additionalProperties": True})
    grant()
    caller.invoke(ECHO, {"Ann of the second floor": 1})
    version = submit(version="2.0.0", input_schema={"type": "object", "properties": {"text": {}}, closed: False})

    first = recall_version_impact(version, by=operator.by)
    kept = recall_version_impact(version, by=operator.by)
    page = operator.client().get(reverse("review", args=[version.pk])).content.decode()

    assert [each.refused for each in (first, kept)] == [1, 1]
    said = "Properties that the schema does not name are not allowed"
    for impact in (first, kept):
        assert impact.shown[0].findings == [{"pointer": "", "message": said}]
    assert said in page
    assert "second floor" not in page


def test_what_is_not_counted_whole_says_so(
    called: list[Invocation], breaking: ToolVersion, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_caller(operator.by, "other")
    Invocation.objects.filter(pk=called[0].pk).update(agent_id=other.agent.pk)
    monkeypatch.setattr(version_impacts, "MAX_AGENTS", 1)
    monkeypatch.setattr(version_impacts, "MAX_COUNTED", 3)

    impact = load_version_impact(breaking, by=operator.by)
    page = operator.client().get(reverse("review", args=[breaking.pk])).content.decode()

    assert (impact.agent_count, impact.more_agents) == (2, 1)
    assert "2 agents call it. Calls in the last seven days: at least 3" in page
    assert "1 more" in page
    assert "&amp;from=20" in page


def test_calls_of_another_tenant_do_not_count_and_values_that_are_gone_are_said(
    called: list[Invocation], breaking: ToolVersion, operator: Person, stranger: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(snapshot: object) -> None:
        raise ValuesErased()

    assert load_version_impact(breaking, by=stranger.by).calls == 0
    monkeypatch.setattr(evidence, "open_values", gone)

    impact = load_version_impact(breaking, by=operator.by)

    assert (impact.calls, impact.examined, impact.not_kept, impact.refused) == (3, 0, 3, 0)


def test_no_more_calls_are_opened_than_a_page_can_wait_for(
    called: list[Invocation], breaking: ToolVersion, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_impacts, "MAX_CALLS", 2)

    impact = load_version_impact(breaking, by=operator.by)

    assert (impact.calls, impact.examined, impact.refused) == (3, 2, 1)


@pytest.mark.req("TOOLS-7")
def test_calls_are_counted_once_while_a_version_stays_as_it_is(
    called: list[Invocation], breaking: ToolVersion, operator: Person, stranger: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = recall_version_impact(breaking, by=operator.by)

    def count(*_: object, **__: object) -> None:
        raise AssertionError("counted again")

    monkeypatch.setattr(version_impacts, "load_version_impact", count)

    again = recall_version_impact(breaking, by=operator.by)
    assert again == first
    assert [each.call.pk for each in again.shown] == [called[1].pk]
    with pytest.raises(AssertionError, match="counted again"):
        recall_version_impact(breaking, by=stranger.by)
    breaking.review_state = "approved"
    with pytest.raises(AssertionError, match="counted again"):
        recall_version_impact(breaking, by=operator.by)
