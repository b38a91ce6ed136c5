"""One process on SQLite: does everything that a first visitor is promised really happen?"""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.e2e.conftest import OPEN_BEGINS, RUNNING, UNPAIRED, Embedded
from tests.e2e.console import Person
from tests.e2e.processes import ROOT, Process, python, until
from tests.e2e.wire import Agent, Answer, answers, in_background, request

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES: dict[str, list[dict[str, Any]]] = json.loads((ROOT / "tools" / "commerce" / "examples.json").read_text())
DRAFT = "commerce.checkout.create_draft_order"
READERS = [
    pytest.param(tool, example, id=f"{tool.rpartition('.')[2]}: {example['title']}")
    for tool, examples in EXAMPLES.items()
    for example in examples
    if tool != DRAFT
]
SLEEPS = "sample.tools.sleeps"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A hub from nothing, by the commands that `make run` gives."""
    hub = Embedded.at(tmp_path_factory.mktemp("fresh"))
    hub.manage("migrate", "--no-input", "-v", "0")
    hub.seed()
    with hub.served():
        yield hub
    assert hub.count(UNPAIRED) == 0


@pytest.fixture(scope="module")
def schemas(fresh: Embedded) -> dict[str, jsonschema.protocols.Validator]:
    """The output schemas, as agents read them."""
    tools = [fresh.agent.get(f"/tools/{tool}") for tool in EXAMPLES]
    return {
        tool.json()["data"]["id"]: jsonschema.Draft202012Validator(tool.json()["data"]["output_schema"])
        for tool in tools
    }


def test_it_says_that_it_serves_when_it_does(own_hub: Embedded) -> None:
    """Who sees the line pastes the next one."""
    process = Process(python("manage.py", "serve"), own_hub.env | {"PYTHONUNBUFFERED": "1"}, own_hub.data / "said.log")
    try:
        process.wait_for(lambda: "Serving on" in process.said(), "it says so")
        assert answers(f"{own_hub.url}/healthz")
    finally:
        process.stop()


def arguments_of(title: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in EXAMPLES[DRAFT] if each["title"] == title)
    return found


def envelope_of(example: dict[str, Any]) -> dict[str, Any]:
    return {name: example[name] for name in ("dry_run",) if name in example}


def check_example(agent: Agent, tool: str, example: dict[str, Any], schema: jsonschema.protocols.Validator) -> None:
    """The call answers what its example says, in a whole envelope, and leaves its pair."""
    answer = agent.invoke(tool, example["arguments"], **envelope_of(example))
    body = answer.json()
    assert set(body) >= {"ok", "data", "warnings", "error", "ttl_seconds", "evidence", "call"}, answer
    end = agent.check_pair(answer.call_id)
    if example["expect"] == "ok":
        assert answer.status == 200, answer
        assert body["ok"] is True
        assert body["error"] is None
        schema.validate(body["data"])
        assert body["evidence"]["snapshot_id"]
        assert body["evidence"]["sources"][0]["hash"].startswith("sha256:")
        assert len(body["evidence"]["sources"]) > 1, "the rules or data that the answer rests on are missing"
        assert end["outcome"] == "succeeded", end
    else:
        assert answer.status >= 400, answer
        assert body["ok"] is False
        assert body["data"] is None
        assert body["error"]["code"] == example["expect"], answer
        assert body["error"]["reason"] == f"DOMAIN.{example['expect']}", answer
        assert end["outcome"] == "failed", end


@pytest.mark.req("CARD-4", "CARD-5")
def test_the_printed_curl_line_works_when_pasted(fresh: Embedded) -> None:
    assert fresh.credentials is not None

    done = subprocess.run(["sh", "-c", fresh.credentials.curl], capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert body["ok"] is True, body
    fresh.agent.check_pair(body["call"]["call_id"])


@pytest.mark.req("SPEC-4", "SPEC-6", "SPEC-8", "TOOLS-18")
@pytest.mark.parametrize(("tool", "example"), READERS)
def test_a_commerce_tool_answers_its_example(
    fresh: Embedded, schemas: dict[str, jsonschema.protocols.Validator], tool: str, example: dict[str, Any]
) -> None:
    check_example(fresh.agent, tool, example, schemas[tool])


@pytest.mark.req("SPEC-2", "SPEC-8", "TOOLS-19", "TOOLS-18")
def test_a_draft_order_needs_a_consent_but_can_be_tried_without(
    fresh: Embedded, schemas: dict[str, jsonschema.protocols.Validator]
) -> None:
    agent, order = fresh.agent, arguments_of("keyboard and mouse to San Francisco")["arguments"]

    refused = agent.invoke(DRAFT, order)
    tried = agent.invoke(DRAFT, order, dry_run=True)

    assert (refused.status, refused.json()["error"]["code"]) == (403, "NEEDS_USER_CONFIRMATION"), refused
    assert refused.json()["call"]["refused_at"] == "consent"
    assert agent.check_pair(refused.call_id)["outcome"] == "denied"
    assert tried.status == 200, tried
    assert tried.json()["call"]["dry_run"] is True
    assert tried.json()["data"]["status"] == "validated"
    schemas[DRAFT].validate(tried.json()["data"])
    agent.check_pair(tried.call_id)


@pytest.mark.req("TOOLS-19", "SPEC-8", "SPEC-6", "CARD-3")
def test_after_a_consent_the_draft_order_answers_all_its_examples(
    fresh: Embedded, schemas: dict[str, jsonschema.protocols.Validator]
) -> None:
    assert fresh.credentials is not None
    agent = fresh.agent
    asked = agent.post("/consents", {"tool": DRAFT, "purpose": "Order what the customer chose."})
    assert asked.status == 201, asked

    with Person(fresh.url, "olivia", fresh.credentials.password("olivia")) as olivia:
        olivia.decide(f"/consents/{asked.json()['data']['id']}", mode="period", reason="The customer agreed.")

    for example in EXAMPLES[DRAFT]:
        check_example(agent, DRAFT, example, schemas[DRAFT])


@pytest.mark.req("TOOLS-18", "SVC-7", "TOOLS-23", "SVC-4")
@pytest.mark.parametrize(
    ("tool", "status", "reason", "outcome"),
    [
        ("raises", 502, "TOOL.EXECUTION_FAILED", "failed"),
        ("crashes", 502, "TOOL.EXECUTION_FAILED", "failed"),
        ("wrong_shape", 502, "SCHEMA.OUTPUT_INVALID", "failed"),
        ("short_sleep", 504, "SANDBOX.TIMEOUT", "timed_out"),
    ],
)
def test_a_tool_that_misbehaves_gets_its_problem_and_its_pair(
    hub: Embedded, tool: str, status: int, reason: str, outcome: str
) -> None:
    answer = hub.agent.invoke(f"sample.tools.{tool}", {"text": "a secret of the user"})

    assert (answer.status, answer.reason) == (status, reason), answer
    assert "a secret of the user" not in answer.body.decode()
    assert hub.agent.check_pair(answer.call_id)["outcome"] == outcome


@pytest.mark.req("TOOLS-15", "TOOLS-18", "TOOLS-24")
def test_bad_calls_are_refused_by_name_and_nothing_is_lost(hub: Embedded) -> None:
    agent, echo = hub.agent, "sample.tools.echo"
    calls = hub.count("SELECT count(*) FROM invocations_invocation")

    unknown = agent.invoke("sample.tools.nobody", {})
    foreign = Agent(hub.url, "thk_wrong_" + "x" * 40).invoke(echo, {})
    unshaped = agent.post(f"/tools/{echo}/invoke", {"arguments": {}})
    oversized = agent.invoke(echo, {"text": "x" * 3_000_000})
    wrong = agent.invoke(echo, {"text": 7})

    assert (unknown.status, unknown.json()["error"]["code"]) == (404, "NOT_FOUND"), unknown
    assert (foreign.status, foreign.json()["error"]["code"]) == (401, "UNAUTHORIZED"), foreign
    assert (unshaped.status, unshaped.reason) == (422, "SCHEMA.VALIDATION_FAILED"), unshaped
    assert oversized.status == 413, oversized
    assert (wrong.status, wrong.reason) == (422, "SCHEMA.VALIDATION_FAILED"), wrong
    assert agent.check_pair(wrong.call_id)["outcome"] == "denied"
    assert hub.count("SELECT count(*) FROM invocations_invocation") == calls + 1


@pytest.mark.req("CARD-5", "SVC-6", "TOOLS-18")
def test_ctrl_c_ends_everything_and_the_hub_starts_again(own_hub: Embedded) -> None:
    process = own_hub.start()
    waiting = in_background(lambda: own_hub.agent.invoke(SLEEPS, {"text": "caller who waits"}))
    call = own_hub.agent.begin(SLEEPS, {"text": "caller who left"})
    until(lambda: own_hub.count(RUNNING) == 2 and own_hub.boxes(), "both calls run")

    process.send(signal.SIGINT)

    assert process.ended(within_s=20) == 0, process.said()
    assert own_hub.boxes() == []
    assert "Traceback" not in process.said(), process.said()
    assert own_hub.count(OPEN_BEGINS) == 0
    waiting.thread.join()
    with own_hub.served():
        assert own_hub.agent.state(call) in ("cancelled", "outcome_unknown")
        own_hub.agent.check_pair(call)
        assert own_hub.agent.invoke("sample.tools.echo", {"text": "again"}).status == 200


@pytest.mark.req("TOOLS-14", "TOOLS-18", "CONN-4")
def test_who_still_waits_when_the_hub_is_stopped_is_told_so_and_each_call_has_its_end(own_hub: Embedded) -> None:
    own_hub.env["TOOLHUB_WORKER_CONCURRENCY"] = "1"  # the others wait in the queue
    process, agent = own_hub.start(), own_hub.agent
    rest = [in_background(lambda: agent.invoke("sample.tools.short_sleep", {"text": "x"})) for _ in range(12)]
    over_mcp = in_background(lambda: call_over_mcp(agent, SLEEPS))
    until(lambda: own_hub.count(OPEN_BEGINS) >= 10 and own_hub.count(RUNNING), "callers wait")

    process.send(signal.SIGINT)

    assert process.ended(within_s=30) == 0, process.said()
    assert "ERROR" not in process.said(), process.said()
    assert "Traceback" not in process.said(), process.said()
    answers = [each.answer() for each in rest]
    assert {each.status for each in answers} == {503}, [str(each) for each in answers]
    told = [each for each in answers if each.reason == "HUB.STOPPING"]
    assert told, [str(each) for each in answers]
    assert {each.headers["retry-after"] for each in told} == {"5"}
    assert {each.headers["content-type"] for each in told} == {"application/problem+json"}
    (data,) = [line for line in over_mcp.answer().body.decode().splitlines() if line.startswith("data: ")]
    assert json.loads(data.removeprefix("data: "))["error"]["data"]["reason"] == "HUB.STOPPING"
    with own_hub.served():
        until(lambda: own_hub.count(OPEN_BEGINS) == 0, "each call has its end")
    assert own_hub.count(UNPAIRED) == 0


def call_over_mcp(agent: Agent, tool: str) -> Answer:
    """As a client that holds no session."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {"text": "x"}}}
    kinds = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {agent.key}"}
    return request("POST", f"{agent.url}/mcp", message, kinds)


@pytest.mark.req("CARD-5", "SVC-6", "TOOLS-18")
def test_a_killed_hub_leaves_no_container_and_after_a_restart_no_open_begin(own_hub: Embedded) -> None:
    process = own_hub.start()
    call = own_hub.agent.begin(SLEEPS, {"text": "x"})
    until(lambda: own_hub.agent.state(call) == "running" and own_hub.boxes(), "the call runs")

    process.kill()

    until(lambda: not own_hub.boxes(), "the boxes end with their hub")
    assert own_hub.count(OPEN_BEGINS) == 1
    with own_hub.served():
        until(lambda: own_hub.agent.state(call) == "outcome_unknown", "the sweeper closes the call")
        end = own_hub.agent.check_pair(call)
        assert end["reason"] == "SANDBOX.WORKER_LOST"
        assert end["actor"]["kind"] == "system"
        assert own_hub.count(OPEN_BEGINS) == 0
