"""Service call: how an operation of a service answers one call.

Nothing of an author runs here. The operation says where each argument goes; the request goes to the gate, in plain http through the
box's way out, and the gate holds it against the same operation, adds the credentials and speaks TLS. What comes back is a
stranger's: it is read here, where nothing is that could be taken, up to limits.
"""

from __future__ import annotations

import json
from functools import partial
from urllib.parse import urlsplit

from sandbox.gate_requests import CutOff, ask_gate
from unitools import runtime
from unitools.openapi.argument_values import ArgumentRefused
from unitools.openapi.request_bodies import RequestFile
from unitools.openapi.requests import ServiceRequest, build_request
from unitools.openapi.service_answers import AnswerUnreadable, read_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from unitools.openapi.service_answers import ServiceAnswer

HTTPS_PORT = 443
_MAX_BODY_CHARS = 16 * 1024  # of an answer that is told as an error
_METHODS_WITH_BODY = ("POST", "PUT", "PATCH")
# What a status says, in the words that a tool has; all other 4xx are UPSTREAM_ERROR, and the hub knows the status by itself.
_REFUSALS: dict[int, type[runtime.DomainError]] = {
    400: runtime.InvalidArgument,
    404: runtime.NotFound,
    409: runtime.Conflict,
    410: runtime.NotFound,
    412: runtime.Conflict,
    422: runtime.InvalidArgument,
}


class ServiceOperation:
    """``operation``: the manifest's ``implementation.operation``."""

    def __init__(self, operation: dict[str, Any]) -> None:
        self._operation = operation
        server = urlsplit(operation["server"])
        self._authority = f"{server.hostname}:{server.port or HTTPS_PORT}"
        self._base = server.path.rstrip("/")

    def find_entry(self, head: dict[str, Any]) -> Callable[..., Any]:
        files = {
            said["id"]: RequestFile(said["name"], said["media_type"], content)
            for said, content in head.get("sent_files", ())
        }
        limits = head["limits"]
        return partial(self.call, files, limits["artifact_bytes"] if limits["artifacts"] else 0)

    def call(self, files: dict[str, RequestFile], most_file_bytes: int, /, **arguments: Any) -> dict[str, Any]:
        """The result of the call: ``{status, body, links?}``. :class:`unitools.runtime.DomainError` for what is no success. ``files``:
        that the arguments name, by their ids; ``most_file_bytes``: of an answer that becomes an artifact; 0: none does."""
        try:
            key = runtime.current_call().idempotency_key or ""
            request = build_request(self._operation, arguments, idempotency_key=key, files=files)
        except ArgumentRefused as refused:
            raise runtime.InvalidArgument(str(refused)) from None
        status, headers, body = self._ask(request)
        try:
            answer = read_answer(self._operation, status, headers, body, most_file_bytes=most_file_bytes)
        except AnswerUnreadable as error:
            raise runtime.UpstreamError(str(error), status=status) from None
        if answer.outcome == "success":
            file = answer.file
            left = runtime.artifact(file.name, file.content, media_type=file.media_type) if file else None
            return answer.to_result(left)
        raise _describe(answer)

    def _ask(self, request: ServiceRequest) -> tuple[int, list[tuple[str, str]], bytes]:
        answer = ask_gate(self._to_bytes(request))
        try:
            return answer.status, answer.headers, b"".join(answer.read_pieces())
        except CutOff:
            raise runtime.UpstreamError("The service hung up before its answer was whole.") from None
        finally:
            answer.close()

    def _to_bytes(self, request: ServiceRequest) -> bytes:
        body = request.body or b""
        lines = [f"{request.method} http://{self._authority}{self._base}{request.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in request.headers]
        if body or request.method in _METHODS_WITH_BODY:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode() + body


def _describe(answer: ServiceAnswer) -> runtime.DomainError:
    """What the service says in place of a result, with as much of its body as an error has room for."""
    details: dict[str, Any] = {"status": answer.status}
    if answer.retry_after_s is not None:
        details["retry_after_s"] = answer.retry_after_s
    if answer.body is not None:
        text = json.dumps(answer.body, ensure_ascii=False)
        is_cut = len(text) > _MAX_BODY_CHARS
        details |= {"body": text[:_MAX_BODY_CHARS], "body_cut": True} if is_cut else {"body": answer.body}
    match answer.outcome:
        case "redirected":
            said = f"The service answered {answer.status} and pointed to another address, which is not followed."
        case "refused":
            said = f"The service answered {answer.status}."
        case _:
            said = f"The service failed: it answered {answer.status}."
    return _REFUSALS.get(answer.status, runtime.UpstreamError)(said, **details)
