"""MCP calls: do MCP clients list and call tools, on both revisions, under the controls of every other call?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp import MCPError
from opentelemetry.context import attach, detach
from opentelemetry.propagate import extract

from evidence.models import Fact, Snapshot
from evidence.services import open_values
from invocations.mcp import tool_list
from invocations.models import Invocation, Tally
from invocations.sandbox.base import RunOutcome, RunStatus
from registry.installations import services as installations
from tests.support.calls import PAIR, kinds_of
from tests.support.mcp_clients import BOTH, ENVELOPE, LEGACY, called, error_of, ring_in_threads, talk, web_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp import Client

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("each_mcp_way"),
    pytest.mark.parametrize("mode", BOTH),
]
ECHO, NAMED_ECHO = "sample.tools.echo", "sample_tools_echo"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@pytest.fixture
def url(bell: Bell, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    ring_in_threads(bell, monkeypatch)
    with web_server() as found:
        yield found


def names_of(client_lists: Any) -> list[str]:
    return [each.name for each in client_lists.tools]


@pytest.mark.req("TOOLS-12", "TOOLS-15")
def test_an_agent_is_shown_the_tools_it_has_a_grant_for_in_the_order_of_their_ids(
    mode: str, url: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable("write", side_effect="Write", idempotency="keyed", output_schema={"type": "object"})
    enable("echo", output_schema=TEXT)
    enable("raises")
    grant("sample.tools.write")
    grant("sample.tools.echo")

    found = talk(url, caller.key, lambda client: client.list_tools(), mode=mode)

    shown: list[Any] = list(found.tools)
    echo, write = shown
    assert (echo.name, write.name) == (NAMED_ECHO, "sample_tools_write")
    assert (echo.title, echo.description) == ("Echo", "The sample tool echo.")
    assert echo.input_schema["properties"] == {"text": {"type": "string", "maxLength": 200}}
    assert echo.output_schema == TEXT
    assert (echo.annotations.read_only_hint, write.annotations.read_only_hint) == (True, False)
    assert "tags" not in str(echo.model_dump(by_alias=True))


@pytest.mark.req("SVC-1")
def test_a_long_list_comes_in_pages_and_a_cursor_of_somebody_else_is_refused(
    mode: str,
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tool_list, "PAGE_SIZE", 2)
    for name in ("echo", "raises", "write", "fetches", "large"):
        enable(name)
    for name in ("echo", "write", "large"):  # what is granted is not what is installed: pages are filled up
        grant(f"sample.tools.{name}")

    async def pages(client: Client) -> list[list[str]]:
        found, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            found.append(names_of(page))
            if (cursor := page.next_cursor) is None:
                return found

    assert talk(url, caller.key, pages, mode=mode) == [[NAMED_ECHO, "sample_tools_large"], ["sample_tools_write"]]
    with pytest.raises(MCPError) as refused:
        talk(url, caller.key, lambda client: client.list_tools(cursor="inv_1"), mode=mode)
    assert refused.value.error.code == -32602


@pytest.mark.req("SVC-1", "TOOLS-13", "TOOLS-18")
def test_a_call_gives_structured_content_its_text_and_leaves_a_pair(
    mode: str,
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    sandbox: ScriptedSandbox,
) -> None:
    enable(output_schema=TEXT)
    grant()

    result = talk(url, caller.key, called(ECHO, {"text": "hello"}), mode=mode)

    assert not result.is_error
    assert result.structured_content == {"text": "scripted"}
    assert json.loads(result.content[0].text) == {"text": "scripted"}
    assert json.loads(sandbox.calls[0][1].arguments) == {"text": "hello"}
    made = Invocation.objects.get()
    assert result.meta["toolhub/call"]["call_id"] == made.wire_id
    assert result.meta["toolhub/evidence"]["sources"][0]["name"] == ECHO
    assert made.origin == "mcp"
    assert kinds_of(made) == PAIR


@pytest.mark.req("LLM-3")
def test_a_link_to_an_answer_that_proposed_nothing_of_the_kind_is_refused(
    mode: str,
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    sandbox: ScriptedSandbox,
) -> None:
    enable()
    grant()
    named = {"proposed_by": {"invocation": "inv_" + "0" * 26, "call_id": "call_1"}}

    result = talk(url, caller.key, called(ECHO, {}, meta={ENVELOPE: named}), mode=mode)

    assert result.is_error
    assert Invocation.objects.get().reason == "CALL.NOT_PROPOSED"
    assert sandbox.calls == []


@pytest.mark.req("SPEC-1", "SVC-1")
def test_the_envelope_of_a_call_comes_from_its_meta_and_from_what_the_client_says_of_itself(
    mode: str,
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    sandbox: ScriptedSandbox,
) -> None:
    enable()
    grant()
    said = {
        "request_id": "my-request-1",
        "locale": "de-DE",
        "currency": "EUR",
        "timezone": "Europe/Berlin",
        "session_id": "s-1",
        "user_id": "u-1",
    }

    result = talk(url, caller.key, called(ECHO, {}, meta={ENVELOPE: said}), mode=mode)
    talk(url, caller.key, called(ECHO, {}), mode=mode)

    first, second = (call.context for _, call in sandbox.calls)
    named, plain = Invocation.objects.order_by("id")
    assert (result.meta["toolhub/call"]["request_id"], named.request_id) == ("my-request-1", "my-request-1")
    assert bool(named.user_fingerprint) > bool(plain.user_fingerprint)
    assert (first["locale"], first["currency"], first["timezone"]) == ("de-DE", "EUR", "Europe/Berlin")
    assert (second["locale"], second["currency"]) == ("en-US", "USD")
    rows = [Snapshot.objects.get(invocation_id=each.pk, kind="input") for each in (named, plain)]
    sealed = [open_values(row)["envelope"] for row in rows]
    assert sealed[0]["client"] == {"app": "tests", "version": "7"}
    assert sealed[0]["session_id"] == "s-1"
    assert sealed[1]["actor"] == {"type": "agent", "id": caller.agent.wire_id}
    assert bool(sealed[1]["session_id"]) == (mode == LEGACY)


@pytest.mark.req("SPEC-1")
def test_an_envelope_that_is_none_is_the_clients_mistake(
    mode: str, url: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()
    wrong: list[Any] = [{"locale": "?"}, {"nothing": 1}, {"timezone": "Moon/Base"}, [], {"on_consent": "?"}]

    async def try_all(client: Client) -> list[tuple[int, bool]]:
        told = []
        for envelope in wrong:
            with pytest.raises(MCPError) as refused:
                await called(ECHO, {}, {ENVELOPE: envelope})(client)
            told.append((refused.value.error.code, ENVELOPE in refused.value.error.message))
        return told

    assert talk(url, caller.key, try_all, mode=mode) == [(-32602, True)] * len(wrong)
    assert not Invocation.objects.exists()


@pytest.mark.req("SVC-1")
def test_a_value_that_is_no_object_is_structured_where_the_revision_allows_it(
    mode: str,
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    sandbox: ScriptedSandbox,
) -> None:
    text = {"type": "string", "x-mcp-header": "Text"}
    enable(output_schema={"type": "array"}, input_schema={"type": "object", "properties": {"text": text}})
    grant()
    sandbox.outcome = RunOutcome(RunStatus.OK, value=["a", "b"], report={})

    async def both(client: Client) -> tuple[Any, Any]:
        return (await client.list_tools()).tools[0], await client.call_tool(ECHO, {"text": "x"})

    tool, result = talk(url, caller.key, both, mode=mode)

    assert json.loads(result.content[0].text) == ["a", "b"]
    assert (tool.output_schema, result.structured_content) == (
        (None, None) if mode == LEGACY else ({"type": "array"}, ["a", "b"])
    )
    assert tool.input_schema["properties"] == {"text": {"type": "string"}}


@pytest.mark.req("SVC-1", "TOOLS-20")
def test_the_same_key_is_the_same_call_and_another_wish_under_it_is_refused(
    mode: str,
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    sandbox: ScriptedSandbox,
) -> None:
    enable(idempotency="keyed")
    grant()
    meta: Any = {ENVELOPE: {"idempotency_key": "k1"}}

    async def three(client: Client) -> list[Any]:
        return [await client.call_tool(ECHO, {"text": text}, meta=meta) for text in ("a", "a", "b")]

    first, again, other = talk(url, caller.key, three, mode=mode)

    assert first.meta["toolhub/call"]["call_id"] == again.meta["toolhub/call"]["call_id"]
    assert len(sandbox.calls) == 1
    assert error_of(other)["reason"] == "IDEMPOTENCY.KEY_REUSED"


@pytest.mark.req("SVC-1", "TOOLS-18")
def test_what_is_refused_here_says_why_and_what_helps_and_leaves_a_pair(
    mode: str, url: str, caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    ungranted = talk(url, caller.key, called(ECHO, {}), mode=mode)
    grant()
    wrong = talk(url, caller.key, called(ECHO, {"text": 1}), mode=mode)
    installations.pause_installation(name=ECHO, reason="for a test", by=operator.by)
    paused = talk(url, caller.key, called(ECHO, {}), mode=mode)

    reasons = [error_of(each)["reason"] for each in (ungranted, wrong, paused)]
    assert reasons == ["AUTH.NO_GRANT", "SCHEMA.VALIDATION_FAILED", "TOOL.PAUSED"]
    assert all(error_of(each)["code"] and error_of(each)["remedy"] for each in (ungranted, wrong, paused))
    assert [kinds_of(each) for each in Invocation.objects.all()] == [PAIR] * 3


@pytest.mark.req("TOOLS-22")
def test_a_tool_of_another_tenant_is_as_unknown_as_none_at_all(
    mode: str, url: str, caller: Caller, foreign_caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()
    told = []

    for name in (ECHO, "there.is.none"):
        with pytest.raises(MCPError) as refused:
            talk(url, foreign_caller.key, called(name, {}), mode=mode)
        told.append((refused.value.error.code, refused.value.error.message))

    assert [(code, said.partition(". ")[0]) for code, said in told] == [
        (-32602, f"Unknown tool: {name}") for name in (ECHO, "there.is.none")
    ]
    assert all("list the tools again" in said for _, said in told)
    assert not Invocation.objects.exists()
    assert sum(Tally.objects.filter(agent=foreign_caller.agent.wire_id).values_list("count", flat=True)) == 2
    assert talk(url, foreign_caller.key, lambda client: client.list_tools(), mode=mode).tools == []


@pytest.mark.req("SPEC-3")
def test_the_trace_of_the_client_goes_on_in_the_call(
    mode: str, url: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()
    trace = "0af7651916cd43dd8448eb211c80319c"
    meta: Any = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}

    token = attach(extract(meta))  # the client's SDK says its own trace, where this process has tracing
    try:
        result = talk(url, caller.key, called(ECHO, {}, meta=meta), mode=mode)
    finally:
        detach(token)

    assert result.meta["toolhub/call"]["trace_id"] == trace
    assert set(Fact.objects.filter(tool=ECHO, kind__in=PAIR).values_list("trace_id", flat=True)) == {trace}
