"""An agent of openai-agents with the hub's tools, asked by tests/mcp_conformance/test_agent_loops.py: URL KEY PROVIDER PREFIXED."""

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


async def main(url: str, key: str, provider: str, prefixed: str) -> None:
    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel("stand-in", AsyncOpenAI(base_url=provider, api_key="none", max_retries=0))
    params = {"url": url, "headers": {"Authorization": f"Bearer {key}"}}
    async with MCPServerStreamableHttp(params, name="toolhub", client_session_timeout_seconds=60) as server:
        agent = Agent(
            "greeter",
            model=model,
            mcp_servers=[server],
            mcp_config={"include_server_in_tool_names": bool(prefixed)},
        )
        done = await Runner.run(agent, "Greet me.")
    print(json.dumps(done.final_output))


asyncio.run(main(*sys.argv[1:]))
