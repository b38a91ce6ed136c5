"""Files of services in a hub: who may send which, what is kept of an answer that is one, and what the facts say of both."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from access.grants.services import give_grant
from evidence.kinds import Kind
from evidence.models import Fact
from invocations.artifacts.models import Artifact
from invocations.files.services import remove_file
from invocations.models import Invocation
from invocations.run import sent_files
from kernel.ids import encode
from kernel.principal import Principal
from tests.conftest import make_caller
from tests.egress.services import answer_with
from tests.egress.shop import NOTES, PDF, TOKEN, TOOL, document_of, end_of, sending
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.evidence_logs import check_log, seal_everything, signing_with
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from invocations.models import StoredFile
    from registry.models import ToolVersion
    from tests.conftest import Caller, Person
    from tests.egress.recorded_boxes import RecordedBoxes
    from tests.egress.services import Service

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shop_boxes")]


def facts_of(kind: Kind) -> list[dict[str, Any]]:
    return [json.loads(bytes(each.leaf)) for each in Fact.objects.filter(kind=kind).order_by("id")]


@pytest.mark.req("BRING-1", "TOOLS-16")
def test_a_stored_file_is_sent_and_the_artifact_that_comes_back_is_sent_on(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service, notes: StoredFile
) -> None:
    service.answers = [
        answer_with(PDF, content_type="application/pdf"),
        answer_with(b'{"ok":true}', content_type="application/json"),
    ]
    bring_operation(sending(service.port))

    first = caller.invoke(TOOL, {"item": "7", "sheets": [notes.wire_id], "about": {"title": "June"}})

    assert first.status_code == 200, first.json()
    digest = "sha256:" + hashlib.sha256(PDF).hexdigest()
    assert first.json()["data"] == {
        "status": 200,
        "body": {"artifact": "answer.pdf", "media_type": "application/pdf", "bytes": len(PDF), "digest": digest},
    }
    [left] = first.json()["call"]["artifacts"]
    assert (left["media_type"], left["bytes"], left["digest"]) == ("application/pdf", len(PDF), digest)
    assert caller.get(f"/artifacts/{left['id']}").content == PDF
    heard = service.requests()[0]
    assert b'name="sheets"; filename="june.csv"\r\nContent-Type: text/csv\r\n\r\n' + NOTES in heard
    assert b'name="about"\r\nContent-Type: application/json\r\n\r\n{"title":"June"}\r\n' in heard

    second = caller.invoke(TOOL, {"item": "7", "sheets": [left["id"], notes.wire_id]})

    assert second.json()["data"] == {"status": 200, "body": {"ok": True}}
    assert b'filename="answer.pdf"\r\nContent-Type: application/pdf\r\n\r\n' + PDF in service.requests(2)[1]


@pytest.mark.req("BRING-1", "TOOLS-16")
def test_the_facts_say_how_much_of_which_kind_was_sent_and_answered(
    bring_operation: Callable[..., ToolVersion], caller: Caller, operator: Person, service: Service, notes: StoredFile
) -> None:
    service.answers = [answer_with(PDF, content_type="application/pdf")]
    bring_operation(sending(service.port))

    row = row_of(caller.invoke(TOOL, {"item": "7", "sheets": [notes.wire_id]}))

    end = end_of(row)
    sent = end["service"]["sent_files"]
    assert (sent["count"], sent["bytes"], sent["types"]) == (1, len(NOTES), ["text"])
    assert sent["hash"].startswith("sha256:")
    assert end["service"]["bytes_out"] == len(service.requests()[0])
    assert end["service"]["bytes_in"] == len(PDF)
    assert (end["artifacts"]["count"], end["artifacts"]["bytes"], end["artifacts"]["types"]) == (
        1,
        len(PDF),
        ["application"],
    )
    assert "june" not in json.dumps(end)
    page = operator.client().get(reverse("invocation", args=[row.pk])).content.decode()
    assert f"1 · {len(NOTES)} B · text" in " ".join(page.split())
    assert kinds_of(row) == [PAIR[0], "file.read", PAIR[1]]
    [read] = [each for each in facts_of(Kind.FILE_READ) if each["subject"] == notes.wire_id]
    assert read["data"] == {"content": notes.fingerprint}
    assert caller.by.key_id is not None
    assert (read["actor"]["id"], read["actor"]["key"]) == (caller.by.id, encode("key", caller.by.key_id))
    assert read["invocation"] == row.wire_id
    onward = row_of(caller.invoke(TOOL, {"item": "7", "sheets": [Artifact.objects.get().wire_id]}))
    [by_service] = facts_of(Kind.ARTIFACT_READ)
    assert (by_service["data"]["via"], by_service["invocation"]) == ("service", onward.wire_id)
    with signing_with():
        seal_everything()
        assert check_log(row.tenant_id) > 0


@pytest.mark.req("BRING-1", "SVC-6")
def test_who_may_not_read_a_file_sends_none(
    bring_operation: Callable[..., ToolVersion],
    caller: Caller,
    operator: Person,
    tenant: Tenant,
    service: Service,
    notes: StoredFile,
) -> None:
    service.answers = [answer_with(PDF, content_type="application/pdf")]
    bring_operation(sending(service.port))
    left = caller.invoke(TOOL, {"item": "7"}).json()["call"]["artifacts"][0]["id"]
    nobody = Principal.system("test", tenant_id=tenant.pk)
    few, other = make_caller(nobody, "few", scopes=("invocations:create",)), make_caller(nobody, "other")
    for each in (few, other):
        give_grant(agent_id=each.agent.pk, tools="service.*", reason="for a test", by=operator.by)

    assert_problem(few.invoke(TOOL, {"item": "7", "sheets": [notes.wire_id]}), 403, "AUTH.FORBIDDEN")
    assert_problem(few.invoke(TOOL, {"item": "7", "sheets": [left]}), 403, "AUTH.FORBIDDEN")
    assert_problem(other.invoke(TOOL, {"item": "7", "sheets": [left]}), 404, "ARTIFACT.UNKNOWN")
    unknown = "fil_00000000000000000000000000"
    assert_problem(caller.invoke(TOOL, {"item": "7", "sheets": [unknown]}), 404, "FILE.UNKNOWN")
    assert_problem(caller.invoke(TOOL, {"item": "7", "sheets": ["june.csv"]}), 422, "SCHEMA.VALIDATION_FAILED")
    many = assert_problem(
        caller.invoke(
            TOOL, {"item": "7", "sheets": [f"fil_0000000000000000000000000{each}" for each in "0123456789abcdefghjkm"]}
        ),
        422,
        "SCHEMA.VALIDATION_FAILED",
    )
    assert "at most 20 files" in many["error"]["message"]
    assert len(service.heard) == 1
    body = {"request_id": "test-request-2", "actor": {"type": "agent", "id": caller.agent.name}}
    asked = caller.post(f"/tools/{TOOL}/preflight", body | {"arguments": {"item": "7", "sheets": [unknown]}})
    assert "FILE.UNKNOWN" in asked.content.decode()


@pytest.mark.req("BRING-1")
def test_a_call_that_would_wait_for_a_person_is_refused_for_its_files_first(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service, notes: StoredFile
) -> None:
    bring_operation(sending(service.port) | {"side_effect": "Write"})
    asking: dict[str, Any] = {"on_consent": "hold", "purpose": "to send it", "idempotency_key": "k"}

    missing = caller.invoke(TOOL, {"item": "7", "sheets": ["fil_00000000000000000000000000"]}, **asking)
    held = caller.invoke(TOOL, {"item": "7", "sheets": [notes.wire_id]}, **asking | {"idempotency_key": "l"})

    assert_problem(missing, 404, "FILE.UNKNOWN")
    assert held.status_code == 202, held.json()
    assert service.connections == 0


@pytest.mark.req("BRING-1")
def test_files_that_are_too_large_together_are_refused_before_they_are_read(
    bring_operation: Callable[..., ToolVersion],
    caller: Caller,
    service: Service,
    notes: StoredFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bring_operation(sending(service.port))
    monkeypatch.setattr(sent_files, "MAX_BYTES", len(NOTES) - 1)

    said = assert_problem(caller.invoke(TOOL, {"item": "7", "sheets": [notes.wire_id]}), 413, "REQUEST.TOO_LARGE")

    assert said["error"]["details"] == {"max_bytes": len(NOTES) - 1}
    assert facts_of(Kind.FILE_READ) == []
    assert service.connections == 0


@pytest.mark.req("BRING-1")
def test_a_file_that_is_gone_when_the_call_runs_is_told_and_nothing_is_sent(
    bring_operation: Callable[..., ToolVersion],
    caller: Caller,
    operator: Person,
    service: Service,
    notes: StoredFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bring_operation(sending(service.port))
    load = sent_files.list_sent_ids

    def remove_before(manifest: Any, arguments: Any) -> list[str]:
        if Invocation.objects.filter(tool=TOOL).exists():  # it was accepted
            remove_file(path="/data/reports/june.csv", by=operator.by)
        return load(manifest, arguments)

    monkeypatch.setattr(sent_files, "list_sent_ids", remove_before)

    answer = caller.invoke(TOOL, {"item": "7", "sheets": [notes.wire_id]})

    assert_problem(answer, 404, "FILE.UNKNOWN")
    assert kinds_of(row_of(answer)) == PAIR
    assert service.connections == 0


@pytest.mark.req("BRING-1")
def test_a_file_that_is_larger_than_may_be_left_fails_the_call_and_keeps_nothing(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    service.answers = [answer_with(bytes(1_100_000), content_type="application/pdf")]
    bring_operation(sending(service.port))

    said = assert_problem(caller.invoke(TOOL, {"item": "7"}), 502, "SERVICE.ANSWER_UNUSABLE")

    assert "more than 1,048,576 bytes" in said["error"]["message"]
    assert not Artifact.objects.exists()


@pytest.mark.req("BRING-1", "TOOLS-16")
def test_what_was_sent_is_said_of_a_call_whose_answer_found_no_room(
    bring_operation: Callable[..., ToolVersion],
    caller: Caller,
    service: Service,
    notes: StoredFile,
    settings: Any,
) -> None:
    service.answers = [answer_with(PDF, content_type="application/pdf")]
    bring_operation(sending(service.port))
    settings.TOOLHUB_FILES_MAX_MB = 0

    answer = caller.invoke(TOOL, {"item": "7", "sheets": [notes.wire_id]})

    assert_problem(answer, 409, "ARTIFACT.NO_ROOM")
    assert NOTES in service.requests()[0]
    assert end_of(row_of(answer))["service"]["sent_files"]["bytes"] == len(NOTES)


@pytest.mark.req("BRING-1", "SVC-6")
def test_a_file_is_looked_through_as_every_result_is(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    """What is masked is what is kept, and the result speaks of that; what cannot be looked into is withheld; a secret never passes."""
    rows = b"name,mail\r\n" + b"x,jane@example.com\r\n" * 5_000
    service.answers = [
        answer_with(rows, content_type="text/csv"),
        answer_with(PDF, content_type="application/pdf"),
        answer_with(PDF + TOKEN.encode(), content_type="application/pdf"),
    ]
    bring_operation(sending(service.port))
    masks = {"id": "m", "effect": "oblige", "when": {}, "obligations": [{"action": "redact", "detector": "email"}]}
    put_in_force(permit(), masks)

    masked, withheld, leaked = (caller.invoke(TOOL, {"item": "7"}) for _ in range(3))

    body = masked.json()["data"]["body"]
    kept = caller.get(f"/artifacts/{masked.json()['call']['artifacts'][0]['id']}").content
    assert b"jane@example.com" not in kept
    assert (
        body["digest"] == "sha256:" + hashlib.sha256(kept).hexdigest() != "sha256:" + hashlib.sha256(rows).hexdigest()
    )
    assert body["bytes"] == len(kept)
    assert_problem(withheld, 500, "POLICY.OBLIGATION_FAILED")
    assert_problem(leaked, 502, "SANDBOX.SECRET_LEAK")
    assert Artifact.objects.count() == 1


@pytest.mark.req("BRING-1", "SVC-6")
def test_a_token_of_a_body_is_added_by_the_gate_and_is_in_no_box(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service, shop_boxes: RecordedBoxes
) -> None:
    document = document_of(
        service.port,
        "POST",
        body={"media_type": "application/json"},
        credentials=[{"secret": "TOKEN", "in": "body", "name": "access_token", "scheme": "plain"}],
    )
    document["implementation"]["operation"]["arguments"].append({"argument": "count", "in": "body", "name": "count"})
    document["input_schema"]["properties"]["count"] = {"type": "number"}
    bring_operation(document)

    answer = caller.invoke(TOOL, {"item": "7", "count": 1.5})

    assert answer.status_code == 200, answer.json()
    head, _, body = service.requests()[0].partition(b"\r\n\r\n")
    assert json.loads(body) == {"count": 1.5, "access_token": TOKEN}
    assert f"Content-Length: {len(body)}".encode() in head
    assert end_of(row_of(answer))["service"]["credentials"] == ["TOKEN"]
    assert TOKEN.encode() not in shop_boxes.calls[0].arguments
