"""Sent files in a hub: what is looked at of each before a call is accepted, and again before it runs?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access import services as access
from access.problems import RateLimited
from invocations import services
from invocations.artifacts.problems import NoSuchArtifact
from invocations.calls import CallRequest
from invocations.chains.models import Chain, ChainStep, StepRole
from invocations.kept_callers import build_kept_caller, describe_credential
from invocations.models import Invocation
from invocations.run import sent_files
from kernel.http.envelopes import RequestEnvelope
from kernel.ids import new_id
from kernel.principal import Principal
from kernel.problems import Forbidden, TooLarge
from tests.conftest import Caller
from tests.egress.services import answer_with
from tests.egress.shop import NOTES, PDF, TOOL, sending
from tests.support.calls import assert_problem, row_of
from tests.support.chains import submit

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.models import StoredFile
    from registry.models import ToolVersion
    from tests.egress.services import Service

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shop_boxes")]


@pytest.fixture
def left(bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service) -> str:
    """The id of what a call has left."""
    service.answers = [answer_with(PDF, content_type="application/pdf")]
    bring_operation(sending(service.port))
    return str(caller.invoke(TOOL, {"item": "7"}).json()["call"]["artifacts"][0]["id"])


@pytest.mark.req("BRING-1")
def test_the_sizes_are_asked_for_before_any_content_is_fetched(
    left: str, caller: Caller, notes: StoredFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = CallRequest(TOOL, {"item": "7", "sheets": [left, notes.wire_id]}, RequestEnvelope("r", {}))
    row = Invocation.objects.select_related("version").get(tool=TOOL)
    assert row.version is not None
    with CaptureQueriesContext(connection) as accepting:
        sent_files.check_sent_files(row.version.view, call, by=caller.by)
    monkeypatch.setattr(sent_files, "MAX_BYTES", len(PDF))
    with CaptureQueriesContext(connection) as running, pytest.raises(TooLarge):
        sent_files.load_sent_files(row, row.version.view, call.arguments)

    asked = [each["sql"] for each in (*accepting, *running)]
    assert any('"size"' in each for each in asked)
    assert not [each for each in asked if '"ciphertext"' in each]


@pytest.mark.req("BRING-1")
def test_a_call_that_comes_too_fast_has_no_file_looked_for(
    left: str, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RateLimited("Too fast.", retry_after_s=1)

    monkeypatch.setattr(services, "check_rates", refuse)

    answer = caller.invoke(TOOL, {"item": "7", "sheets": ["fil_00000000000000000000000000"]})

    assert_problem(answer, 429, RateLimited.reason)


def make_step(caller: Caller) -> ChainStep:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    credential = describe_credential(caller.by)
    chain = Chain.objects.create(
        tenant_id=caller.by.tenant_id, agent=caller.agent, credential=credential, created_at=at
    )
    return ChainStep.objects.create(chain=chain, role=StepRole.STEP, position=0, name="a", tool=TOOL)


@pytest.mark.unpaired  # its chains are only rows
@pytest.mark.req("BRING-1", "SVC-6")
def test_a_step_sends_what_those_beside_it_left_and_else_what_its_submitter_may_read(
    left: str, caller: Caller, notes: StoredFile
) -> None:
    """It shows no credential; of that which was shown with the chain its right to read is kept."""
    row = Invocation.objects.select_related("version").get(tool=TOOL)
    assert row.version is not None
    manifest, beside, elsewhere = row.version.view, make_step(caller), make_step(caller)
    Invocation.objects.update(chain_step=beside)
    readers = build_kept_caller(caller.agent, describe_credential(caller.by))
    nobodys = build_kept_caller(caller.agent, describe_credential(replace(caller.by, allowed=frozenset())))

    def send(id: str, step: ChainStep | None, by: Principal) -> None:
        call = CallRequest(TOOL, {"item": "7", "sheets": [id]}, RequestEnvelope("r", {}), chain_step=step)
        sent_files.check_sent_files(manifest, call, by=by)

    send(left, beside, nobodys)
    send(left, elsewhere, readers)
    for id, step, by in (
        (left, elsewhere, nobodys),
        (left, None, nobodys),
        (notes.wire_id, beside, readers),
    ):
        with pytest.raises(Forbidden):
            send(id, step, by)


@pytest.mark.req("BRING-1", "SVC-6")
def test_a_chain_is_no_way_round_the_scope_of_reading(left: str, caller: Caller) -> None:
    nobody = Principal.system("test", tenant_id=caller.by.tenant_id)
    _, text = access.create_key(agent=caller.agent, scopes=("invocations:create",), by=nobody)
    few = Caller(caller.agent, text, caller.by)
    step = {"id": "a", "tool": TOOL, "arguments": {"item": "7", "sheets": [left]}}

    assert_problem(submit(few, step), 403, "AUTH.FORBIDDEN")
    assert submit(caller, step).status_code == 202


@pytest.mark.req("BRING-1", "SVC-6")
def test_what_the_credential_is_not_shown_any_more_when_the_call_runs_is_not_sent(left: str, caller: Caller) -> None:
    """A call may wait for days, and a person have taken their account from the agent by then."""
    row = Invocation.objects.select_related("version").get(tool=TOOL)
    assert row.version is not None
    manifest, arguments = row.version.view, {"item": "7", "sheets": [left]}
    assert [each.content for each in sent_files.load_sent_files(row, manifest, arguments)] == [PDF]

    Invocation.objects.update(account_id=new_id(), connection_id=new_id())  # as a person's program fetched it

    with pytest.raises(NoSuchArtifact, match="to send"):
        sent_files.load_sent_files(row, manifest, arguments)


@pytest.mark.req("BRING-1")
def test_a_file_that_is_named_twice_counts_twice(
    left: str, caller: Caller, notes: StoredFile, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The body has it twice."""
    monkeypatch.setattr(sent_files, "MAX_BYTES", 2 * len(NOTES) - 1)

    said = assert_problem(caller.invoke(TOOL, {"item": "7", "sheets": [notes.wire_id] * 2}), 413, "REQUEST.TOO_LARGE")

    assert f"{2 * len(NOTES):,} bytes" in said["error"]["message"]
    assert len(service.heard) == 1  # the call before
    assert caller.invoke(TOOL, {"item": "7", "sheets": [notes.wire_id]}).status_code == 200


@pytest.mark.req("BRING-1")
def test_what_the_service_does_not_take_is_refused_before_the_call_is_accepted(
    bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service
) -> None:
    """So that no person is asked about it."""
    service.answers = [answer_with(PDF, content_type="application/pdf")]
    document = sending(service.port)
    document["implementation"]["operation"]["arguments"][1]["media_types"] = ["image/*", "text/csv"]
    bring_operation(document)
    left = caller.invoke(TOOL, {"item": "7"}).json()["call"]["artifacts"][0]["id"]

    answer = caller.invoke(TOOL, {"item": "7", "sheets": [left]})

    said = assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")
    [finding] = said["error"]["details"]["findings"]
    assert finding["pointer"] == "/sheets"
    assert "the service takes image/*, text/csv" in finding["message"]
    assert row_of(answer).state == "denied"
