"""Prints what pydantic-ai makes of the bad calls, as JSON: by probe, how often the tool ran and what the model was told."""

import asyncio
import json
from typing import Any

from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.messages import (
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import WrapperToolset

from bench.probes.timer import measure_microseconds

ran: list[str] = []
AT_ONCE = 10  # calls of one answer of the model: a run of the agent is not what is measured


class FailingToolset(WrapperToolset):
    async def call_tool(self, *given: Any) -> Any:
        await super().call_tool(*given)
        raise RuntimeError("the layer is broken")


def build_toolset() -> Any:
    made = FunctionToolset()

    @made.tool
    def add(ctx: RunContext, a: int, b: int = 1) -> int:
        ran.append("add")
        return a + b

    @made.tool
    def mine(ctx: RunContext, a: int) -> str:
        ran.append("mine")
        return str(ctx.deps)

    @made.tool
    def free(ctx: RunContext, data: dict[str, int]) -> int:
        ran.append("free")
        return sum(data.values())

    return made


async def probe_call(made: Any, name: str, raw: str, times: int = 1) -> dict[str, Any]:
    ran.clear()
    told: list[tuple[bool, str]] = []

    def model(messages: list[Any], _: Any) -> Any:
        for part in messages[-1].parts:
            if isinstance(part, RetryPromptPart):
                told.append((True, str(part.model_response())))
            elif isinstance(part, ToolReturnPart):
                refused = isinstance(part.content, list)  # findings, with what was given
                told.append((refused, str(part.content)))
        if told:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(name, raw, str(number)) for number in range(times)])

    try:
        await Agent(FunctionModel(model), deps_type=str, toolsets=[made]).run("go", deps="the hub's")
    except Exception as error:
        return {"ran": len(ran), "failed": True, "text": f"{type(error).__name__}: {error}"}
    return {"ran": len(ran), "failed": told[0][0], "text": told[0][1]}


async def main() -> None:
    found: dict[str, Any] = {
        "unknown argument": await probe_call(build_toolset(), "add", '{"a": 1, "c": 5}'),
        "spoofed injected value": await probe_call(build_toolset(), "mine", '{"a": 1, "ctx": "evil"}'),
        "truncated JSON": await probe_call(build_toolset(), "add", '{"a": 1, "b": '),
        "dict parameter": await probe_call(build_toolset(), "free", '{"data": {"x": 1}}'),
        "layer fails after next": await probe_call(FailingToolset(build_toolset()), "add", '{"a": 1}'),
    }
    made = build_toolset()
    found["µs"] = await measure_microseconds(lambda: probe_call(made, "add", '{"a": 1}', AT_ONCE)) / AT_ONCE
    try:

        def add(ctx: RunContext, a: int) -> str:
            return "the second"

        made.tool(add)
        found["duplicate name"] = await probe_call(made, "add", '{"a": 1}')
    except Exception as error:
        found["duplicate name"] = {"failed": True, "text": str(error)}
    print(json.dumps(found))


asyncio.run(main())
