"""langchain-mcp-adapters, on an older SDK of MCP, asked by tests/mcp_conformance/test_clients.py: URL KEY TOOL ARGUMENTS."""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient  # type: ignore[import-not-found]


async def main(url: str, key: str, tool: str, arguments: str) -> None:
    client = MultiServerMCPClient(
        {"hub": {"transport": "streamable_http", "url": url, "headers": {"Authorization": f"Bearer {key}"}}}
    )
    tools = {each.name: each for each in await client.get_tools()}
    call = {"type": "tool_call", "id": "1", "name": tool, "args": json.loads(arguments)}
    answer = await tools[tool].ainvoke(call)
    print(json.dumps({"tools": list(tools), "value": answer.artifact["structured_content"]}))


asyncio.run(main(*sys.argv[1:]))
