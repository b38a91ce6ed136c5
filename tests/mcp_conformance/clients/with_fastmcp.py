"""FastMCP's client, asked by tests/mcp_conformance/test_clients.py: URL KEY TOOL ARGUMENTS. KEY may be `oauth`."""

import asyncio
import json
import sys

from fastmcp import Client  # type: ignore[import-not-found]


async def main(url: str, key: str, tool: str, arguments: str) -> None:
    async with Client(url, auth=key) as client:
        tools = [each.name for each in await client.list_tools()]
        answer = await client.call_tool(tool, json.loads(arguments))
    print(json.dumps({"tools": tools, "value": answer.structured_content}))


asyncio.run(main(*sys.argv[1:]))
