"""FastMCP's client, asked by tests/mcp_conformance/test_clients.py: URL KEY TOOL ARGUMENTS. KEY may be `oauth`, or the
address of a document that is the client's id.
"""

import asyncio
import json
import sys

from fastmcp import Client  # type: ignore[import-not-found]
from fastmcp.client.auth import OAuth  # type: ignore[import-not-found]


async def main(url: str, key: str, tool: str, arguments: str) -> None:
    auth = OAuth(client_metadata_url=key) if key.startswith("https://") else key
    async with Client(url, auth=auth) as client:
        tools = [each.name for each in await client.list_tools()]
        answer = await client.call_tool(tool, json.loads(arguments))
    print(json.dumps({"tools": tools, "value": answer.structured_content}))


asyncio.run(main(*sys.argv[1:]))
