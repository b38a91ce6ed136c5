"""The client of the official SDK, asked by tests/mcp_conformance/test_clients.py: URL KEY TOOL ARGUMENTS MODE."""

import asyncio
import json
import sys

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def main(url: str, key: str, tool: str, arguments: str, mode: str) -> None:
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60, trust_env=False)
    async with http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        tools = [each.name for each in (await client.list_tools()).tools]
        answer = await client.call_tool(tool, json.loads(arguments))
    print(json.dumps({"tools": tools, "value": answer.structured_content}))


asyncio.run(main(*sys.argv[1:]))
