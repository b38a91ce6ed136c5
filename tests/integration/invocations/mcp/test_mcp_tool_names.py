"""MCP tool names: does an MCP client get names that its model's provider takes, and does it reach the tool by them as by the
tool's id?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp import MCPError

from evidence.models import Fact
from invocations.models import Invocation, Tally
from registry.installations import services as installations
from tests.support.calls import PAIR, kinds_of
from tests.support.mcp_clients import BOTH, ENVELOPE, called, ring_in_threads, talk, web_server
from tests.support.provider_names import check_taken_by_all, check_taken_with_the_name_of_a_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp import Client

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.parametrize("mode", BOTH)]
ECHO = "sample.tools.echo"
LONG = f"sample_group.{'p' * 50}.{'t' * 64}"
NAMES = {
    ECHO: "sample_tools_echo",
    # one text
    "sample.echo.x_y": "sample_echo_x_y",
    "sample.echo_x.y": "sample_echo_x_y_281b3a4d",
    "sample_echo.x.y": "sample_echo_x_y_f0f1c3a4",
    LONG: f"{'t' * 39}_27e7cb70",
}
# Among a hundred thousand ids two have the same eight digits.
SAME_DIGITS = [f"g{each}.tools.{'x' * 39}" for each in (100560, 130012)]
NO_NAMES = [
    "sample_tools_missing",
    "sample_tools_Echo",
    "sample_tools_ech\N{CYRILLIC SMALL LETTER O}",
    "sample-tools-echo",
    "sample_tools",
    "sample_echo_x_y_00000000",
    f"{'t' * 39}_00000000",
    "x_01234567",
    "(((((_01234567",
    "",
]


@pytest.fixture
def url(bell: Bell, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    ring_in_threads(bell, monkeypatch)
    with web_server() as found:
        yield found


async def listed(client: Client) -> dict[str, Any]:
    return {each.meta["toolhub/tool"]: each for each in (await client.list_tools()).tools if each.meta}


@pytest.mark.req("CONN-3")
def test_every_name_that_is_listed_is_taken_by_every_provider_and_told_beside_its_id(
    mode: str, url: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    for id in NAMES:
        enable("echo", id=id)
    enable("plans", display_name="Plans of a day")
    grant("*")

    tools = talk(url, caller.key, listed, mode=mode)

    assert {id: tool.name for id, tool in tools.items()} == NAMES | {"sample.tools.plans": "sample_tools_plans"}
    for tool in tools.values():
        check_taken_by_all(tool.name)
        check_taken_with_the_name_of_a_server(tool.name)
    assert tools["sample.tools.plans"].title == "Plans of a day"
    assert list(tools) == sorted(tools)


@pytest.mark.req("CONN-3")
@pytest.mark.parametrize("id", NAMES)
def test_a_tool_is_called_by_its_name_and_by_its_id_and_what_is_kept_has_the_id(
    id: str,
    mode: str,
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    sandbox: ScriptedSandbox,
) -> None:
    enable("echo", id=id)
    grant(id)

    async def by_both(client: Client) -> list[Any]:
        names = [(await listed(client))[id].name, id]
        meta: Any = {ENVELOPE: {"idempotency_key": "k1"}}
        once = [await client.call_tool(name, {"text": "a"}, meta=meta) for name in names]
        return once + [await client.call_tool(name, {"text": "b"}) for name in names]

    answers = talk(url, caller.key, by_both, mode=mode)

    assert [each.is_error for each in answers] == [False] * 4
    calls = [each.meta["toolhub/call"]["call_id"] for each in answers]
    assert calls[0] == calls[1]
    assert len(sandbox.calls) == 3
    assert {each.meta["toolhub/evidence"]["sources"][0]["name"] for each in answers} == {id}
    assert set(Fact.objects.filter(kind__in=PAIR).values_list("tool", flat=True)) == {id}
    assert [kinds_of(each) for each in Invocation.objects.all()] == [PAIR] * 3


@pytest.mark.req("CONN-3")
@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_name_and_no_id_is_unknown_in_the_words_of_the_caller(
    name: str, mode: str, url: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    for id in NAMES:
        enable("echo", id=id)
    grant("*")

    with pytest.raises(MCPError) as refused:
        talk(url, caller.key, called(name, {"text": "a"}), mode=mode)

    assert refused.value.error.code == -32602
    assert refused.value.error.message.startswith(f"Unknown tool: {name}. ")
    assert not Invocation.objects.exists()
    assert sum(Tally.objects.values_list("count", flat=True)) == 1


@pytest.mark.req("CONN-3", "TOOLS-22")
@pytest.mark.parametrize("id", [ECHO, LONG])
def test_a_name_of_another_tenants_tool_is_unknown(
    id: str,
    mode: str,
    url: str,
    foreign_caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
) -> None:
    enable("echo", id=id)
    grant("*")

    with pytest.raises(MCPError, match="Unknown tool"):
        talk(url, foreign_caller.key, called(NAMES[id], {}), mode=mode)


@pytest.mark.req("CONN-3")
def test_a_name_stays_when_other_tools_come_and_go(
    mode: str, url: str, caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    def names() -> dict[str, str]:
        return {id: tool.name for id, tool in talk(url, caller.key, listed, mode=mode).items()}

    grant("*")
    found = []
    for id in ("sample.echo_x.y", "sample_echo.x.y", "sample.echo.x_y"):
        enable("echo", id=id)
        found.append(names())
    installations.remove_installation(name="sample.echo_x.y", reason="for a test", by=operator.by)
    found.append(names())

    assert [len(each) for each in found] == [1, 2, 3, 2]
    assert all(NAMES[id] == name for each in found for id, name in each.items())


@pytest.mark.req("CONN-3")
def test_of_two_tools_with_the_same_digits_none_is_reached_by_name(
    mode: str, url: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    for id in (*SAME_DIGITS, ECHO):
        enable("echo", id=id)
    grant("*")

    tools = talk(url, caller.key, listed, mode=mode)
    with pytest.raises(MCPError, match="Unknown tool"):
        talk(url, caller.key, called("x" * 39 + "_9c4f7833", {}), mode=mode)
    by_id = talk(url, caller.key, called(SAME_DIGITS[0], {}), mode=mode)

    assert list(tools) == [ECHO]
    assert not by_id.is_error
    assert Invocation.objects.get().tool == SAME_DIGITS[0]
