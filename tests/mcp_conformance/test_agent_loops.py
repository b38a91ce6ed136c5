"""Agent loops: does an agent of a framework get through with the hub's tools, when its model's provider refuses names and schemas
as the real ones do?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.provision import peers
from tests.mcp_conformance.arrange import LISTED, NAMED
from tests.mcp_conformance.stand_in import StandIn, standing_in
from tests.mcp_conformance.test_clients import CLIENTS, MODERN, origins, printed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mcp_conformance.conftest import Served


@pytest.mark.req("CONN-3")
@pytest.mark.parametrize(
    ("environment", "program", "prefixed"),
    [
        (MODERN, "loop_with_openai_agents", "mcp_toolhub__"),
        ("pydantic-ai", "loop_with_pydantic_ai", "toolhub_"),
        ("langchain", "loop_with_langchain", "toolhub_"),
    ],
    ids=["openai-agents", "pydantic-ai", "LangChain"],
)
def test_an_agent_of_a_framework_lists_chooses_and_calls(
    environment: str, program: str, prefixed: str, served: Served, tmp_path: Path
) -> None:
    """With the names of the hub, and with those that the framework makes of them."""
    before = origins(served)
    greeter = f"{NAMED}greet", {"name": "you"}
    with standing_in(StandIn(*greeter)) as plain, standing_in(StandIn(*greeter)) as other:
        words = [str(peers.ensure_python(environment)), str(CLIENTS / f"{program}.py"), served.url, served.key]
        said = printed([*words, plain.url, other.url], tmp_path)

    assert ["Hello, you!" in each for each in said] == [True, True]
    assert sorted(plain.shown) == sorted(LISTED)
    assert sorted(other.shown) == sorted(f"{prefixed}{name}" for name in LISTED)
    assert origins(served) == before + 2


@pytest.mark.req("CONN-3")
def test_googles_sdk_lists_chooses_and_calls(served: Served, tmp_path: Path) -> None:
    before = origins(served)
    with standing_in(StandIn(f"{NAMED}greet", {"name": "you"})) as provider:
        python = str(peers.ensure_python("google-genai"))
        words = [python, str(CLIENTS / "loop_with_google_genai.py"), served.url, served.key]
        said = printed([*words, provider.url.removesuffix("/v1")], tmp_path)

    assert "Hello, you!" in said
    assert sorted(provider.shown) == sorted(LISTED)
    assert origins(served) == before + 1
