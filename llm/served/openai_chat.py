"""OpenAI Chat Completions: conversations in the format that most programs speak."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from llm.served.formats import Answered, ServedChat
from llm.served.openai_messages import ConversationReader, read_tools
from llm.served.parameters import Findings, passed, read_parameters, refused, warned
from llm.served.problem_objects import find_status, write_problem_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kernel.problems import Problem
    from llm.answers import ChatDelta

SAME = (
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "reasoning_effort",
)
NOT_KEPT = "Answers are not kept for their callers; the call stands in the hub under the id in X-Hub-Call."
# What the hub takes of its own, in `hub`: of the request, and of the envelope around it.
OF_REQUEST = ("allow_sensitive", "cache_hint", "strict_parameters")
OF_ENVELOPE = ("callback", "currency", "locale", "on_consent", "purpose", "session_id", "timezone", "trace", "user_id")
WHERE_TAKEN = "Where the model takes it; else it is left out with a warning."
CACHE_KEY = "`cache_hint` of the hub's chat: sent as a digest where the model takes it, else left out with a warning."
SINGLE = "Where it is false the model proposes one call at a time; where it cannot be told so, a warning says that."
HUB = tuple(passed(name, "As the hub's own chat takes it.") for name in (*OF_REQUEST, *OF_ENVELOPE))
OF_THE_HUB = passed("hub", f"Parameters of the hub itself: {', '.join(each.name for each in HUB)}.")

PARAMETERS = (
    passed("model", "A model of the hub, by its id `model.<provider>.<alias>` or by an alias that only one has."),
    passed("messages", "Each with a role: developer, system, user, assistant or tool."),
    passed(
        "tools", "Tools that the agent may call now, as the registry describes them; ids and expressions go as well."
    ),
    passed("tool_choice", "`auto`, `none`, `required`, or one of the tools."),
    passed("parallel_tool_calls", SINGLE),
    passed("response_format", "`text`, `json_object` or `json_schema`; the answer is held to the schema."),
    passed("max_completion_tokens", "At most so many as the model was connected for."),
    passed("max_tokens", "The older name of max_completion_tokens."),
    passed("stop", "A text, or a list of texts."),
    *(passed(name, WHERE_TAKEN) for name in SAME),
    passed("stream", "The answer as server-sent events."),
    passed("stream_options", "`include_usage`."),
    passed("user", "The person for whom the agent asks: `user_id` of the hub's envelope. No provider is sent it."),
    passed("prompt_cache_key", CACHE_KEY),
    OF_THE_HUB,
    refused("n", "There is one answer to a request.", 1),
    refused("logprobs", "Probabilities of tokens are not passed on.", False),
    refused("top_logprobs", "Probabilities of tokens are not passed on.", 0),
    refused("modalities", "Answers are texts.", ["text"]),
    refused("audio", "Answers are texts."),
    refused("store", NOT_KEPT, False),
    refused("service_tier", "The provider's usual one is asked for.", "auto", "default"),
    refused("verbosity", "Not passed on."),
    refused("prediction", "Not passed on."),
    refused("moderation", "Not passed on."),
    refused("web_search_options", "Models have no tools but those of the hub."),
    refused("functions", "Use `tools`."),
    refused("function_call", "Use `tool_choice`."),
    warned("metadata", "Kept nowhere.", {}),
    warned("safety_identifier", "Sent to nobody; providers know the hub's key only."),
    warned("prompt_cache_retention", "The provider decides by itself how long it keeps what it has read."),
)
STREAM_OPTIONS = (
    passed("include_usage", "The usage in a last chunk."),
    warned("include_obfuscation", "Chunks are not padded.", False),
)
FINISHES = {"stop": "stop", "length": "length", "tool": "tool_calls", "safety": "content_filter"}
NOT_WHOLE = "length"  # this format has no other word for an answer of which nobody knows that it is whole
PREFIX = "chatcmpl-"  # before the id of the call
DONE = "data: [DONE]\n\n"


class OpenAIChatFormat:
    """The format of ``/v1/chat/completions``."""

    name: ClassVar = "openai-chat"
    parameters: ClassVar = PARAMETERS

    def read(self, body: Any) -> ServedChat:
        findings = Findings()
        given, warnings = read_parameters(body, PARAMETERS, findings)
        reader = ConversationReader(findings)
        arguments: dict[str, Any] = {name: given[name] for name in SAME if name in given}
        arguments["messages"] = reader.read_messages(given.get("messages"))
        arguments |= _read_limits(given, findings) | _read_format(given.get("response_format"), findings)
        names, own, said = read_tools(given.get("tools", []), findings)
        choice = given.get("tool_choice", "auto")
        if choice == "none":
            names, own = [], ()
        elif choice != "auto":
            arguments["tool_choice"] = _read_choice(choice, findings)
        if names:
            arguments["tools"] = names
        if not _read_flag(given, "parallel_tool_calls", findings, usual=True):
            arguments["parallel_calls"] = False
        of_request, envelope = read_hub(given, findings)
        if "prompt_cache_key" in given:
            arguments["cache_hint"] = given["prompt_cache_key"]
        options, ignored = read_parameters(given.get("stream_options", {}), STREAM_OPTIONS, findings, "/stream_options")
        wants_stream = _read_flag(given, "stream", findings)
        user = given.get("user", "")
        if not isinstance(user, str):
            findings.add_wrong("/user", "This is a text.")
        model = read_model(given, findings)
        findings.check()
        return ServedChat(
            model=model,
            arguments=arguments | of_request,
            own_tools=own,
            envelope=envelope | ({"user_id": user} if user else {}),
            wants_stream=wants_stream,
            options=options,
            warnings=(*warnings, *reader.warnings, *said, *ignored),
            pictures=reader.shelf.pictures,
        )

    def write(self, answer: dict[str, Any], about: Answered) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": read_text(answer) or None, "refusal": None}
        message["annotations"] = []
        if calls := write_calls(answer, about):
            message["tool_calls"] = calls
        if "provider_state" in answer:
            message["provider_state"] = answer["provider_state"]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": write_finish(answer)}
        return {
            "id": PREFIX + about.call_id,
            "object": "chat.completion",
            "created": about.created,
            "model": about.model,
            "choices": [choice],
            "usage": write_usage(answer),
            "hub": write_hub(answer, about, about.warnings),
        }

    def open_stream(self, about: Answered, options: Mapping[str, Any]) -> ChatChunks:
        return ChatChunks(about, include_usage=options.get("include_usage") is True)

    def write_problem(self, problem: Problem) -> tuple[int, dict[str, Any]]:
        return find_status(problem), write_problem_object(problem)


def read_model(given: Mapping[str, Any], findings: Findings) -> str:
    model = given.get("model")
    if not isinstance(model, str) or not model:
        findings.add_wrong("/model", "Name a model of the hub, as the list of models has it.")
        return ""
    return model


def read_hub(given: dict[str, Any], findings: Findings) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is taken out of a body of the hub's own: (of the request, of the envelope around it)."""
    hub, _ = read_parameters(given.pop("hub", {}), HUB, findings, "/hub")
    of_request = {name: hub[name] for name in OF_REQUEST if name in hub}
    return of_request, {name: hub[name] for name in OF_ENVELOPE if name in hub}


def _read_flag(given: Mapping[str, Any], name: str, findings: Findings, *, usual: bool = False) -> bool:
    value = given.get(name, usual)
    if not isinstance(value, bool):
        findings.add_wrong(f"/{name}", "This is true or false.")
    return value is True


def _read_limits(given: Mapping[str, Any], findings: Findings) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    named = [given[name] for name in ("max_completion_tokens", "max_tokens") if name in given]
    if named:
        limits["max_tokens"] = named[0]
        if named[-1] != named[0]:
            findings.add_wrong("/max_tokens", "It differs from max_completion_tokens, which is the same.")
    if "stop" in given:
        stop = given["stop"]
        limits["stop"] = [stop] if isinstance(stop, str) else stop
    return limits


def _read_format(wanted: Any, findings: Findings) -> dict[str, Any]:
    match wanted:
        case None | {"type": "text"}:
            return {}
        case {"type": "json_object"}:
            return {"response_format": {"type": "json"}}
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            return {"response_format": {"type": "schema", "json_schema": schema}}
        case {"type": "json_schema"}:
            findings.add_wrong("/response_format/json_schema/schema", "This field is needed.")
        case _:
            findings.add_wrong("/response_format/type", "This is one of text, json_object, json_schema.")
    return {}


def _read_choice(choice: Any, findings: Findings) -> Any:
    match choice:
        case "required":
            return choice
        case {"type": "function", "function": {"name": str() as name}}:
            return {"name": name}
    findings.add_unsupported("/tool_choice", "This is auto, none, required or one of the tools.")
    return None


def read_text(answer: Mapping[str, Any]) -> str:
    """What the model said. Where JSON was asked for it is the value that was read, which may have been mended."""
    if "output" in answer:
        return json.dumps(answer["output"], ensure_ascii=False)
    return str(answer["text"])


def write_calls(answer: Mapping[str, Any], about: Answered) -> list[dict[str, Any]]:
    return [
        {
            "id": call["call_id"],
            "type": "function",
            "function": {"name": about.name_tool(call["name"]), "arguments": write_arguments(call)},
        }
        for call in answer["proposals"]
    ]


def write_arguments(call: Mapping[str, Any]) -> str:
    """Arguments that cannot be used are no JSON either, so that nobody makes the call without them."""
    if call["arguments"] is None:
        return f"(unusable: {call.get('detail') or call.get('problem')})"
    return json.dumps(call["arguments"], ensure_ascii=False)


def write_finish(answer: Mapping[str, Any]) -> str:
    return FINISHES.get(answer["finish_reason"], NOT_WHOLE)


def write_usage(answer: Mapping[str, Any]) -> dict[str, Any]:
    usage = answer["usage"]
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["input_tokens"] + usage["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": usage["cached_tokens"], "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def write_hub(answer: Mapping[str, Any], about: Answered, warnings: Iterable[str]) -> dict[str, Any]:
    """What the hub says beside the answer, which no format has a place for."""
    usage = answer["usage"]
    said = {
        "call_id": about.call_id,
        "answered_by": answer["model"],
        "cost_micros": usage["cost_micros"],
        "price_version": usage["price_version"],
        "counted_by": usage["counted_by"],
        "warnings": list(warnings),
    }
    return said | ({"finish_reason": answer["finish_reason"]} if "finish_reason" in answer else {})


class ChatChunks:
    """A stream of chunks. Texts are passed on as they come; calls are proposed at the end, when they are known to be whole."""

    def __init__(self, about: Answered, *, include_usage: bool) -> None:
        self._about, self._include_usage = about, include_usage
        self._began = self._spoke = False

    def add(self, delta: ChatDelta) -> str:
        if not delta.text:
            return ""
        self._spoke = True
        return self._write_delta({"content": delta.text})

    def end(self, answer: dict[str, Any], warnings: tuple[str, ...] = ()) -> str:
        texts = []
        if not self._spoke and (text := read_text(answer)):
            texts.append(self._write_delta({"content": text}))
        for index, call in enumerate(write_calls(answer, self._about)):
            texts.append(self._write_delta({"tool_calls": [{"index": index, **call}]}))
        last = {} if "provider_state" not in answer else {"provider_state": answer["provider_state"]}
        hub = write_hub(answer, self._about, (*self._about.warnings, *warnings))
        texts.append(self._write_delta(last, write_finish(answer), hub=hub))
        if self._include_usage:
            texts.append(self._write([], usage=write_usage(answer)))
        return "".join([*texts, DONE])

    def fail(self, problem: Problem) -> str:
        return write_data(write_problem_object(problem))

    def _write_delta(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        if not self._began:
            delta = {"role": "assistant", "content": "", "refusal": None} | delta
            self._began = True
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        if self._include_usage:
            more = {"usage": None} | more
        return self._write([choice], **more)

    def _write(self, choices: list[dict[str, Any]], **more: Any) -> str:
        head = {"id": PREFIX + self._about.call_id, "object": "chat.completion.chunk", "created": self._about.created}
        return write_data({**head, "model": self._about.model, "choices": choices, **more})


def write_data(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"
