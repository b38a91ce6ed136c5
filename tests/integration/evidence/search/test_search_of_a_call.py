"""Search of a call: has each of the two facts of a call what docs/reference/search.md says that it has?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from access.consents import services as consents
from evidence.models import Fact
from evidence.search.indexer import index_tenant
from invocations.models import Invocation
from invocations.queue import outbox
from invocations.sandbox.base import RunOutcome, RunStatus
from kernel.ids import encode
from tests.support.calls import row_of, writer
from tests.support.chains import calls as calls_of
from tests.support.chains import chain_of, step, submit
from tests.support.evidence_logs import seal_everything, signing_with

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = (Path(__file__).resolve().parents[4] / "docs/reference/search.md").read_text()
WRITE, ANN = "sample.tools.write", "user-ann-4711"
BEGIN, END = "invocation.began", "invocation.ended"


def told(between: str) -> set[str]:
    """The qualifiers that a sentence of the page names."""
    found = re.search(between, PAGE)
    assert found is not None, between
    return set(re.findall(r"`(\w+):`", found[1]))


OF_BEGIN = told(r"Its Begin says (.*?), and of a call that was refused")
OF_END = told(r"Its End says (.*?)\. `outcome:`")
OF_BOTH = told(r"Both are found by (.*?)\. So")


@pytest.fixture
def made(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox,
    operator: Person, monkeypatch: pytest.MonkeyPatch,
) -> Callable[[RunOutcome], Invocation]:  # fmt: skip
    """A call of a chain, made for somebody under a consent and obligations, that ran and came out like that."""
    writer(enable)
    grant()
    asked = consents.request_consent(tool=WRITE, versions="^1", purpose="a test", validity_s=600, by=caller.by)
    consents.approve_consent(consent_id=asked.pk, reason="for a test", by=operator.by)

    def send(invocation_id: UUID, work_class: str = "quick") -> None:
        obligation = {"action": "redact", "detector": "all"}
        Invocation.objects.filter(pk=invocation_id).update(obligations=[obligation])
        bell.ring(invocation_id, work_class)

    monkeypatch.setattr(outbox, "send_wake_up", send)

    def make(outcome: RunOutcome) -> Invocation:
        sandbox.outcome = outcome
        chain = chain_of(submit(caller, step("one", "write"), user_id=ANN))
        bell.deliver()
        [call] = calls_of(chain)
        return call

    return make


def found_by(query: str, client: Caller, call: Invocation) -> set[str]:
    answer = client.get(f"/evidence/facts?{urlencode({'q': query})}")
    assert answer.status_code == 200, answer.json()
    wire_ids = {each["id"] for each in answer.json()["data"]["facts"]}
    of_call = Fact.objects.filter(invocation_id=call.pk, kind__in=[BEGIN, END])
    return {str(fact.kind) for fact in of_call if fact.wire_id in wire_ids}


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("indexed", [True, False])
def test_each_qualifier_finds_the_facts_of_a_failed_call_that_the_page_says(
    indexed: bool, made: Callable[[RunOutcome], Invocation], caller: Caller
) -> None:
    failed = made(RunOutcome(RunStatus.RAISED, error_type="ValueError", error_message="no"))
    good = made(RunOutcome(RunStatus.OK, value={"text": "to john@example.com"}, report={}))
    assert (failed.state, good.state) == ("failed", "succeeded")
    if indexed:
        with signing_with():
            seal_everything()
        index_tenant(failed.tenant_id)
    assert failed.chain_step is not None
    assert failed.grant_id is not None
    assert failed.consent_id is not None
    values = {
        "verdict": "consent",
        "policy": failed.policy_version,
        "grant": encode("grt", failed.grant_id),
        "code": failed.reason,
        "pii": "email",
        "tool": WRITE,
        "agent": encode("agt", failed.agent_id),
        "user": ANN,
        "call": failed.wire_id,
        "chain": failed.chain_step.chain.wire_id,
        "consent": encode("cns", failed.consent_id),
    }
    assert values.keys() == OF_BEGIN | OF_END | OF_BOTH, "the page names another qualifier"
    quoted = {name: f'{name}:"{value}"' for name, value in values.items()}

    found = {name: found_by(quoted[name], caller, failed) for name in values}
    assert found["pii"] == set()  # there is none in a result where there is no result
    found["pii"] = found_by(quoted["pii"], caller, good)

    assert {name for name, kinds in found.items() if kinds == {BEGIN}} == OF_BEGIN, found
    assert {name for name, kinds in found.items() if kinds == {END}} == OF_END, found
    assert {name for name, kinds in found.items() if kinds == {BEGIN, END}} == OF_BOTH, found
    assert "`policy:` together with the `code:` of a failure finds nothing" in PAGE
    assert found_by(f"{quoted['policy']} {quoted['code']}", caller, failed) == set()
    assert found_by("outcome:failed", caller, failed) == {END}
    assert found_by(f"outcome:{Fact.objects.get(invocation_id=failed.pk, kind=BEGIN).outcome}", caller, failed) == {
        BEGIN
    }


@pytest.mark.req("CARD-6")
def test_of_a_call_that_was_refused_the_begin_has_the_code_too(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    writer(enable)
    grant()
    refused = row_of(caller.invoke(WRITE, {"text": "x"}))
    assert refused.state == "denied"

    found = found_by(f"code:{refused.reason}", caller, refused)

    assert found == {BEGIN, END}
    assert "and of a call that was refused the `code:`" in PAGE
    assert found_by(f'code:{refused.reason} policy:"{refused.policy_version}"', caller, refused) == {BEGIN}
