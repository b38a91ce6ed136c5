"""The MCP client of openai-agents, asked by tests/mcp_conformance/test_clients.py: URL KEY TOOL ARGUMENTS."""

import asyncio
import json
import sys

from agents.mcp import MCPServerStreamableHttp  # type: ignore[import-not-found]


async def main(url: str, key: str, tool: str, arguments: str) -> None:
    params = {"url": url, "headers": {"Authorization": f"Bearer {key}"}}
    async with MCPServerStreamableHttp(params, client_session_timeout_seconds=60) as server:
        tools = [each.name for each in await server.list_tools()]
        answer = await server.call_tool(tool, json.loads(arguments))
    print(json.dumps({"tools": tools, "value": answer.structured_content}))


asyncio.run(main(*sys.argv[1:]))
