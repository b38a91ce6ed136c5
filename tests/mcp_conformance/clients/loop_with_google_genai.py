"""Google's SDK with the hub's tools, on an older SDK of MCP, asked by tests/mcp_conformance/test_agent_loops.py: URL KEY PROVIDER.

Tools are declared by their JSON Schemas. What it makes of a session or of MCP's tools by itself fails in google-genai 3.4: it copies
the session, and takes `additionalProperties` for a schema.
"""

import asyncio
import json
import sys
from typing import Any

from google import genai
from google.genai import types
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client  # type: ignore[attr-defined]


async def main(url: str, key: str, provider: str) -> None:
    options = types.HttpOptions(base_url=provider)
    headers = {"Authorization": f"Bearer {key}"}
    async with streamablehttp_client(url, headers=headers) as (read, write, _), ClientSession(read, write) as session:
        hub: Any = session
        await hub.initialize()
        declared = [
            types.FunctionDeclaration(
                name=each.name, description=each.description, parameters_json_schema=each.inputSchema
            )
            for each in (await hub.list_tools()).tools
        ]
        config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)])
        chat = genai.Client(api_key="none", http_options=options).aio.chats.create(model="stand-in", config=config)
        said = await chat.send_message("Greet me.")
        while said.function_calls:
            call: Any = said.function_calls[0]
            answer = await hub.call_tool(call.name, call.args)
            response = {"result": answer.structuredContent}
            said = await chat.send_message(types.Part.from_function_response(name=call.name, response=response))
    print(json.dumps(said.text))


asyncio.run(main(*sys.argv[1:]))
