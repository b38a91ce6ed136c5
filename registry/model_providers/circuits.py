"""Circuits: whether it is worth asking a model's provider now. All processes share what they find, in the database.

After a few failures in a row calls of the model fail at once, or go to its fallbacks, for a while that doubles each time; then one
call is let through, and decides. A model that answers has no row, so a call of one writes nothing.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import Q

from kernel.database.connections import database_time
from llm.problems import ProviderUnavailable
from registry.models import ModelCircuit, ModelCircuitState

if TYPE_CHECKING:
    from datetime import datetime

    from registry.models import ModelProvider

FAILURES = 5
FIRST_S, LONGEST_S = 5, 60


def read_state(circuit: ModelCircuit | None, now: datetime) -> ModelCircuitState:
    if circuit is None or circuit.open_until is None:
        return ModelCircuitState.CLOSED
    return ModelCircuitState.OPEN if now < circuit.open_until else ModelCircuitState.HALF_OPEN


def check_circuit(circuit: ModelCircuit | None, now: datetime) -> None:
    """Raise :class:`ProviderUnavailable` while the circuit is open, or another call tries."""
    state = read_state(circuit, now)
    if circuit is None or state is ModelCircuitState.CLOSED:
        return
    until = circuit.open_until if state is ModelCircuitState.OPEN else circuit.trying_until
    if until is not None and now < until:
        raise ProviderUnavailable(
            f"The model {circuit.model} has failed {circuit.failures} times in a row ({circuit.why}), and is not asked for now.",
            retry_after_s=max(1, math.ceil((until - now).total_seconds())),
        )


def begin_try(circuit: ModelCircuit, *, longest_s: float) -> bool:
    """Whether this call is the one that tries a circuit that is half open; it has so long for it. Raises where it may not be made.

    ``circuit`` was read before, so it is read again: another call, or an earlier request of this one, may have closed it since.
    """
    now, rows = database_time(), ModelCircuit.objects.filter(provider=circuit.provider_id, model=circuit.model)
    found = rows.first()
    check_circuit(found, now)
    if found is None or read_state(found, now) is ModelCircuitState.CLOSED:
        return False
    free = Q(trying_until=None) | Q(trying_until__lte=now)
    mine = rows.filter(free, open_until=found.open_until)
    if not mine.update(trying_until=now + timedelta(seconds=longest_s)):
        raise ProviderUnavailable(
            f"The model {circuit.model} is being tried again by another call.", retry_after_s=FIRST_S
        )
    return True


def give_up_try(provider: ModelProvider, model: str) -> None:
    """Nothing came of the try, for a reason that is not the provider's."""
    ModelCircuit.objects.filter(provider=provider, model=model).update(trying_until=None)


def count_answer(provider: ModelProvider, model: str) -> None:
    """The provider answers, even if it has said no."""
    ModelCircuit.objects.filter(provider=provider, model=model).delete()


def count_failure(provider: ModelProvider, model: str, *, why: str, tried: bool = False) -> ModelCircuitState:
    """One more failure that is the provider's. ``tried``: of the call that was let through to try."""
    try:
        return _count_failure(provider, model, why=why, tried=tried)
    except IntegrityError:  # the provider was removed meanwhile
        return ModelCircuitState.CLOSED


@transaction.atomic
def _count_failure(provider: ModelProvider, model: str, *, why: str, tried: bool) -> ModelCircuitState:
    rows = ModelCircuit.objects.select_for_update()
    circuit, _ = rows.get_or_create(provider=provider, model=model, defaults={"tenant_id": provider.tenant_id})
    now = database_time()
    circuit.failures, circuit.why = circuit.failures + 1, why
    # What fails while it is open was begun before.
    if read_state(circuit, now) is not ModelCircuitState.OPEN and (tried or circuit.failures >= FAILURES):
        circuit.open_until = now + timedelta(seconds=min(FIRST_S * 2 ** min(circuit.opened, 10), LONGEST_S))
        circuit.opened, circuit.trying_until = circuit.opened + 1, None
    circuit.save(update_fields=["failures", "why", "open_until", "opened", "trying_until"])
    return read_state(circuit, now)


def forget_circuits(provider: ModelProvider) -> None:
    """It is reached otherwise from now on: what failed before says nothing."""
    ModelCircuit.objects.filter(provider=provider).delete()
