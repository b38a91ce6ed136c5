"""Local models: are models in this process asked and read as they are, and what is said where their packages are missing?"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from kernel.problems import NotFound, SchemaInvalid
from llm.answers import FinishReason
from llm.messages import AssistantMessage, SystemMessage, Text, ToolMessage, UserMessage
from llm.problems import ContextOverflow, ParameterUnsupported, ProviderUnavailable, StreamTruncated
from llm.provider_factory import ProviderConfig
from llm.providers import local, local_embeddings
from llm.providers.local import LocalProvider
from llm.providers.local_chat import LocalChat, build_body
from llm.providers.local_runtime import find_problem
from llm.requests import ChatRequest, JsonFormat, SchemaFormat
from llm.untrusted_texts import delimit_result
from llm.usage import Usage
from unitools.calls import ToolCall, ToolSpec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

HI = UserMessage((Text("Hi"),))
WEATHER = ToolSpec(
    "acme.weather.get", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}}
)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


@dataclass
class ScriptedRuntime:
    """Plays chunks as llama.cpp makes them."""

    texts: Sequence[str]
    reason: str = "stop"
    counts: dict[str, Any] = field(default_factory=lambda: {"prompt_tokens": 9, "completion_tokens": 4})

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        for text in self.texts:
            yield {"choices": [{"delta": {"content": text}, "finish_reason": None}]}
        if self.reason:
            yield {"choices": [{"delta": {}, "finish_reason": self.reason}]}
        yield {"choices": [], "usage": self.counts}


def model(*texts: str, **given: Any) -> LocalChat:
    return LocalChat(ScriptedRuntime(texts, **given), "small")  # type: ignore[arg-type]


def request(*messages: Any, **given: Any) -> ChatRequest:
    return ChatRequest(model="local:small", messages=messages or (HI,), **given)


@pytest.mark.req("LLM-5")
def test_a_text_streams_and_its_usage_is_what_the_runtime_counted() -> None:
    counts = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}}

    answer = anyio.run(model("Hel", "lo", counts=counts).generate, request())

    assert (answer.text, answer.finish_reason, answer.model) == ("Hello", FinishReason.STOP, "small")
    assert answer.usage == Usage(9, 4, 8)


@pytest.mark.req("LLM-9")
def test_a_local_answer_without_an_end_is_none_and_one_at_its_limit_says_so() -> None:
    with pytest.raises(StreamTruncated):
        anyio.run(model("Hel", reason="").generate, request())
    assert anyio.run(model("Hel", reason="length").generate, request()).finish_reason is FinishReason.LENGTH


@pytest.mark.req("LLM-3")
def test_calls_are_proposed_in_a_form_that_a_grammar_holds_the_model_to() -> None:
    body = build_body(request(tools=(WEATHER,)))
    (calls, text) = body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert calls["properties"]["tool_calls"]["items"]["anyOf"][0]["properties"] == {
        "name": {"const": "acme.weather.get"},
        "arguments": WEATHER.parameters,
    }
    assert text["properties"] == {"text": {"type": "string"}}
    assert "tools" not in body

    said = '{"tool_calls": [{"name": "acme.weather.get", "arguments": {"city": "Rome"}}]}'
    answer = anyio.run(model(said[:30], said[30:]).generate, request(tools=(WEATHER,)))
    assert [(call.name, call.arguments) for call in answer.proposals] == [("acme.weather.get", {"city": "Rome"})]
    assert (answer.text, answer.finish_reason) == ("", FinishReason.TOOL)


@pytest.mark.req("LLM-3")
def test_a_model_that_may_propose_calls_can_answer_with_a_text_and_a_cut_answer_proposes_none() -> None:
    plain = anyio.run(model('{"text": "No need."}').generate, request(tools=(WEATHER,)))
    assert (plain.text, plain.proposals, plain.finish_reason) == ("No need.", (), FinishReason.STOP)

    cut = anyio.run(model('{"tool_calls": [{"name": "acme.w', reason="length").generate, request(tools=(WEATHER,)))
    assert (cut.text, cut.proposals, cut.finish_reason) == ("", (), FinishReason.LENGTH)

    stopped = anyio.run(model('{"tool_calls": [{"name": "acme.w').generate, request(tools=(WEATHER,), stop=("eather",)))
    assert (stopped.text, stopped.proposals, stopped.finish_reason) == ("", (), FinishReason.OTHER)


@pytest.mark.req("LLM-4")
def test_a_document_is_asked_for_by_its_schema_alone_or_beside_tools() -> None:
    wanted = SchemaFormat(SCHEMA)

    assert build_body(request(response_format=wanted))["response_format"]["json_schema"]["schema"] == SCHEMA
    answer = anyio.run(model('{"output": {"n": 3}}').generate, request(tools=(WEATHER,), response_format=wanted))
    assert answer.output == {"n": 3}
    with pytest.raises(ParameterUnsupported):
        anyio.run(model("{}").generate, request(response_format=JsonFormat()))


@pytest.mark.req("LLM-2")
def test_a_system_message_is_always_there_and_calls_and_their_answers_are_text_in_the_conversation() -> None:
    call = ToolCall("call_1", "acme.weather.get", {"city": "Rome"})
    answered = (AssistantMessage((Text("Wait."),), (call,)), ToolMessage(call_id="call_1", segments=(Text("sun"),)))

    assert build_body(request())["messages"][0] == {"role": "system", "content": "You are a helpful assistant."}
    said = build_body(request(SystemMessage((Text("Be brief."),)), HI, *answered, HI, tools=(WEATHER,)))["messages"]
    assert said[0]["content"].startswith("Be brief.\n\nTools:\n- acme.weather.get: Weather of a city {")
    assert said[1:] == [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": 'Wait.\n{"tool_calls": [{"name": "acme.weather.get", "arguments": {"city": "Rome"}}]}',
        },
        {"role": "user", "content": delimit_result(answered[1])},
        {"role": "user", "content": "Hi"},
    ]


@pytest.mark.req("LLM-3")
def test_what_the_model_said_before_stands_in_the_form_that_its_next_answer_is_held_to() -> None:
    earlier = (HI, AssistantMessage((Text('He said "no".'),)), HI)

    framed, plain = (build_body(request(*earlier, tools=tools))["messages"][2] for tools in ((WEATHER,), ()))

    assert json.loads(framed["content"]) == {"text": 'He said "no".'}
    assert plain["content"] == 'He said "no".'


@pytest.mark.req("LLM-4")
def test_an_answer_is_never_without_a_limit_and_parameters_are_passed() -> None:
    assert build_body(request())["max_tokens"] == 1024
    body = build_body(request(max_tokens=5, temperature=0.0, seed=7, stop=("END",)))
    assert (body["max_tokens"], body["temperature"], body["seed"], body["stop"]) == (5, 0.0, 7, ["END"])


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("exceed_context_size_error", ContextOverflow),
        ("invalid_request_error", ParameterUnsupported),
        ("server_error", ProviderUnavailable),
        ("", ProviderUnavailable),
    ],
)
def test_every_error_of_the_runtime_is_a_problem_that_does_not_quote_it(kind: str, problem: type[Exception]) -> None:
    found = find_problem({"type": kind, "message": "canary"})

    assert isinstance(found, problem)
    assert "canary" not in str(found)


@pytest.mark.req("LLM-10")
def test_where_the_packages_are_missing_the_refusal_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module, name in ((local, "RUNTIME"), (local, "WEIGHTS"), (local_embeddings, "LIBRARY")):
        monkeypatch.setattr(module, name, f"missing_{name.lower()}")
    (file := tmp_path / "own.gguf").write_bytes(b"GGUF")
    provider = LocalProvider(ProviderConfig("local", options={"files": {"own": str(file)}}))

    for find in (
        lambda: provider.get_chat_model(local.CHAT_NAME),
        lambda: provider.get_chat_model("own"),
        lambda: provider.get_embed_model(local_embeddings.NAME),
        lambda: provider.get_rerank_model(local_embeddings.NAME),
    ):
        with pytest.raises(NotFound, match="not installed") as refused:
            find()
        assert "requirements-local-models.lock" in refused.value.remedy


@pytest.mark.req("LLM-10")
def test_models_that_are_not_there_and_wrong_options_are_refused() -> None:
    provider = LocalProvider(ProviderConfig("local"))

    for find in (provider.get_chat_model, provider.get_embed_model, provider.get_rerank_model):
        with pytest.raises(NotFound):
            find("nothing")
    for options in ({"files": ["a"]}, {"files": {"a": 1}}, {"context_tokens": "many"}, {"context_tokens": 0}):
        with pytest.raises(SchemaInvalid):
            LocalProvider(ProviderConfig("local", options=options))


# Sets handlers of the process as a library in C does, behind Python's back.
TAKES_SIGNALS = """
import ctypes, os, signal
from llm.providers.llama_servers import keep_signal_handlers

heard = []
signal.signal(signal.SIGTERM, lambda *_: heard.append("hub"))
libc = ctypes.CDLL(None)
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
with keep_signal_handlers():
    libc.signal(signal.SIGTERM, 1)  # SIG_IGN
os.kill(os.getpid(), signal.SIGTERM)
print(heard)
"""


# Two threads load a model each. The second begins while the first is at it, and ends after it.
TAKES_SIGNALS_TWICE = """
import ctypes, os, signal, sys
from threading import Event, Lock, Thread
from types import ModuleType, SimpleNamespace
from llm.providers import llama_servers
from llm.providers.llama_servers import ServerPlan, open_server

heard, arrived, first_ended, threads = [], Event(), Event(), []
signal.signal(signal.SIGTERM, lambda *_: heard.append("hub"))
libc = ctypes.CDLL(None)
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]

class SaidLock:
    def __init__(self):
        self.lock = Lock()
    def __enter__(self):
        if threads:
            arrived.set()
        self.lock.acquire()
    def __exit__(self, *_):
        self.lock.release()

class Server:
    def __init__(self, parameters):
        libc.signal(signal.SIGTERM, 1)  # SIG_IGN
        if threads:
            arrived.set()
            first_ended.wait()
        else:
            threads.append(Thread(target=load))
            threads[0].start()
            arrived.wait()
    def handle_metrics(self):
        pass

library = sys.modules["xllamacpp"] = ModuleType("xllamacpp")
library.Server = Server
library.CommonParams = lambda: SimpleNamespace(
    model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
)
llama_servers.loading_lock = SaidLock()

def load():
    open_server(ServerPlan("/nowhere", "none", 64))

load()
first_ended.set()
threads[0].join()
os.kill(os.getpid(), signal.SIGTERM)
print(heard)
"""


@pytest.mark.req("LLM-10")
@pytest.mark.parametrize("program", [TAKES_SIGNALS, TAKES_SIGNALS_TWICE], ids=["once", "by two threads"])
def test_signals_that_a_library_takes_are_given_back(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "['hub']"
