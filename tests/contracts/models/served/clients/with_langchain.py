"""langchain-openai, asked by test_frameworks.py: URL KEY."""

import json
import sys

from hub_tools import MODEL, list_tools, run_tool
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

SCHEMA = {
    "title": "Weather",
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}


def main(url, key):
    model = ChatOpenAI(base_url=f"{url}/v1", api_key=key, model=MODEL, stream_usage=True)
    bound = model.bind_tools([{"type": "function", "function": each} for each in list_tools(url, key)])
    messages = [HumanMessage("Greet me.")]
    first = bound.invoke(messages)
    results = [
        ToolMessage(run_tool(url, key, each["name"], json.dumps(each["args"])), tool_call_id=each["id"])
        for each in first.tool_calls
    ]
    loop = bound.invoke([*messages, first, *results]).content
    streamed = "".join(each.text for each in model.stream("Hello"))
    typed = model.with_structured_output(SCHEMA, method="json_schema").invoke("Weather?")
    # A tool of its own, and one call at a time: for a model that was connected for callers' tools.
    own = ChatOpenAI(base_url=f"{url}/v1", api_key=key, model="open")
    by_tool = own.with_structured_output(SCHEMA, method="function_calling").invoke("Weather?")
    embeddings = OpenAIEmbeddings(base_url=f"{url}/v1", api_key=key, model="vectors", check_embedding_ctx_length=False)
    vector = embeddings.embed_query("one")
    print(json.dumps({"loop": loop, "stream": streamed, "typed": typed, "by_tool": by_tool, "vector": vector}))


main(*sys.argv[1:])
