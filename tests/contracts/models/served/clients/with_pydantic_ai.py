"""pydantic-ai, asked by test_frameworks.py: URL KEY."""

import asyncio
import json
import sys

from hub_tools import MODEL, list_tools, run_tool
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, Tool
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Weather(BaseModel):
    city: str
    degrees: int


async def main(url, key):
    provider = OpenAIProvider(base_url=f"{url}/v1", api_key=key)
    model = OpenAIChatModel(MODEL, provider=provider)

    def build_tool(function):
        async def run(**arguments):
            return await asyncio.to_thread(run_tool, url, key, function["name"], json.dumps(arguments))

        return Tool.from_schema(run, function["name"], function["description"], function["parameters"])

    agent = Agent(model, tools=[build_tool(each) for each in list_tools(url, key)])
    loop = (await agent.run("Greet me.")).output
    async with Agent(model).run_stream("Hello") as stream:
        streamed = await stream.get_output()
    typed = (await Agent(model, output_type=NativeOutput(Weather)).run("Weather?")).output
    foreign = ""
    try:
        await Agent(model, output_type=Weather).run("Weather?")
    except ModelHTTPError as error:
        foreign = str(error)
    print(json.dumps({"loop": loop, "stream": streamed, "typed": typed.model_dump(), "foreign": foreign}))


asyncio.run(main(*sys.argv[1:]))
