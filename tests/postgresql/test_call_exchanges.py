"""Exchanges of a call: how often is the database asked, and does what was read early still hold where it is used?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction

from evidence.keys.subject_keys import destroy_key
from invocations import services
from kernel.database.postgresql.pipeline import StatementPipeline
from tests.support.calls import PAIR, kinds_of, row_of
from tests.support.made_calls import ECHO

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidence.models import SubjectKey
    from invocations.calls import IncomingCall
    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
# The key, with what decides and the subject's key; the call with its Begin and budgets; the claim, with all that it is run with; the
# End; the answer.
EXCHANGES = 5


@pytest.fixture
def allowed(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> None:
    enable()
    grant()


def test_a_call_makes_five_exchanges_from_its_key_to_its_answer(
    allowed: None, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.invoke(ECHO, {"text": "what is kept is found out"})
    asked: list[list[bytes]] = []
    run = StatementPipeline.run

    def counted(self: StatementPipeline, raw: Any, ready: Any, *more: Any) -> Any:
        if len(ready) > 1:  # not where a query of the ORM, as this waiting thread looks, is only told for whom it works
            asked.append([each[0][:60] for each in ready])
        return run(self, raw, ready, *more)

    monkeypatch.setattr(StatementPipeline, "run", counted)

    answer = caller.invoke(ECHO, {"text": "x"})

    assert answer.status_code == 200
    assert len(asked) == EXCHANGES, "\n".join(map(str, asked))


def test_a_key_that_is_destroyed_after_it_was_read_seals_nothing(
    allowed: None, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.invoke(ECHO, {"text": "the key is made"})
    decide, destroyed = services.decide_call, list["SubjectKey"]()

    def forgotten_meanwhile(incoming: IncomingCall, *more: Any) -> Any:
        decision = decide(incoming, *more)
        assert incoming.key is not None
        with transaction.atomic():
            destroyed.append(destroy_key(tenant_id=incoming.key.tenant_id, subject=incoming.key.subject))
        return decision

    monkeypatch.setattr(services, "decide_call", forgotten_meanwhile)

    row = row_of(caller.invoke(ECHO, {"text": "x"}))

    assert kinds_of(row) == PAIR
    assert row.values_key_id not in (None, destroyed[0].pk)
