"""The hub's tools for programs of others: listed as OpenAI's format has them, and run where a model proposed a call."""

import json
import urllib.request
from uuid import uuid4

MODEL = "model.mock.main"


def ask_hub(url, key, path, body=None):
    """What the hub's own API answers, as its `data`."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url + path, json.dumps(body).encode() if body else None, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as answer:
        return json.load(answer)["data"]


def list_tools(url, key):
    """The function of each tool: name, description, parameters."""
    return [each["function"] for each in ask_hub(url, key, "/api/v1/tools?dialect=openai")["tools"]]


def run_tool(url, key, name, arguments):
    """Dispatched as the one call of an answer; the text that the model is told."""
    function = {"name": name, "arguments": arguments}
    own = uuid4().hex  # what is dispatched again under the same names is answered again
    called = [{"id": f"call_{own}", "type": "function", "function": function}]
    message = {"role": "assistant", "content": None, "tool_calls": called}
    response = {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
    }
    actor = {"type": "agent", "id": "framework"}
    body = {"request_id": f"framework-{own}", "actor": actor, "dialect": "openai", "response": response}
    return ask_hub(url, key, "/api/v1/dispatch", body)["messages"][0]["content"]
