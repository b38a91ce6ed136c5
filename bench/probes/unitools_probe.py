"""Prints what unitools makes of the bad calls, as JSON: by probe, how often the tool ran and what the model is told."""

import asyncio
import json
from functools import partial
from typing import Annotated, Any

from bench.probes.timer import measure_microseconds
from unitools import Injected, Universe

ran: list[str] = []


def build_universe() -> Universe:
    made = Universe()

    @made.tool()
    def add(a: int, b: int = 1) -> int:
        ran.append("add")
        return a + b

    @made.tool()
    async def quick(a: int, b: int = 1) -> int:
        return a + b

    @made.tool()
    def mine(a: int, user: Annotated[str, Injected("user")]) -> str:
        ran.append("mine")
        return user

    @made.tool()
    def free(data: dict[str, int]) -> int:
        ran.append("free")
        return sum(data.values())

    return made


def build_proposal(name: str, raw: str) -> dict[str, Any]:
    call = {"id": "1", "type": "function", "function": {"name": name, "arguments": raw}}
    return {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}]}


async def probe_call(made: Universe, name: str, raw: str) -> dict[str, Any]:
    ran.clear()
    (result,) = await made.dispatch(build_proposal(name, raw), context={"user": "the hub's"})
    return {"ran": len(ran), "failed": result.is_error, "text": result.to_content()}


async def fail_after_call(call: Any, next_h: Any) -> Any:
    await next_h(call)
    raise RuntimeError("the layer is broken")


async def main() -> None:
    found: dict[str, Any] = {
        "unknown argument": await probe_call(build_universe(), "add", '{"a": 1, "c": 5}'),
        "spoofed injected value": await probe_call(build_universe(), "mine", '{"a": 1, "user": "evil"}'),
        "truncated JSON": await probe_call(build_universe(), "add", '{"a": 1, "b": '),
        "dict parameter": await probe_call(build_universe(), "free", '{"data": {"x": 1}}'),
    }
    layered = build_universe()
    layered.use(fail_after_call, critical=False)
    found["layer fails after next"] = await probe_call(layered, "add", '{"a": 1}')
    made = build_universe()
    for key, name in (("µs", "add"), ("µs async", "quick")):
        found[key] = await measure_microseconds(partial(made.dispatch, build_proposal(name, '{"a": 1}')))
    try:

        @made.tool("add")
        def another(a: int) -> str:
            return "the second"

        found["duplicate name"] = await probe_call(made, "add", '{"a": 1}')
    except Exception as error:
        found["duplicate name"] = {"failed": True, "text": str(error)}
    print(json.dumps(found))


asyncio.run(main())
