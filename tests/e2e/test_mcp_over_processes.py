"""MCP over processes: does a real MCP client list and call tools of a real hub, in both shapes, also when each request meets
another web process?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scripts.provision.processes import free_port
from tests.e2e.processes import Process, python
from tests.e2e.production import Production, production_at
from tests.e2e.wire import answers
from tests.support.mcp_clients import BOTH, TASKS, Wire, called, error_of, talk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp import Client

    from tests.e2e.conftest import Embedded

QUOTE, ECHO = "commerce.pricing.get_realtime_quote", "sample.tools.echo"
NAMED_QUOTE = "commerce_pricing_get_realtime_quote"
WANTED: dict[str, Any] = {"sku": "HEADPHONES-ANC", "quantity": 2, "currency": "EUR"}


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Production]:
    with production_at(tmp_path_factory.mktemp("mcp")) as hub:
        yield hub


@pytest.fixture
def second_web(production: Production) -> Iterator[str]:
    """Another web process of the same hub."""
    port = free_port()
    env = production.env | {"TOOLHUB_BIND": f"127.0.0.1:{port}"}
    process = Process(python("manage.py", "serve"), env, production.folder / "second.log")
    try:
        process.wait_for(lambda: answers(f"http://127.0.0.1:{port}/readyz"), "the second web process is ready")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.stop()


async def list_and_call(client: Client) -> tuple[list[str], Any, Any]:
    tools = [each.name for each in (await client.list_tools()).tools]
    return tools, await client.call_tool(NAMED_QUOTE, WANTED), await client.call_tool(QUOTE, {"sku": 1})


def check(told: tuple[list[str], Any, Any]) -> str:
    tools, quoted, refused = told
    assert NAMED_QUOTE in tools
    assert tools == sorted(tools)
    assert not quoted.is_error, quoted
    assert quoted.structured_content["quantity"] == 2
    assert error_of(refused)["reason"] == "SCHEMA.VALIDATION_FAILED"
    return str(quoted.meta["toolhub/call"]["call_id"])


@pytest.mark.req("SVC-1")
@pytest.mark.parametrize("mode", BOTH)
def test_a_client_of_the_sdk_lists_and_calls_in_the_embedded_default(mode: str, hub: Embedded) -> None:
    call_id = check(talk(hub.url, hub.agent.key, list_and_call, mode=mode))

    assert hub.agent.check_pair(call_id)["outcome"] == "succeeded"


@pytest.mark.req("SVC-1", "CARD-5")
@pytest.mark.parametrize("mode", BOTH)
def test_the_same_in_the_production_shape(mode: str, production: Production) -> None:
    production.use_worker()

    call_id = check(talk(production.url, production.agent.key, list_and_call, mode=mode))

    assert production.agent.check_pair(call_id)["outcome"] == "succeeded"


@pytest.mark.req("SVC-1")
def test_a_session_and_a_task_are_known_to_every_web_process(production: Production, second_web: str) -> None:
    production.use_worker()
    first = Wire(production.url, production.agent.key, modern=False)
    first.initialize()
    second = Wire(second_web, production.agent.key, modern=False, session=first.session)

    task = first.call(ECHO, {"text": "x"}, task={}).result["task"]["taskId"]

    assert second.ask("tasks/result", {"taskId": task}).result["structuredContent"]["text"] == "x"
    knowing = Wire(second_web, production.agent.key, capabilities={"extensions": {TASKS: {}}})
    assert knowing.ask("tasks/get", {"taskId": task}).result["status"] == "completed"
    assert not talk(second_web, production.agent.key, called(QUOTE, WANTED)).is_error
