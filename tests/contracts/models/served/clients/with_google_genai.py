"""Google's SDK, asked by test_google_sdk.py: URL KEY [VERSION]. Prints what it has seen, as JSON."""

import asyncio
import json
import struct
import sys
import zlib

from google import genai
from google.genai import errors, types
from hub_tools import MODEL, ask_hub, run_tool
from pydantic import BaseModel


class Weather(BaseModel):
    city: str
    degrees: int | None


def open_client(url, key, version, **more):
    options = types.HttpOptions(base_url=url, api_version=version or None, **more)
    return genai.Client(api_key=key, http_options=options)


def list_tools(url, key):
    """As the hub shows them to a model that speaks this format."""
    return ask_hub(url, key, "/api/v1/tools?dialect=gemini")["tools"]


def dump_usage(response):
    usage = response.usage_metadata
    return [usage.prompt_token_count, usage.candidates_token_count, usage.total_token_count]


def ask_and_stream(client, url, key):
    whole = client.models.generate_content(model=MODEL, contents="Hello")
    chunks = list(client.models.generate_content_stream(model=MODEL, contents="Hello"))
    return {
        "whole": whole.text,
        "streamed": "".join(each.text or "" for each in chunks),
        "ends": [whole.candidates[0].finish_reason.value, chunks[-1].candidates[0].finish_reason.value],
        "usage": [dump_usage(whole), dump_usage(chunks[-1])],
        "chunks": len(chunks),
        "model": whole.model_version,
        "call": whole.sdk_http_response.headers["x-hub-call"] == whole.response_id,
    }


def ask_asynchronously(client, url, key):
    async def ask():
        whole = await client.aio.models.generate_content(model="main", contents="Hello")
        stream = await client.aio.models.generate_content_stream(model="main", contents="Hello")
        return whole.text, "".join([each.text or "" async for each in stream])

    return asyncio.run(ask())


def call_functions(client, url, key):
    """Both proposed calls, each answered as the SDK builds an answer: without an id."""
    config = types.GenerateContentConfig(tools=list_tools(url, key), system_instruction="Be kind.")
    chat = client.chats.create(model=MODEL, config=config)
    said = chat.send_message("Greet both of us.")
    called = [(each.name, dict(each.args)) for each in said.function_calls]
    parts = [
        types.Part.from_function_response(
            name=each.name, response={"output": run_tool(url, key, each.name, json.dumps(dict(each.args)))}
        )
        for each in said.function_calls
    ]
    last = chat.send_message(parts)
    return {"called": called, "loop": last.text, "turns": len(chat.get_history(curated=True))}


def call_automatically(client, url, key):
    """A function of the caller's own, which the SDK describes and runs by itself, while it streams."""

    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello, {name}!"

    mode = types.FunctionCallingConfig(mode="ANY", allowed_function_names=["greet"])
    config = types.GenerateContentConfig(tools=[greet], tool_config=types.ToolConfig(function_calling_config=mode))
    chat = client.chats.create(model="open", config=config)
    return "".join(each.text or "" for each in chat.send_message_stream("Greet me."))


def talk_in_streams(client, url, key):
    chat = client.chats.create(model=MODEL)
    said = ["".join(each.text or "" for each in chat.send_message_stream(text)) for text in ("Hello", "Hello again")]
    roles = [each.role for each in chat.get_history(curated=True)]
    return {"said": said, "roles": [role for at, role in enumerate(roles) if roles[at - 1 : at] != [role]]}


def ask_for_json(client, url, key):
    form = {"response_mime_type": "application/json"}
    typed = client.models.generate_content(
        model=MODEL, contents="Weather?", config={**form, "response_schema": Weather}
    )
    schema = {"response_json_schema": Weather.model_json_schema()}
    plain = client.models.generate_content(model=MODEL, contents="Weather?", config={**form, **schema})
    return [typed.parsed.model_dump(), json.loads(plain.text)]


def draw_png():
    """One pixel whose bytes have both letters in which alphabets of base64 differ."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    text = chunk(b"tEXt", b"Comment\0" + b"\xff\xff\xff\xfb\xef\xbe" * 3)
    rows = chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + text + rows + chunk(b"IEND", b"")


def show_a_picture(client, url, key):
    picture = types.Part.from_bytes(data=draw_png(), mime_type="image/png")
    return client.models.generate_content(model=MODEL, contents=[picture, "Hello"]).text


def embed_texts(client, url, key):
    config = types.EmbedContentConfig(task_type="RETRIEVAL_QUERY")
    found = client.models.embed_content(model="vectors", contents=["one", "two"], config=config)
    return [each.values for each in found.embeddings]


def count_and_list(client, url, key):
    pages = client.models.list(config={"page_size": 2})
    listed = [[each.name, each.supported_actions] for each in pages]
    counted = client.models.count_tokens(model=MODEL, contents="Hello").total_tokens
    return {"listed": listed, "one": client.models.get(model="main").name, "counted": counted}


def speak_to_the_hub(client, url, key):
    """What the format has no place for: `hub`, on every request of a client."""
    strict = open_client(url, key, "v1", extra_body={"hub": {"strict_parameters": True, "user_id": "ada"}})
    return strict.models.generate_content(model=MODEL, contents="Hello").text


def meet_errors(client, url, key):
    def meet(ask):
        try:
            ask()
        except errors.APIError as error:
            return [type(error).__name__, error.code, error.status, error.response.headers.get("x-hub-reason")]
        return None

    def ask(text="Hello", model=MODEL, **config):
        return lambda: client.models.generate_content(model=model, contents=text, config=config)

    stranger = open_client(url, "hub_live_nobody", "v1")
    return {
        "stranger": meet(lambda: stranger.models.generate_content(model=MODEL, contents="Hello")),
        "unknown": meet(ask(model="gemini-pro")),
        "candidates": meet(ask(candidate_count=2)),
        "limit": meet(ask(max_output_tokens=5000)),
        "busy": meet(ask("You are busy")),
        "long": meet(ask("This is too long")),
        "broken": meet(ask("Please break off")),
    }


def meet_a_broken_stream(client, url, key):
    texts = []
    try:
        texts.extend(
            each.text for each in client.models.generate_content_stream(model=MODEL, contents="Please break off")
        )
    except errors.APIError as error:
        return {"spoke": any(texts), "code": error.code, "reason": error.details["hub"]["reason"]}
    return {"spoke": any(texts)}


def leave_a_stream(client, url, key):
    stream = client.models.generate_content_stream(model=MODEL, contents="Hello")
    first = next(iter(stream))
    stream.close()
    return bool(first.text)


STORIES = {
    each.__name__: each
    for each in (
        ask_and_stream,
        ask_asynchronously,
        call_functions,
        call_automatically,
        talk_in_streams,
        ask_for_json,
        show_a_picture,
        embed_texts,
        count_and_list,
        speak_to_the_hub,
        meet_errors,
        meet_a_broken_stream,
        leave_a_stream,
    )
}


def main(url, key, version=""):
    told = {name: story(open_client(url, key, version), url, key) for name, story in STORIES.items()}
    print(json.dumps(told))


main(*sys.argv[1:])
