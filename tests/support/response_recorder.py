"""Response recorder: what did the API answer in a test, and did anything go wrong that nobody had thought of?"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from django.test.client import ClientHandler
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator

from kernel.http.exception_handlers import PROBLEM_JSON
from kernel.observability.unmapped_errors import unmapped
from kernel.problems import Internal

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterator


@dataclass
class Answered:
    """Every problem that a client of Django's got as JSON: (method, route, status, body); and whatever was logged with its stack."""

    problems: list[tuple[str, str, int, dict[str, Any]]] = field(default_factory=list)
    stacks: list[str] = field(default_factory=list)

    def logged(self, record: logging.LogRecord, **_: object) -> None:
        assert record.exc_info is not None
        self.stacks.append(f"{record.name}: {record.getMessage()}: {record.exc_info[1]!r}")

    def note(self, response: Any) -> None:
        if response.headers.get("Content-Type") == PROBLEM_JSON and response.content:  # a HEAD has none
            request = response.wsgi_request if hasattr(response, "wsgi_request") else None
            match = getattr(request, "resolver_match", None)
            method = request.method if request is not None else ""
            self.problems.append(
                (method, match.route if match else "", response.status_code, json.loads(response.content))
            )

    def nameless(self) -> list[str]:
        """What a caller or the log got without a name for what went wrong."""
        reasons = [
            f"{method} {route}"
            for method, route, _, body in self.problems
            if body["error"]["reason"] == Internal.reason
        ]
        return [*reasons, *self.stacks]

    def undocumented(self) -> set[tuple[str, str, int]]:
        """What the OpenAPI document does not say that the operation may answer. It does not speak of other methods."""
        known = documented()
        said = {(method, path_of(route), status) for method, route, status, _ in self.problems}
        return {each for each in said if each[:2] in known and each[2] not in known[each[:2]]}


def path_of(route: str) -> str:
    """A route of Django's as the document writes it."""
    return "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route)


@cache
def documented() -> dict[tuple[str, str], set[int]]:
    """(method, path) to the statuses that it may answer with."""
    with GENERATOR_STATS.silence():
        document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return {
        (method.upper(), path): {int(status) for status in operation["responses"]}
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


@contextmanager
def answered() -> Iterator[Answered]:
    found = Answered()
    original = ClientHandler.__call__

    def watched(self: ClientHandler, environ: Any) -> Any:
        response = original(self, environ)
        found.note(response)
        return response

    unmapped.connect(found.logged)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ClientHandler, "__call__", watched)
        yield found
    unmapped.disconnect(found.logged)
