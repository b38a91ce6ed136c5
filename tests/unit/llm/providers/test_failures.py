"""Failures: is every failure of a provider one problem of the catalogue, and does none of them repeat what the provider said?"""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest
from pydantic_ai import exceptions

from llm.problems import (
    ContextOverflow,
    ModelTimedOut,
    ParameterUnsupported,
    ProviderAnswerUnreadable,
    ProviderKeyRefused,
    ProviderQuotaExhausted,
    ProviderRateLimited,
    ProviderUnavailable,
    SafetyBlocked,
    StreamTruncated,
)
from llm.providers.failures import classify_exception, classify_frame, classify_response

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel.problems import Problem


CANARY = "sk-canary"


def error(message: str = "", **fields: Any) -> dict[str, Any]:
    return {"error": {"message": f"{message} {CANARY}", **fields}}


def google(quota: str, delay: str = "") -> dict[str, Any]:
    details: list[dict[str, Any]] = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}
    ]
    if delay:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    message = "You exceeded your current quota, please check your plan and billing details."
    return error(message, code=429, status="RESOURCE_EXHAUSTED", details=details)


# The bodies are those that providers are known to send, but for what they quote.
RESPONSES: list[tuple[int, Any, type[Problem]]] = [
    (400, error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded"), ContextOverflow),
    (400, error("prompt is too long: 215535 tokens > 200000 maximum", type="invalid_request_error"), ContextOverflow),
    (400, error("input length and `max_tokens` exceed context limit: 1 + 2 > 3"), ContextOverflow),
    (413, error("Request exceeds the maximum size", type="request_too_large"), ContextOverflow),
    (400, error("The input token count (1) exceeds the maximum number of tokens allowed (1)."), ContextOverflow),
    (400, error("the request exceeds the available context size", type="exceed_context_size_error"), ContextOverflow),
    (500, error("the request exceeds the available context size, try increasing it"), ContextOverflow),
    (400, error("Your input exceeds the context window of this model."), ContextOverflow),
    (400, error("The response was filtered", code="content_filter"), SafetyBlocked),
    (400, error("Output blocked by content filtering policy"), SafetyBlocked),
    (429, error("You exceeded your current quota", code="insufficient_quota"), ProviderQuotaExhausted),
    (400, error("Your credit balance is too low to access the API."), ProviderQuotaExhausted),
    (402, error("Insufficient Balance"), ProviderQuotaExhausted),
    (403, error("Your account's billing is not active", code="billing_not_active"), ProviderQuotaExhausted),
    (429, google("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), ProviderQuotaExhausted),
    (429, google("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "34s"), ProviderRateLimited),
    (429, error("Rate limit reached for requests", type="requests"), ProviderRateLimited),
    (429, "", ProviderRateLimited),
    (401, error("Incorrect API key provided: sk-cana***"), ProviderKeyRefused),
    (403, error("denied", type="permission_error"), ProviderKeyRefused),
    (400, error("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT"), ProviderKeyRefused),
    (408, "", ModelTimedOut),
    (504, "<html>", ModelTimedOut),
    (500, error("The server had an error"), ProviderUnavailable),
    (502, "<html>Bad gateway</html>", ProviderUnavailable),
    (503, error("The model is overloaded.", status="UNAVAILABLE"), ProviderUnavailable),
    (529, error("Overloaded", type="overloaded_error"), ProviderUnavailable),
    (404, error("The model `x` does not exist", code="model_not_found"), ProviderAnswerUnreadable),
    (307, "", ProviderAnswerUnreadable),
    (400, error("Unsupported parameter: 'seed'", param="seed"), ParameterUnsupported),
    (400, "<html>", ProviderAnswerUnreadable),
    (418, "", ProviderAnswerUnreadable),
]  # fmt: skip


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(("status", "body", "problem"), RESPONSES)
def test_a_response_means_one_problem_which_repeats_nothing_of_it(
    status: int, body: Any, problem: type[Problem]
) -> None:
    found = classify_response(status, {}, body.encode() if isinstance(body, str) else json.dumps(body).encode())

    assert type(found) is problem
    assert CANARY not in str(found.to_error())


FRAMES: list[tuple[Any, type[Problem]]] = [
    ({"type": "error", **error("Overloaded", type="overloaded_error")}, ProviderUnavailable),
    ({"type": "error", **error(type="api_error")}, ProviderUnavailable),
    ({"type": "error", **error(type="rate_limit_error")}, ProviderRateLimited),
    ({"type": "error", **error("prompt is too long", type="invalid_request_error")}, ContextOverflow),
    (error(code="rate_limit_exceeded"), ProviderRateLimited),
    (error(code="server_error"), ProviderUnavailable),
    (error(code=429), ProviderRateLimited),
    (error(code=502), ProviderUnavailable),
    (error(code=400), ParameterUnsupported),
    (error(type="authentication_error"), ProviderKeyRefused),
    (error(type="timeout_error"), ModelTimedOut),
    ({"error": CANARY}, ProviderUnavailable),
    (None, ProviderUnavailable),
]


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(("frame", "problem"), FRAMES)
def test_an_error_within_a_stream_means_one_problem(frame: Any, problem: type[Problem]) -> None:
    found = classify_frame(frame)

    assert type(found) is problem
    assert CANARY not in str(found.to_error())


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "7"}, "", 7),
        ({"retry-after": "0.2"}, "", 1),
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 2),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, "", 60),
        ({"retry-after": "-3"}, "", 0),
        ({"retry-after": "99999999"}, "", 86_400),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "soon"}, "", None),
        ({}, json.dumps(google("PerMinute", "34.5s")), 35),
        ({}, "", None),
    ],
)
def test_the_problem_says_when_the_provider_wants_to_be_asked_again(
    headers: dict[str, str], body: str, seconds: int | None
) -> None:
    found = classify_response(429, httpx2.Headers(headers), body.encode(), clock=lambda: 40.0)

    assert found.retry_after == seconds


def build_every(module: Any, root: type[BaseException]) -> Iterator[BaseException]:
    """An instance of each exception that a library has, whatever its constructor wants."""
    for kind in list(vars(module).values()):
        if inspect.isclass(kind) and issubclass(kind, root) and not issubclass(kind, BaseExceptionGroup):
            maker = OSError if issubclass(kind, OSError) else kind
            yield maker.__new__(kind)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("failure", "problem"),
    [
        (httpx2.ConnectError("x"), ProviderUnavailable),
        (httpx2.ConnectTimeout("x"), ModelTimedOut),
        (httpx2.ReadTimeout("x"), ModelTimedOut),
        (httpx2.ReadError("x"), ProviderUnavailable),
        (httpx2.RemoteProtocolError("x"), StreamTruncated),
        (ConnectionResetError(), ProviderUnavailable),
        (TimeoutError(), ModelTimedOut),
        (exceptions.UnexpectedModelBehavior("x"), ProviderAnswerUnreadable),
        (exceptions.ModelHTTPError(500, "m"), ProviderAnswerUnreadable),
        (AttributeError("x"), ProviderAnswerUnreadable),
        (json.JSONDecodeError("x", "", 0), ProviderAnswerUnreadable),
        (RecursionError(), ProviderAnswerUnreadable),
        (ExceptionGroup("x", [httpx2.ReadTimeout("x")]), ModelTimedOut),
        (openai.OpenAIError(), ProviderAnswerUnreadable),
    ],
)
def test_an_exception_means_one_problem(failure: BaseException, problem: type[Problem]) -> None:
    assert type(classify_exception(failure)) is problem


@pytest.mark.req("LLM-9")
def test_every_exception_of_the_libraries_means_a_problem() -> None:
    libraries = ((httpx2, httpx2.HTTPError), (openai, openai.OpenAIError), (anthropic, anthropic.AnthropicError))
    failures = [each for module, root in libraries for each in build_every(module, root)]
    failures += build_every(exceptions, Exception)

    assert len(failures) > 60
    assert all(type(classify_exception(each)).reason for each in failures)


@pytest.mark.req("LLM-9")
def test_a_problem_that_a_library_wrapped_is_what_counts() -> None:
    wrapped, within = RuntimeError(CANARY), ValueError()
    wrapped.__cause__, within.__context__ = within, ContextOverflow()

    assert type(classify_exception(wrapped)) is ContextOverflow
