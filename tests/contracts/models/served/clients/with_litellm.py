"""litellm, asked by test_frameworks.py: URL KEY."""

import json
import sys

import litellm
from hub_tools import MODEL, list_tools, run_tool


def main(url, key):
    asked = {"model": f"openai/{MODEL}", "api_base": f"{url}/v1", "api_key": key, "num_retries": 0}
    tools = [{"type": "function", "function": each} for each in list_tools(url, key)]
    messages = [{"role": "user", "content": "Greet me."}]
    first = litellm.completion(**asked, messages=messages, tools=tools).choices[0].message
    (call,) = first.tool_calls
    result = run_tool(url, key, call.function.name, call.function.arguments)
    messages += [first.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": result}]
    loop = litellm.completion(**asked, messages=messages, tools=tools).choices[0].message.content
    hello = [{"role": "user", "content": "Hello"}]
    streamed = "".join(
        each.choices[0].delta.content or ""
        for each in litellm.completion(**asked, messages=hello, stream=True, stream_options={"include_usage": True})
        if each.choices
    )
    vector = litellm.embedding(
        model="openai/vectors", api_base=f"{url}/v1", api_key=key, input=["one"], encoding_format="float"
    ).data[0]["embedding"]
    error = ""
    try:
        litellm.completion(**asked, messages=[{"role": "user", "content": "You are busy"}])
    except litellm.RateLimitError as caught:
        error = type(caught).__name__
    print(json.dumps({"loop": loop, "stream": streamed, "vector": vector, "error": error}))


main(*sys.argv[1:])
