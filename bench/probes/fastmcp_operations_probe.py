"""Prints what FastMCP makes of a document, as JSON: every operation of FILE becomes a tool, and all are listed once."""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path

import httpx2
from fastmcp import Client, FastMCP  # type: ignore[import-not-found]


async def main(file: str) -> None:
    begun = time.perf_counter()
    document = json.loads(Path(file).read_text())
    made = FastMCP.from_openapi(
        openapi_spec=document, client=httpx2.AsyncClient(base_url="https://service.invalid"), name="probe"
    )
    async with Client(made) as client:
        tools = await client.list_tools()
    found = {
        "tools": len(tools),
        "seconds": time.perf_counter() - begun,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "listing_bytes": sum(len(each.model_dump_json(exclude_none=True)) for each in tools),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
