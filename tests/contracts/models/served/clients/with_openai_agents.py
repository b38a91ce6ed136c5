"""openai-agents, asked by test_frameworks.py: URL KEY."""

import asyncio
import json
import sys

from agents import Agent, FunctionTool, ModelSettings, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from hub_tools import MODEL, list_tools, run_tool
from openai import AsyncOpenAI


async def main(url, key):
    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel(MODEL, AsyncOpenAI(base_url=f"{url}/v1", api_key=key))

    def build_tool(function):
        async def run(_, arguments):
            return await asyncio.to_thread(run_tool, url, key, function["name"], arguments)

        return FunctionTool(
            function["name"], function["description"], function["parameters"], run, strict_json_schema=False
        )

    tools = [build_tool(each) for each in list_tools(url, key)]
    agent = Agent("greeter", instructions="Greet.", model=model, tools=tools)
    plain = Agent("talker", model=model, model_settings=ModelSettings(include_usage=True))
    loop = await Runner.run(agent, "Greet me.")
    streamed = Runner.run_streamed(plain, "Hello")
    async for _ in streamed.stream_events():
        pass
    print(json.dumps({"loop": loop.final_output, "stream": streamed.final_output}))


asyncio.run(main(*sys.argv[1:]))
