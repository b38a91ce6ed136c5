"""Model meters: how what calls have added is compared with what was learned, and when somebody is told.

The first calls are learned: how many tokens a model reports for what the hub counts. Then each window of calls is held against that. A
difference that matters and is not chance is a fact, an alarm and a line in the log, once; what it has become is learned anew.
"""

from __future__ import annotations

import logging
from dataclasses import astuple
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.models import DifferentMeter
from invocations.metrics.model_metrics import count_meter_difference
from invocations.model_meters.meter_book import MeterBook, MeteredModel
from invocations.model_meters.models import MeterFigure, ModelMeter
from kernel.database.connections import database_time
from kernel.principal import Principal
from kernel.problems import Problem
from llm.meter_windows import MIN_CALLS, MeterWindow, find_meter_difference

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.model_calls.model_facts import ModelReport
    from invocations.model_meters.meter_book import MeterSums
    from llm.meter_windows import MeterDifference

log = logging.getLogger("toolhub.models")
LEARNED_CALLS = 1000  # what is learned rests on as many
WINDOW_CALLS = 1000  # after which a window without a difference is closed
WRITTEN = ["learned", "window", "most_per_mille", "most_excess", "differed_at", "difference_per_mille"]
_book = MeterBook()


def note_usage(report: ModelReport | None, *, tenant_id: UUID) -> None:
    """One call that has ended. It never fails for what its figures were."""
    if report is None or not report.metered:
        return
    model = MeteredModel(tenant_id, report.part.provider, report.part.name)
    if (figures := _book.add(model, report.metered)) is not None:
        try:
            write_sums(model, figures)
        except (DatabaseError, Problem) as error:  # the call has its End all the same
            log.warning("What %s:%s has reported was not compared: %s", model.provider, model.model, error)


@transaction.atomic
def write_sums(model: MeteredModel, figures: dict[str, MeterSums]) -> None:
    """Add what one process has seen, and look whether it differs from what was learned."""
    key: dict[str, Any] = {"tenant_id": model.tenant_id, "provider": model.provider, "model": model.model}
    for figure, sums in sorted(figures.items()):
        row, _ = ModelMeter.objects.select_for_update().get_or_create(**key, figure=figure)
        row.most_per_mille = max(row.most_per_mille, sums.most_per_mille)
        row.most_excess = max(row.most_excess, sums.most_excess)
        compare_window(row, MeterWindow(*row.window) + sums.window)
        row.save(update_fields=WRITTEN)


def compare_window(row: ModelMeter, window: MeterWindow) -> None:
    """Called with the row locked; what is learned grows until it rests on enough calls, and then stays as it is."""
    exact = row.figure == MeterFigure.MONEY  # the hub's own figure is no estimate
    learned = MeterWindow(*row.learned)
    difference = find_meter_difference(window, None if exact else learned) if window.calls >= MIN_CALLS else None
    if difference is not None and difference.is_alarming:
        _tell(row, window, difference)
        row.learned, row.window = list(astuple(window)), []
    elif learned.calls < LEARNED_CALLS and window.calls >= MIN_CALLS:
        row.learned, row.window = list(astuple(learned + window)), []
    else:
        row.window = [] if window.calls >= WINDOW_CALLS else list(astuple(window))


def _tell(row: ModelMeter, window: MeterWindow, difference: MeterDifference) -> None:
    row.differed_at, row.difference_per_mille = database_time(), round(difference.part * 1000)
    evidence.record(
        kind=Kind.MODEL_METER_DIFFERED,
        subject=f"soul:provider:{row.provider}",
        actor=Principal.system("meter", tenant_id=row.tenant_id),
        data=DifferentMeter(
            provider=row.provider,
            name=row.model,
            figure=row.figure,
            difference_per_mille=row.difference_per_mille,
            calls=window.calls,
            reported=window.reported,
            counted=window.counted,
        ),
    )
    log.warning(
        "The provider %s reports %+.1f %% %s for %s than was to be expected, over %d calls",
        *(row.provider, difference.part * 100, row.figure, row.model, window.calls),
    )
    transaction.on_commit(partial(count_meter_difference, row.provider, row.model, row.figure))
