"""Failures: what a provider, its library or the line to it does wrong, each as one problem of the catalogue.

The body decides where a status says too little: a 429 may be a busy minute or an empty account. Nothing of the body is repeated in the
problem, for it may hold the prompt or pieces of the key.
"""

from __future__ import annotations

import json
import math
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from kernel.problems import Problem
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MAX_ERROR_BYTES = 64 * 1024  # of a body that is looked at
MAX_RETRY_AFTER_S = 24 * 60 * 60

REDIRECT = "The provider's address sends on to another one, which is not followed."
NOT_THERE = "There is nothing at the provider's address, or no model of this name."
REQUEST_REFUSED = "The provider refused the request: something in it is not what this model takes."
NOT_JSON = "The provider answered with something that is not JSON."

# Each provider's own words, in lower case. They are looked for in an error's code, type and message only.
OVERFLOW = (
    "context_length_exceeded",  # OpenAI and what is like it
    "maximum context length",  # OpenAI, vLLM, Mistral
    "context window",  # OpenAI Responses
    "prompt is too long",  # Anthropic
    "exceed context limit",  # Anthropic
    "request_too_large",  # Anthropic
    "input token count",  # Gemini
    "exceeds the available context size",  # llama.cpp
    "exceed_context_size",  # llama.cpp
    "exceeds the context length",  # Ollama
    "too many tokens",  # Cohere
    "range of input length",  # Qwen
)
SAFETY = ("content_filter", "content_policy", "content filtering policy", "content management policy", "safety")
QUOTA = (
    "insufficient_quota",  # OpenAI
    "exceeded your current quota",  # OpenAI
    "billing",  # OpenAI, Anthropic
    "credit balance",  # Anthropic
    "insufficient balance",  # DeepSeek
    "insufficient credits",  # OpenRouter
    "arrearage",  # Qwen
)
KEY = ("authentication_error", "invalid_api_key", "api key not valid", "api_key_invalid", "permission_error")
RATE = ("rate_limit", "resource_exhausted")
BUSY = ("overloaded", "server_error", "api_error", "unavailable", "internal")
LATE = ("timeout_error", "deadline_exceeded")
# Statuses that say something of the one request, whatever the body looks like that comes with them.
OF_REQUEST = frozenset({400, 406, 411, 412, 414, 415, 416, 417, 422, 431, 451})


def classify_response(
    status: int, headers: Mapping[str, str], body: bytes, *, clock: Callable[[], float] = time.time
) -> Problem:
    """What an answer with a status other than 2xx means. ``body``: its beginning, at most MAX_ERROR_BYTES."""
    error = ErrorBody(body)
    problem = _find_by_status(status, error)
    wait = read_retry_after(headers, error, clock)
    if wait is not None:
        problem = type(problem)(problem.detail, retry_after_s=wait)
    if isinstance(problem, ProviderAnswerUnreadable):
        problem.is_refusal, problem.is_of_request = True, status in OF_REQUEST
    return problem


def classify_frame(document: object) -> Problem:
    """What an error means that comes where an answer was to be, in a stream or with the status 200."""
    error = ErrorBody(document)
    status = error.find_status()
    problem = _find_by_words(error) or (_find_by_status(status, error) if status else ProviderUnavailable())
    wait = error.find_delay()
    return type(problem)(problem.detail, retry_after_s=wait) if wait is not None else problem


def classify_exception(failure: BaseException) -> Problem:
    """What an exception means that a library or the line raised. A problem that it hides is what counts.

    Libraries are told by the names of their classes, so that none of them is imported for it.
    """
    chain = list(_walk_causes(failure))
    for each in chain:
        if isinstance(each, Problem):
            return each
    names = {kind.__name__ for each in chain for kind in type(each).__mro__}
    for problem, kinds in BY_CLASS:
        if names & kinds:
            found = problem()
            if isinstance(found, ModelTimedOut):
                found.was_sent = not names & UNSENT
            return found
    return ProviderAnswerUnreadable("The provider's answer could not be read.")


# Of httpx2 and httpcore2, pydantic-ai, the SDKs and Python; the first that fits.
BY_CLASS: tuple[tuple[type[Problem], frozenset[str]], ...] = (
    (ModelTimedOut, frozenset({"TimeoutException", "TimeoutError", "ModelTimeoutError", "APITimeoutError"})),
    (ContextOverflow, frozenset({"ModelContextWindowExceededError"})),
    (SafetyBlocked, frozenset({"ContentFilterError"})),
    (ProviderQuotaExhausted, frozenset({"ModelQuotaExceededError"})),
    (ProviderRateLimited, frozenset({"ModelRateLimitError", "RateLimitError"})),
    (ProviderKeyRefused, frozenset({"ModelAuthenticationError", "AuthenticationError", "PermissionDeniedError"})),
    (StreamTruncated, frozenset({"IncompleteToolCall", "RemoteProtocolError"})),
    (
        ProviderUnavailable,
        frozenset({"TransportError", "ModelConnectionError", "ModelServerError", "APIConnectionError", "OSError"}),
    ),
)


UNSENT = frozenset({"ConnectTimeout", "PoolTimeout"})  # the time was over before there was a connection


class ErrorBody:
    """The words of an error: its codes, types and messages, and not what it quotes besides."""

    def __init__(self, body: bytes | object) -> None:
        self.document = _load(body[:MAX_ERROR_BYTES]) if isinstance(body, bytes) else body
        self.words = " ".join(_find_words(self.document)).lower()
        self.places = " ".join(_find_words(self.document, ("quotaId", "quotaMetric"), depth=6)).lower()

    def has(self, words: tuple[str, ...]) -> bool:
        return any(word in self.words for word in words)

    @property
    def is_quota(self) -> bool:
        """Gemini says "quota" for a busy minute as for an empty account; its quota's own name tells them apart."""
        if self.places:
            return "perday" in self.places and "perminute" not in self.places
        return self.has(QUOTA)

    def find_status(self) -> int:
        """The status that some say inside of the error."""
        error = self.document.get("error") if isinstance(self.document, dict) else None
        code = error.get("code") if isinstance(error, dict) else None
        return int(code) if isinstance(code, (int, str)) and str(code).isdigit() and 400 <= int(code) <= 599 else 0

    def find_delay(self) -> int | None:
        """Gemini's own Retry-After."""
        for text in _find_words(self.document, ("retryDelay",), depth=6):
            return _read_seconds(text.removesuffix("s"))
        return None


def _load(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _find_words(
    value: object, names: tuple[str, ...] = ("code", "type", "status", "message", "reason", "error"), depth: int = 4
) -> Iterator[str]:
    if depth == 0:
        return
    if isinstance(value, list):
        for each in value[:20]:
            yield from _find_words(each, names, depth - 1)
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, (dict, list)):
                yield from _find_words(each, names, depth - 1)
            elif name in names and isinstance(each, str):
                yield each


def _find_by_status(status: int, error: ErrorBody) -> Problem:
    if status == 402:
        return ProviderQuotaExhausted()
    if status in {401, 403} and not error.is_quota:
        return ProviderKeyRefused()
    if status == 429:
        return ProviderQuotaExhausted() if error.is_quota else ProviderRateLimited()
    if status in {408, 504}:
        return ModelTimedOut()
    if status >= 500:
        return ContextOverflow() if error.has(OVERFLOW) else ProviderUnavailable()
    if status == 413:
        return ContextOverflow()
    if found := _find_by_words(error):
        return found
    if 300 <= status < 400:
        return ProviderAnswerUnreadable(REDIRECT)
    if status in {404, 405, 410}:
        return ProviderAnswerUnreadable(NOT_THERE)
    if status in {409, 425}:
        return ProviderUnavailable()
    if status in {400, 415, 422} and error.document is not None:
        return ParameterUnsupported(REQUEST_REFUSED)
    return ProviderAnswerUnreadable()


def _find_by_words(error: ErrorBody) -> Problem | None:
    if error.has(OVERFLOW):
        return ContextOverflow()
    if error.is_quota:
        return ProviderQuotaExhausted()
    for problem, words in (
        (SafetyBlocked, SAFETY),
        (ProviderKeyRefused, KEY),
        (ProviderRateLimited, RATE),
        (ModelTimedOut, LATE),
        (ProviderUnavailable, BUSY),
    ):
        if error.has(words):
            return problem()
    return None


def read_retry_after(headers: Mapping[str, str], error: ErrorBody, clock: Callable[[], float]) -> int | None:
    """The seconds after which a provider wants to be asked again, rounded up. ``headers`` are found in any case."""
    if (milliseconds := _read_seconds(headers.get("retry-after-ms", ""), 1000)) is not None:
        return milliseconds
    text = headers.get("retry-after", "")
    if (seconds := _read_seconds(text)) is not None:
        return seconds
    try:
        return _bound(parsedate_to_datetime(text).timestamp() - clock())
    except ValueError:
        return error.find_delay()


def _read_seconds(text: str, per_second: int = 1) -> int | None:
    try:
        number = float(text) / per_second
    except ValueError:
        return None
    return _bound(number) if math.isfinite(number) else None


def _bound(seconds: float) -> int:
    return max(0, min(MAX_RETRY_AFTER_S, math.ceil(seconds)))


def _walk_causes(failure: BaseException) -> Iterator[BaseException]:
    """The exception, and those that it was raised for, each once; those of a group as well."""
    seen: set[int] = set()
    waiting: list[Any] = [failure]
    while waiting:
        each = waiting.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [*getattr(each, "exceptions", ()), each.__cause__, each.__context__]
