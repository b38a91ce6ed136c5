"""An agent of openai-agents with the hub's tools, asked by tests/mcp_conformance/test_agent_loops.py: URL KEY PROVIDER
PROVIDER, the second with a prefix before each name."""

import asyncio
import json
import sys

from agents import (  # type: ignore[import-not-found]
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStreamableHttp  # type: ignore[import-not-found]
from openai import AsyncOpenAI


async def ask(url: str, key: str, provider: str, *, prefixed: bool) -> str:
    model = OpenAIChatCompletionsModel("stand-in", AsyncOpenAI(base_url=provider, api_key="none", max_retries=0))
    params = {"url": url, "headers": {"Authorization": f"Bearer {key}"}}
    async with MCPServerStreamableHttp(params, name="toolhub", client_session_timeout_seconds=60) as server:
        agent = Agent(
            "greeter",
            model=model,
            mcp_servers=[server],
            mcp_config={"include_server_in_tool_names": prefixed},
        )
        done = await Runner.run(agent, "Greet me.")
    return str(done.final_output)


async def main(url: str, key: str, plain: str, other: str) -> None:
    set_tracing_disabled(True)
    print(json.dumps([await ask(url, key, plain, prefixed=False), await ask(url, key, other, prefixed=True)]))


asyncio.run(main(*sys.argv[1:]))
