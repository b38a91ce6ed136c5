"""Model crashes: does a call of a model whose process dies get one End, and is it never made again?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import connection

from access.budgets.services import set_budget
from access.models import Reservation
from invocations.models import Invocation
from invocations.queue import sweeper
from invocations.run import execution
from kernel.database.connections import database_time
from kernel.fault_injection import MODEL_CALLS
from tests.support.budgets import DAY, assert_conserved, balance
from tests.support.calls import PAIR, kinds_of

if TYPE_CHECKING:
    from pathlib import Path

    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db(transaction=True)


def ask_and_die(caller: Caller, journal: Path, point: str) -> int:
    command = [sys.executable, "-m", "tests.support.model_call_process", str(connection.settings_dict["NAME"])]
    env = os.environ | {"TOOLHUB_FAULTS": f"{point}=kill"}
    done = subprocess.run(
        [*command, caller.key, str(journal), str(settings.TOOLHUB_KEY_FILE)],
        cwd=settings.BASE_DIR,
        env=env,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode


@pytest.mark.req("LLM-11")
@pytest.mark.parametrize("point", [*MODEL_CALLS, "finish.before_commit"])
def test_a_call_whose_process_dies_ends_with_an_unknown_outcome_and_takes_what_it_had_reserved(
    point: str, caller: Caller, operator: Person, model: Tool, tmp_path: Path, sandbox: Any
) -> None:
    budget = set_budget(scope="tenant", dimension="tokens", amount=10_000, window_s=365 * DAY, by=operator.by)
    journal = tmp_path / "journal"

    killed = ask_and_die(caller, journal, point)

    call = Invocation.objects.get()
    held = Reservation.objects.get().amount
    assert (killed, call.state, kinds_of(call)) == (-signal.SIGKILL, "running", PAIR[:1])
    asked = journal.read_text().count("asked") if journal.exists() else 0
    assert asked == (point != "model.accepted")

    Invocation.objects.update(lease_until=database_time() - timedelta(seconds=1))
    sweeper.sweep_once()
    sweeper.sweep_once()
    execution.run_queued_calls()

    call.refresh_from_db()
    assert (call.state, call.attempt, kinds_of(call)) == ("outcome_unknown", 1, PAIR)
    assert balance(budget) == (held, 0)
    assert_conserved()


@pytest.mark.req("LLM-11")
def test_a_call_that_has_ended_when_its_process_dies_stays_as_it_ended(
    caller: Caller, model: Tool, tmp_path: Path
) -> None:
    killed = ask_and_die(caller, tmp_path / "journal", "finish.committed")

    sweeper.sweep_once()

    call = Invocation.objects.get()
    assert (killed, call.state, kinds_of(call)) == (-signal.SIGKILL, "succeeded", PAIR)
