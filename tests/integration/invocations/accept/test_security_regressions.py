"""Security regressions: what an earlier version let through: revocations while a call waits, schemas that multiply, bodies
without end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from access import services as access
from access.consents import services as consent_services
from kernel.http.body_limits import MAX_REQUEST_BYTES, limit_bodies
from kernel.http.parsers import read_json
from kernel.problems import Malformed
from registry.versions import services as registry
from tests.support.calls import PAIR, kinds_of, row_of
from tests.support.manifests import manifest
from unitools.checks import MAX_EXPANSIONS, check_manifest, count_expansions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox


def pause(operator: Person, given: Any) -> None:
    registry.pause_tool(name="sample.tools.echo", reason="Stop it.", by=operator.by)


def revoke(operator: Person, given: Any) -> None:
    access.revoke_grant(grant_id=given.pk, reason="No longer.", by=operator.by)


@pytest.mark.django_db
@pytest.mark.parametrize(("take_back", "reason"), [(pause, "TOOL.PAUSED"), (revoke, "AUTH.NO_GRANT")])
def test_what_is_taken_back_while_a_call_waits_stops_the_call(
    caller: Caller,
    enable: Callable[..., Any],
    grant: Callable[..., Any],
    operator: Person,
    bell: Bell,
    sandbox: ScriptedSandbox,
    take_back: Callable[..., None],
    reason: str,
) -> None:
    enable("echo")
    given = grant()
    answer = caller.invoke("sample.tools.echo", {"text": "x"}, headers={"Prefer": "respond-async"})
    assert answer.status_code == 202

    take_back(operator, given)
    bell.deliver()

    row = row_of(answer)
    assert (row.state, row.reason) == ("cancelled", reason)
    assert sandbox.calls == []
    assert kinds_of(row) == PAIR


@pytest.mark.django_db
@pytest.mark.req("TOOLS-19")
def test_a_consent_that_is_revoked_while_the_call_waits_stops_the_call(
    caller: Caller,
    enable: Callable[..., Any],
    grant: Callable[..., Any],
    operator: Person,
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    enable("write", side_effect="Write", idempotency="keyed")
    grant()
    consent = consent_services.request_consent(
        tool="sample.tools.write", versions="^1", purpose="A test.", validity_s=3600, by=caller.by
    )
    consent_services.approve_consent(consent_id=consent.pk, reason="Fine.", by=operator.by)
    answer = caller.invoke("sample.tools.write", {"text": "x"}, headers={"Prefer": "respond-async"})

    consent_services.revoke_consent(consent_id=consent.pk, reason="Not any more.", by=operator.by)
    bell.deliver()

    assert (row_of(answer).state, row_of(answer).reason) == ("cancelled", "POLICY.CONSENT_REQUIRED")
    assert sandbox.calls == []


def doubling(levels: int) -> dict[str, Any]:
    """Each definition refers twice to the next."""
    definitions: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "object"}
    return {"type": "object", "$ref": "#/$defs/d0", "$defs": definitions}


def test_definitions_that_multiply_are_refused_and_said() -> None:
    found = check_manifest(manifest("echo", input_schema=doubling(40)))

    assert [(finding.pointer, finding.rule) for finding in found] == [("/input_schema", "schema.expansion")]


@pytest.mark.parametrize(
    "schema",
    [
        doubling(5),
        {"type": "object", "properties": {"child": {"$ref": "#"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/b"}}}, "b": {"$ref": "#/$defs/a"}}},
        {"$ref": "#/$defs/nothing"},
    ],
)
def test_ordinary_and_recursive_schemas_stay_small(schema: dict[str, Any]) -> None:
    assert count_expansions(schema) < MAX_EXPANSIONS


def test_a_nul_is_refused_and_a_text_about_one_is_not() -> None:
    assert read_json(rb'{"text": "C writes \\u0000 for it"}') == {"text": r"C writes \u0000 for it"}
    with pytest.raises(Malformed, match="NUL"):
        read_json(rb'{"text": ["a", {"b": "\u0000"}]}')


def ask(headers: list[tuple[bytes, bytes]], pieces: list[bytes]) -> tuple[list[Any], list[Any]]:
    """What a limited application received, and what was sent."""
    received: list[Any] = []
    sent: list[Any] = []
    waiting = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]

    async def application(scope: Any, receive: Any, send: Any) -> None:
        while waiting and (message := await receive())["type"] == "http.request":
            received.append(len(message["body"]))
        received.append("end")

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(limit_bodies(application)({"type": "http", "path": "/", "headers": headers}, receive, send))  # type: ignore[arg-type]
    return received, sent


def test_a_body_that_is_announced_as_too_large_is_answered_at_the_door() -> None:
    received, sent = ask([(b"content-length", str(MAX_REQUEST_BYTES + 1).encode())], [b"x"])

    assert received == []
    assert sent[0]["status"] == 413
    assert b"REQUEST.TOO_LARGE" in sent[1]["body"]


def test_a_body_that_turns_out_too_large_is_cut_off() -> None:
    piece = b"x" * (MAX_REQUEST_BYTES // 2)

    received, _ = ask([], [piece, piece, b"x", b"never read"])

    assert received == [len(piece), len(piece), "end"]
