"""Prints what FastMCP makes of the bad calls, as JSON: by probe, how often the tool ran and what came back."""

import asyncio
import json
from typing import Any

from fastmcp import Client, FastMCP  # type: ignore[import-not-found]
from fastmcp.dependencies import Depends  # type: ignore[import-not-found]
from fastmcp.server.middleware import Middleware  # type: ignore[import-not-found]

from bench.probes.timer import measure_microseconds

ran: list[str] = []


def provide_user() -> str:
    return "the hub's"


class FailingMiddleware(Middleware):  # type: ignore[misc]
    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        await call_next(context)
        raise RuntimeError("the layer is broken")


def build_server() -> Any:
    made = FastMCP("probe")

    @made.tool  # type: ignore[untyped-decorator]
    def add(a: int, b: int = 1) -> int:
        ran.append("add")
        return a + b

    @made.tool  # type: ignore[untyped-decorator]
    def mine(a: int, user: str = Depends(provide_user)) -> str:
        ran.append("mine")
        return user

    @made.tool  # type: ignore[untyped-decorator]
    def free(data: dict[str, int]) -> int:
        ran.append("free")
        return sum(data.values())

    return made


async def probe_call(made: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    ran.clear()
    async with Client(made) as client:
        try:
            answer = await client.call_tool(name, arguments, raise_on_error=False)
        except Exception as error:
            return {"ran": len(ran), "failed": True, "text": f"{type(error).__name__}: {error}"}
    text = " ".join(getattr(block, "text", "") for block in answer.content)
    return {"ran": len(ran), "failed": answer.is_error, "text": text}


async def measure_overhead(made: Any) -> float:
    async with Client(made) as client:
        return await measure_microseconds(lambda: client.call_tool("add", {"a": 1}))


async def main() -> None:
    made = build_server()
    found: dict[str, Any] = {
        "unknown argument": await probe_call(made, "add", {"a": 1, "c": 5}),
        "spoofed injected value": await probe_call(made, "mine", {"a": 1, "user": "evil"}),
        "dict parameter": await probe_call(made, "free", {"data": {"x": 1}}),
    }
    layered = build_server()
    layered.add_middleware(FailingMiddleware())
    found["layer fails after next"] = await probe_call(layered, "add", {"a": 1})
    found["µs"] = await measure_overhead(build_server())
    try:

        @made.tool(name="add")  # type: ignore[untyped-decorator]
        def another(a: int) -> str:
            return "the second"

        found["duplicate name"] = await probe_call(made, "add", {"a": 1})
    except Exception as error:
        found["duplicate name"] = {"failed": True, "text": str(error)}
    print(json.dumps(found))


asyncio.run(main())
