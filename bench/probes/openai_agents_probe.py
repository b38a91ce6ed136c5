"""Prints what openai-agents makes of the bad calls, as JSON: by probe, how often the tool ran and what the model was told."""

import asyncio
import json
from typing import Any

from agents import Agent, RunContextWrapper, function_tool  # type: ignore[import-not-found]
from agents.tool_context import ToolContext  # type: ignore[import-not-found]

from bench.probes.timer import measure_microseconds

ran: list[str] = []


@function_tool  # type: ignore[untyped-decorator]
def add(a: int, b: int = 1) -> int:
    ran.append("add")
    return a + b


@function_tool  # type: ignore[untyped-decorator]
def return_user(ctx: RunContextWrapper[str], a: int) -> str:
    ran.append("mine")
    return str(ctx.context)


async def probe_call(tool: Any, raw: str) -> dict[str, Any]:
    ran.clear()
    context = ToolContext(context="the hub's", tool_name=tool.name, tool_call_id="1", tool_arguments=raw)
    try:
        text = str(await tool.on_invoke_tool(context, raw))
    except Exception as error:
        return {"ran": len(ran), "failed": True, "text": f"{type(error).__name__}: {error}"}
    return {"ran": len(ran), "failed": "error" in text, "text": text}


async def main() -> None:
    found: dict[str, Any] = {
        "unknown argument": await probe_call(add, '{"a": 1, "c": 5}'),
        "spoofed injected value": await probe_call(return_user, '{"a": 1, "ctx": "evil"}'),
        "truncated JSON": await probe_call(add, '{"a": 1, "b": '),
    }
    try:

        @function_tool  # type: ignore[untyped-decorator]
        def free(data: dict[str, int]) -> int:
            ran.append("free")
            return sum(data.values())

        found["dict parameter"] = await probe_call(free, '{"data": {"x": 1}}')
    except Exception as error:
        found["dict parameter"] = {"failed": True, "text": f"{type(error).__name__}: {error}"}

    @function_tool(name_override="add")  # type: ignore[untyped-decorator]
    def another(a: int) -> str:
        return "the second"

    tools = await Agent(name="probe", tools=[add, another]).get_all_tools(RunContextWrapper(None))
    found["duplicate name"] = {"failed": False, "kept": len(tools), "text": ""}
    found["µs"] = await measure_microseconds(lambda: probe_call(add, '{"a": 1}'))
    print(json.dumps(found))


asyncio.run(main())
