"""Proposal doors: does a link hold by whichever doors the answer and the call came, and are its calls found by it?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from django.urls import reverse

from evidence.models import Fact
from evidence.search.indexer import index_tenant
from invocations.models import Invocation
from tests.integration.invocations.model_calls.test_proposal_links import invoke, leaf_of, proposals
from tests.support.calls import PAIR, kinds_of, row_of
from tests.support.dispatches import ECHO, MANGLED
from tests.support.evidence_logs import seal_everything, signing_with
from tests.support.mcp_clients import BOTH, ENVELOPE, called, error_of, ring_in_threads, talk, web_server
from tests.support.model_calls import MODEL, ask, parse_events, say
from tests.support.served_formats import CHAT, build_contents, build_function, parse_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)
ASKED = [{"role": "user", "content": "Which?"}]


@pytest.fixture
def proposing(model: Tool, bench: ProviderBench, ready_for_models: ScriptedSandbox) -> ScriptedSandbox:
    """The model proposes one call of the echo tool, each time that it is asked."""
    bench.scripts = [proposals(("call_1", ECHO, {"text": "hello"}))] * 10
    return ready_for_models


def read_chat(answer: Any, stream: bool) -> tuple[str, str]:
    if stream:
        deltas = [each["choices"][0]["delta"] for each in parse_chunks(answer.content.decode())[:-1]]
        [call] = [call for each in deltas for call in each.get("tool_calls", [])]
    else:
        [call] = answer.json()["choices"][0]["message"]["tool_calls"]
    return call["id"], call["function"]["arguments"]


def read_responses(answer: Any, stream: bool) -> tuple[str, str]:
    if stream:
        output = dict(parse_events(answer.content.decode()))["response.completed"]["response"]["output"]
    else:
        output = answer.json()["output"]
    [call] = [each for each in output if each["type"] == "function_call"]
    return call["call_id"], call["arguments"]


def read_messages(answer: Any, stream: bool) -> tuple[str, str]:
    if not stream:
        [call] = [each for each in answer.json()["content"] if each["type"] == "tool_use"]
        return call["id"], json.dumps(call["input"])
    events = parse_events(answer.content.decode())
    [id] = [
        each["content_block"]["id"]
        for name, each in events
        if name == "content_block_start" and each["content_block"]["type"] == "tool_use"
    ]
    deltas = [each["delta"] for name, each in events if name == "content_block_delta"]
    return id, "".join(each["partial_json"] for each in deltas if each["type"] == "input_json_delta")


def read_contents(answer: Any, stream: bool) -> tuple[str, str]:
    pieces = parse_chunks(answer.content.decode()) if stream else [answer.json()]
    parts = [part for each in pieces for part in each["candidates"][0]["content"]["parts"]]
    [call] = [each["functionCall"] for each in parts if "functionCall" in each]
    return call["id"], json.dumps(call["args"])


TOOL = {"name": MANGLED, "input_schema": {"type": "object"}}
DOORS: dict[str, tuple[dict[str, Any], Callable[[Any, bool], tuple[str, str]]]] = {
    CHAT: ({"messages": ASKED, "tools": [build_function(MANGLED)]}, read_chat),
    "/v1/responses": ({"input": ASKED, "tools": [{"type": "function", "name": MANGLED}]}, read_responses),
    "/v1/messages": ({"messages": ASKED, "max_tokens": 50, "tools": [TOOL]}, read_messages),
    f"/v1/models/{MODEL}:": (build_contents(tools=[{"functionDeclarations": [{"name": MANGLED}]}]), read_contents),
}


@pytest.mark.req("LLM-3")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("door", DOORS)
def test_an_answer_in_a_format_of_others_is_linked_to_by_what_it_says(
    door: str, stream: bool, caller: Caller, proposing: ScriptedSandbox
) -> None:
    body, read = DOORS[door]
    if door.endswith(":"):
        answer = caller.ask(door + ("streamGenerateContent?alt=sse" if stream else "generateContent"), body)
    else:
        answer = caller.ask(door, {"model": MODEL, "stream": stream, **body})
    assert answer.status_code == 200, answer.content
    asked = Invocation.objects.get()

    call_id, arguments = read(answer, stream)
    made = invoke(caller, answer.headers["X-Hub-Call"], call_id, arguments=json.loads(arguments))
    changed = invoke(caller, answer.headers["X-Hub-Call"], call_id, arguments={"text": "hello!"})

    assert made.status_code == 200, made.content
    named, proposed = leaf_of(row_of(made), ".began")["proposed_by"], leaf_of(asked, ".ended")["model"]["proposed"]
    assert named == {"invocation": asked.wire_id, "model": MODEL, "proposal": proposed[0]}
    assert (changed.status_code, changed.json()["error"]["reason"]) == (422, "CALL.NOT_PROPOSED")


@pytest.fixture
def url(bell: Bell, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    ring_in_threads(bell, monkeypatch)
    with web_server() as found:
        yield found


@pytest.mark.req("LLM-3", "SVC-1")
@pytest.mark.parametrize("mode", BOTH)
def test_a_call_over_mcp_names_the_answer_that_proposed_it(
    mode: str, caller: Caller, proposing: ScriptedSandbox, url: str
) -> None:
    asked = row_of(ask(caller, say("Which?")))
    meta = {ENVELOPE: {"proposed_by": {"invocation": asked.wire_id, "call_id": "call_1"}}}

    made = talk(url, caller.key, called(ECHO, {"text": "hello"}, meta=meta), mode=mode)
    changed = talk(url, caller.key, called(ECHO, {"text": "hello!"}, meta=meta), mode=mode)

    assert not made.is_error, made
    call, refused = Invocation.objects.filter(tool=ECHO).order_by("id")
    assert (call.proposed_by_id, call.origin, refused.proposed_by_id) == (asked.pk, "mcp", None)
    named, proposed = leaf_of(call, ".began")["proposed_by"], leaf_of(asked, ".ended")["model"]["proposed"]
    assert named == {"invocation": asked.wire_id, "model": MODEL, "proposal": proposed[0]}
    assert error_of(changed)["reason"] == "CALL.NOT_PROPOSED"
    assert (kinds_of(call), kinds_of(refused)) == (PAIR, PAIR)


@pytest.mark.req("CARD-6", "LLM-3")
@pytest.mark.parametrize("indexed", [True, False])
def test_the_facts_of_a_proposed_call_are_found_by_the_answer_and_by_the_model(
    indexed: bool, caller: Caller, tenant: Tenant, operator: Person, auditor: Person, proposing: ScriptedSandbox
) -> None:
    asked, other = row_of(ask(caller, say("Which?"))), row_of(ask(caller, say("Which?")))
    linked, plain = row_of(invoke(caller, asked)), row_of(invoke(caller, asked, None))
    if indexed:
        with signing_with():
            seal_everything()
        index_tenant(tenant.pk)

    def find(query: str) -> list[tuple[Any, str]]:
        answer = caller.get(f"/evidence/facts?{urlencode({'q': query})}")
        assert answer.status_code == 200, answer.content
        ids = {each["id"] for each in answer.json()["data"]["facts"]}
        rows = Fact.objects.exclude(invocation_id=None).order_by("id")
        return [(row.invocation_id, str(row.kind)) for row in rows if row.wire_id in ids]

    of_linked = [(linked.pk, kind) for kind in PAIR]
    for query in (asked.wire_id, MODEL, MODEL.upper(), "model.script.*", "model.*", "*"):
        assert find(f"proposed_by:{query}") == of_linked, query
    assert find(f"proposed_by:{other.wire_id}") == find("proposed_by:model.script") == []
    assert find(f"tool:{ECHO} -proposed_by:*") == [(plain.pk, kind) for kind in PAIR]
    for wrong in ("anybody", "cns_01m8e3rd5nex58zk9vhryk1v2v"):
        assert caller.get(f"/evidence/facts?{urlencode({'q': f'proposed_by:{wrong}'})}").status_code == 422


@pytest.mark.req("CARD-6")
def test_the_page_of_an_answer_leads_to_the_facts_of_its_calls_for_those_who_may_read_them(
    caller: Caller, operator: Person, auditor: Person, proposing: ScriptedSandbox
) -> None:
    asked = row_of(ask(caller, say("Which?")))
    linked = row_of(invoke(caller, asked))
    link = f'href="{reverse("facts")}?q=proposed_by:{asked.wire_id}"'

    page, calls = (
        auditor.client().get(reverse("invocation", args=[each.pk])).content.decode() for each in (asked, linked)
    )

    assert (page.count(link), calls.count(link)) == (1, 0)
    assert linked.wire_id in auditor.client().get(f"{reverse('facts')}?q=proposed_by:{asked.wire_id}").content.decode()
