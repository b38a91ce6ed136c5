"""Following runs: what do agents and people see of a run while it goes on, and what is left of it when a person is forgotten?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact, Snapshot
from invocations.agent_runs.event_stream import RunFollower, RunStreamCursor
from invocations.event_streams.stream import StreamCredentials
from kernel.problems import Malformed
from tests.conftest import make_caller
from tests.support.agent_runs import list_calls, propose, run_of, submit
from tests.support.calls import assert_problem
from tests.support.erasures import forget
from tests.support.model_calls import parse_events
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.agent_runs.models import AgentRun
    from tests.conftest import Caller, Person
    from tests.support.agent_runs import RunDriver
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-77ab"


@pytest.fixture(autouse=True)
def asked(grant: Callable[..., Any], bench: ProviderBench, driver: RunDriver) -> None:
    grant()
    bench.scripts = [propose("a"), text_answer(f"Done {CANARY}")]


def look(run: AgentRun, caller: Caller, last: str = "") -> tuple[RunFollower, list[tuple[str, Any]]]:
    follower = RunFollower(run.pk, StreamCredentials(caller.key, "127.0.0.1"), RunStreamCursor.read(last))
    return follower, parse_events(follower.look())


@pytest.mark.req("RUN-1")
def test_a_run_is_followed_event_by_event_to_its_answer(caller: Caller, driver: RunDriver) -> None:
    run = run_of(submit(caller))
    _, first = look(run, caller)
    driver.drive()
    follower, rest = look(run, caller)

    assert [kind for kind, _ in first] == ["model.asked"]
    assert [kind for kind, _ in rest] == [
        "model.asked",
        "model.answered",
        "tool.called",
        "tool.ended",
        "model.asked",
        "model.answered",
        "end",
    ]
    assert follower.is_over
    assert rest[1][1]["proposals"][0]["name"] == "sample.tools.echo"
    assert rest[3][1]["call"]["call_id"] == list_calls(run)[1].wire_id
    assert rest[-1][1]["data"]["answer"]["text"] == f"Done {CANARY}"


@pytest.mark.req("RUN-1")
def test_whoever_comes_back_with_the_last_id_gets_the_rest_and_nothing_twice(caller: Caller, driver: RunDriver) -> None:
    run = run_of(submit(caller))
    driver.drive()

    _, rest = look(run, caller, last="4")
    assert [kind for kind, _ in rest] == ["model.asked", "model.answered", "end"]
    assert caller.get(f"/runs/{run.wire_id}/events", **{"Last-Event-ID": "over"}).status_code == 204
    with pytest.raises(Malformed):
        RunStreamCursor.read("no-such-id")


@pytest.mark.req("TOOLS-21")
def test_another_agent_sees_nothing_of_a_run(caller: Caller, operator: Person, driver: RunDriver) -> None:
    run = run_of(submit(caller))
    other = make_caller(operator.by, name="other")

    assert_problem(other.get(f"/runs/{run.wire_id}"), 404, "RESOURCE.NOT_FOUND")
    _, told = look(run, other)
    assert [kind for kind, _ in told] == ["error"]
    assert_problem(other.delete(f"/runs/{run.wire_id}"), 404, "RESOURCE.NOT_FOUND")


@pytest.mark.req("RUN-1")
def test_the_page_of_a_run_leads_to_its_calls_and_they_lead_back(
    caller: Caller, operator: Person, driver: RunDriver
) -> None:
    run = run_of(submit(caller))
    driver.drive()
    client = operator.client()
    page = client.get(f"/runs/{run.wire_id}").content.decode()

    for call in list_calls(run):
        assert f'href="/invocations/{call.wire_id}"' in page
        assert f'href="/runs/{run.wire_id}"' in client.get(f"/invocations/{call.wire_id}").content.decode()
    assert CANARY not in page
    assert "call of an agent run" in client.get("/invocations").content.decode()
    assert run.wire_id in client.get("/runs?state=succeeded").content.decode()
    assert run.wire_id not in client.get("/runs?state=failed").content.decode()
    assert client.get("/runs?state=nothing").status_code == 422


@pytest.mark.req("LLM-12", "CARD-3")
def test_the_page_of_a_run_says_what_its_answer_rests_on_and_an_auditor_may_read_both(
    operator: Person, auditor: Person, caller: Caller, driver: RunDriver
) -> None:
    run = run_of(submit(caller))
    page = f"/runs/{run.wire_id}"
    assert "Reveal and record" not in auditor.client().get(page).content.decode()
    driver.drive()
    asked, tool, answered = list_calls(run)

    seen = operator.client().get(page).content.decode()
    assert f'href="/invocations/{answered.wire_id}"' in seen
    assert tool.output_digest in seen
    assert "Reveal and record" not in seen
    assert operator.client().post(f"{page}/values", {"reason": "A customer complained."}).status_code == 403

    assert auditor.client().post(f"{page}/values", {"reason": "short"}).status_code == 422
    before = Fact.objects.filter(kind="snapshot.read").count()
    shown = auditor.client().post(f"{page}/values", {"reason": "A customer complained."}).content.decode()
    assert f"Done {CANARY}" in shown
    assert "a+" in shown  # what the tool has answered
    assert Fact.objects.filter(kind="snapshot.read").count() == before + 2
    assert asked.wire_id in shown


@pytest.mark.req("RUN-1")
def test_an_operator_ends_a_run_and_others_may_not(
    operator: Person, auditor: Person, caller: Caller, driver: RunDriver
) -> None:
    run = run_of(submit(caller))
    driver.ask_models()
    page = f"/runs/{run.wire_id}"

    assert "End this run" not in auditor.client().get(page).content.decode()
    assert auditor.client().post(f"{page}/cancel").status_code == 403
    assert operator.client().post(f"{page}/cancel").status_code == 302
    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("cancelled", "cancelled")


@pytest.mark.req("SPEC-10")
def test_the_question_goes_with_the_person_it_was_asked_for(
    caller: Caller, operator: Person, driver: RunDriver
) -> None:
    run = run_of(submit(caller, user_id="ann"))
    driver.drive()
    forget("ann", by=operator.by)

    run.refresh_from_db()
    assert (run.request_id, run.user_fingerprint, run.question_fingerprint) == ("", "", "")
    assert not Snapshot.objects.filter(invocation_id__in=[run.pk, *(call.pk for call in list_calls(run))]).exists()
    assert caller.get(f"/runs/{run.wire_id}").json()["data"]["answer"] is None


@pytest.mark.req("SPEC-10")
def test_a_run_of_a_person_who_is_forgotten_is_ended_first(caller: Caller, operator: Person, driver: RunDriver) -> None:
    run = run_of(submit(caller, user_id="ann"))
    driver.ask_models()
    forget("ann", by=operator.by)

    run.refresh_from_db()
    assert run.state == "cancelled"
