"""An agent of pydantic-ai with the hub's tools, asked by tests/mcp_conformance/test_agent_loops.py: URL KEY PROVIDER PROVIDER,
the second with a prefix before each name."""

import asyncio
import json
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def ask(url: str, key: str, provider: str, *, prefixed: bool) -> str:
    tools = MCPToolset(url, headers={"Authorization": f"Bearer {key}"})
    model = OpenAIChatModel("stand-in", provider=OpenAIProvider(base_url=provider, api_key="none"))
    async with Agent(model, toolsets=[tools.prefixed("toolhub") if prefixed else tools]) as agent:
        done = await agent.run("Greet me.")
    return done.output


async def main(url: str, key: str, plain: str, other: str) -> None:
    print(json.dumps([await ask(url, key, plain, prefixed=False), await ask(url, key, other, prefixed=True)]))


asyncio.run(main(*sys.argv[1:]))
