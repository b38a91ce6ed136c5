"""Shapes: how problems read at the addresses of served formats, wherever in the hub they come about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from invocations.model_calls.served.gemini.verbs import VERBS
from invocations.model_calls.served.key_authentication import GOOGLES
from kernel.http.exception_handlers import SERVED_PREFIXES
from kernel.http.problem_shapes import add_problem_shape
from llm.served.anthropic_messages import AnthropicMessages
from llm.served.gemini_problems import write_google_problem
from llm.served.openai_chat import OpenAIChatFormat
from llm.served.problem_objects import build_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.http.problem_shapes import ProblemShape
    from kernel.problems import Problem


def build_shape(write: Callable[[Problem], tuple[int, dict[str, Any]]]) -> ProblemShape:
    """The shape of a format: its own status and body, and the hub's headers."""

    def write_shape(problem: Problem) -> tuple[int, dict[str, Any], dict[str, str]]:
        status, body = write(problem)
        return status, body, build_headers(problem)

    return write_shape


# Formats with an error object of their own have a longer beginning.
STABLE, BETA = SERVED_PREFIXES
add_problem_shape(STABLE, build_shape(OpenAIChatFormat().write_problem))
add_problem_shape(f"{STABLE}messages", build_shape(AnthropicMessages().write_problem))
add_problem_shape(BETA, build_shape(write_google_problem))
add_problem_shape(f"{STABLE}models/", build_shape(write_google_problem), endings=[f":{verb}" for verb in VERBS])
add_problem_shape(f"{STABLE}models", build_shape(write_google_problem), header=GOOGLES)
