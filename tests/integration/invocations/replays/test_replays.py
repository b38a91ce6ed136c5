"""Replays: can one call be run again, and is it said truly what came of that?"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact, Snapshot
from evidence.problems import RevealReasonTooShort
from evidence.services import open_free_text, open_values
from invocations.replays import rerun as replays_rerun
from invocations.replays import services, worker
from invocations.replays.models import Replay, Rerun
from invocations.run import execution
from tests.support.calls import row_of
from tests.support.replays import WHY, replay, replayed_tool
from tests.support.sandboxes import docker_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.models import Invocation
    from invocations.sandbox.base import Sandbox
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def docker() -> Iterator[Sandbox]:
    sandbox = docker_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def boxes(docker: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    for module in (execution, replays_rerun, worker):
        monkeypatch.setattr(module, "current_sandbox", lambda: docker)
    return docker


@pytest.fixture
def call(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, boxes: Sandbox
) -> Callable[..., Invocation]:
    """``call("draws", **manifest)``: a call of this function that has ended."""
    grant()

    def make(name: str, **changes: Any) -> Invocation:
        enable(**replayed_tool(name, **changes))
        found = row_of(caller.invoke(f"sample.tools.{name}", {"text": "x"}))
        assert found.state == "succeeded", found.reason
        return found

    return make


def values_of(row: Replay) -> dict[str, Any]:
    rerun = row.reruns.get()
    snapshot = Snapshot.objects.get(invocation_id=rerun.invocation_id, kind="replay", number=rerun.number)
    value: dict[str, Any] = open_values(snapshot)
    return value


@pytest.mark.req("TOOLS-28")
def test_a_call_with_the_same_clock_and_chance_gives_the_same(call: Callable[..., Invocation], auditor: Person) -> None:
    made = call("draws")

    row = replay(made, by=auditor.by)

    rerun = row.reruns.get()
    assert (row.state, row.verdict, rerun.verdict, rerun.runs, rerun.notes) == ("ended", "match", "match", 1, [])
    assert rerun.image == made.attempts.get().image
    assert values_of(row)["recorded"]["data"] == values_of(row)["replayed"]["data"]
    assert row.result["facts"] == "equal", row.result["findings"]


@pytest.mark.req("TOOLS-28")
def test_what_differs_is_named_by_its_place_unless_the_manifest_does_not_promise_it(
    call: Callable[..., Invocation], auditor: Person, enable: Callable[..., Tool]
) -> None:
    made = call("stamps")
    plain = replay(made, by=auditor.by)
    ignored = call("stamps", version="1.1.0", determinism={"ignore": ["/id", "/at"]})

    assert (plain.verdict, plain.reruns.get().runs) == ("differs", 3)
    assert {each["pointer"] for each in values_of(plain)["differences"]} == {"/data/at", "/data/id"}
    again = datetime.fromisoformat(values_of(plain)["replayed"]["data"]["at"])
    assert made.started_at is not None
    assert timedelta(0) < again - made.started_at < timedelta(seconds=1)
    row = replay(ignored, by=auditor.by)
    assert (row.verdict, row.reruns.get().notes) == ("match", ["ignored"])


@pytest.mark.req("TOOLS-28")
def test_a_tool_that_does_not_agree_with_itself_is_told_from_one_that_has_changed(
    call: Callable[..., Invocation], auditor: Person
) -> None:
    assert replay(call("counts"), by=auditor.by).verdict == "not_deterministic"
    promised = replay(call("counts", version="1.1.0", determinism={"output": "none"}), by=auditor.by)
    assert (promised.verdict, promised.reruns.get().notes) == ("match", ["not_compared"])


@pytest.mark.req("TOOLS-28", "SPEC-7")
def test_a_replay_is_a_fact_of_its_own_and_holds_no_values(call: Callable[..., Invocation], auditor: Person) -> None:
    made = call("stamps")
    row = replay(made, by=auditor.by)

    facts = Fact.objects.filter(invocation_id=made.pk, kind__in=["replay.began", "invocation.rerun", "replay.ended"])
    leaves = [json.loads(bytes(fact.leaf)) for fact in facts.order_by("id")]
    assert [leaf["kind"] for leaf in leaves] == ["replay.began", "invocation.rerun", "replay.ended"]
    assert open_free_text(facts.order_by("id")[0]) == {"reason": WHY}
    assert leaves[1]["data"]["verdict"] == "differs"
    said = values_of(row)["replayed"]["data"]
    assert not any(said["id"] in json.dumps(leaf) or said["at"] in json.dumps(leaf) for leaf in leaves)
    assert (
        leaves[1]["data"]["values"]["commit"] == Snapshot.objects.get(invocation_id=made.pk, kind="replay").commitment
    )


@pytest.mark.req("TOOLS-28")
def test_the_same_call_may_be_replayed_again_and_again(call: Callable[..., Invocation], auditor: Person) -> None:
    made = call("draws")

    rows = [replay(made, by=auditor.by) for _ in range(2)]

    assert [row.reruns.get().number for row in rows] == [1, 2]
    assert {row.verdict for row in rows} == {"match"}


@pytest.mark.req("TOOLS-28")
def test_another_version_can_take_the_place_of_the_recorded_one(
    call: Callable[..., Invocation], submit: Callable[..., Any], enable: Callable[..., Tool], auditor: Person
) -> None:
    made = call("draws")
    enable(
        **replayed_tool("draws", version="2.0.0") | {"implementation": {"module": "sample.replayed", "entry": "stamps"}}
    )

    row = replay(made, by=auditor.by, version="2.0.0")

    rerun = row.reruns.get()
    assert (row.verdict, rerun.version, rerun.notes) == ("differs", "2.0.0", ["other_version"])
    assert "/data/draw" in {each["pointer"] for each in values_of(row)["differences"]}


@pytest.mark.req("TOOLS-28")
def test_a_replay_needs_a_reason(call: Callable[..., Invocation], auditor: Person) -> None:
    made = call("draws")

    with pytest.raises(RevealReasonTooShort):
        services.replay_call(invocation_id=made.pk, reason="because", by=auditor.by)
    assert not Replay.objects.exists()
    assert not Rerun.objects.exists()
