"""An agent of LangChain with the hub's tools, asked by tests/mcp_conformance/test_agent_loops.py: URL KEY PROVIDER PROVIDER,
the second with a prefix before each name."""

import asyncio
import json
import sys

from langchain.agents import create_agent  # type: ignore[import-not-found]
from langchain_mcp_adapters.client import MultiServerMCPClient  # type: ignore[import-not-found]
from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]


async def ask(url: str, key: str, provider: str, *, prefixed: bool) -> str:
    server = {"transport": "streamable_http", "url": url, "headers": {"Authorization": f"Bearer {key}"}}
    client = MultiServerMCPClient({"toolhub": server}, tool_name_prefix=prefixed)
    model = ChatOpenAI(model="stand-in", base_url=provider, api_key="none", max_retries=0)
    agent = create_agent(model, await client.get_tools())
    done = await agent.ainvoke({"messages": [("user", "Greet me.")]})
    return str(done["messages"][-1].text)


async def main(url: str, key: str, plain: str, other: str) -> None:
    print(json.dumps([await ask(url, key, plain, prefixed=False), await ask(url, key, other, prefixed=True)]))


asyncio.run(main(*sys.argv[1:]))
