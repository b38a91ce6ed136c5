"""Late refusals: is a call that something turns out against as it is written down refused at the step of whoever refuses?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from access.consents import services as consents
from access.models import Consent
from access.problems import ConsentRequired, TooManyAtOnce
from evidence.models import Fact
from invocations.accept import begin_record
from tests.support.calls import PAIR, kinds_of, row_of, writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.problems import Problem
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_way")]
WRITE = "sample.tools.write"


@pytest.mark.req("TOOLS-14", "TOOLS-18")
@pytest.mark.parametrize(
    ("write", "problem", "step"),
    [
        ("spend_consent", ConsentRequired("It was used."), "consent"),
        ("reserve_call_budgets", TooManyAtOnce("Others were faster."), "quota"),
    ],
)
def test_what_another_call_has_taken_meanwhile_is_refused_at_the_step_that_it_belongs_to(
    write: str,
    problem: Problem,
    step: str,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    caller: Caller,
    operator: Person,
    bell: Bell,
    sandbox: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise problem

    writer(enable)
    grant()
    assert caller.invoke(WRITE, {"text": "x"}, on_consent="ask", purpose="a test").status_code == 403
    consents.approve_consent(consent_id=Consent.objects.get().pk, reason="I know it.", mode="once", by=operator.by)
    monkeypatch.setattr(begin_record, write, refuse)

    answer = caller.invoke(WRITE, {"text": "x"})

    denied = row_of(answer)
    assert (denied.state, denied.reason, kinds_of(denied)) == ("denied", problem.reason, PAIR)
    began = json.loads(bytes(Fact.objects.get(invocation_id=denied.pk, kind="invocation.began").leaf))
    assert answer.json()["call"].get("refused_at") == began["data"].get("refused_at") == step
    assert (Consent.objects.get().state, sandbox.calls) == ("approved", [])
