"""Prints what langchain-core makes of the bad calls, as JSON: by probe, how often the tool ran and what came back."""

import asyncio
import json
from typing import Annotated, Any

from langchain_core.output_parsers.openai_tools import parse_tool_call  # type: ignore[import-not-found]
from langchain_core.tools import InjectedToolArg, tool  # type: ignore[import-not-found]

from bench.probes.timer import measure_microseconds

ran: list[str] = []


@tool  # type: ignore[untyped-decorator]
def add_numbers(a: int, b: int = 1) -> int:
    """Add."""
    ran.append("add")
    return a + b


@tool  # type: ignore[untyped-decorator]
def return_user(a: int, user: Annotated[str, InjectedToolArg] = "the hub's") -> str:
    """Mine."""
    ran.append("mine")
    return user


@tool  # type: ignore[untyped-decorator]
def sum_values(data: dict[str, int]) -> int:
    """Free."""
    ran.append("free")
    return sum(data.values())


async def probe_call(one: Any, raw: str) -> dict[str, Any]:
    ran.clear()
    proposed = {"id": "1", "type": "function", "function": {"name": one.name, "arguments": raw}}
    try:
        parsed = parse_tool_call(proposed, return_id=True)
        answer = await one.ainvoke({**parsed, "type": "tool_call"})
    except Exception as error:
        return {"ran": len(ran), "failed": True, "text": f"{type(error).__name__}: {error}"}
    return {"ran": len(ran), "failed": answer.status == "error", "text": str(answer.content)}


async def main() -> None:
    found: dict[str, Any] = {
        "unknown argument": await probe_call(add_numbers, '{"a": 1, "c": 5}'),
        "spoofed injected value": await probe_call(return_user, '{"a": 1, "user": "evil"}'),
        "truncated JSON": await probe_call(add_numbers, '{"a": 1, "b": '),
        "dict parameter": await probe_call(sum_values, '{"data": {"x": 1}}'),
    }
    found["µs"] = await measure_microseconds(lambda: probe_call(add_numbers, '{"a": 1}'))
    print(json.dumps(found))


asyncio.run(main())
