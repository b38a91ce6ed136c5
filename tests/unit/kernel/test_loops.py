"""Loops: is something done again and again, with the rest that it should have, whatever goes wrong?"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError

from kernel import loops
from kernel.loops import Rest, repeat_work
from kernel.observability.log_context import note_for_log, read_log_field

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("tests.loops")


class Stop:
    """An event that notes how long it was waited for, and is set after so many times."""

    def __init__(self, times: int) -> None:
        self.rests: list[float] = []
        self._times = times

    def is_set(self) -> bool:
        return len(self.rests) == self._times

    def wait(self, seconds: float) -> None:
        self.rests.append(seconds)


@pytest.fixture(autouse=True)
def no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "release_connection", lambda: None)


@pytest.mark.parametrize(("said", "rest"), [(None, 5), (0, 5), (3, 5), (Rest(0), 0), (Rest(0.5), 0.5)], ids=str)
def test_only_a_rest_that_is_called_one_is_taken_for_one(said: object, rest: float) -> None:
    stop = Stop(2)
    repeat_work(lambda: said, stop, every_s=5, what="Nothing was done", log=log)  # type: ignore[arg-type]
    assert stop.rests == [rest, rest]


def _raising(error: Exception) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize("known", [True, False])
def test_what_goes_wrong_is_logged_and_tried_again(known: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, log.name)
    stop = Stop(3)
    error = OperationalError("gone") if known else RuntimeError("broken")
    repeat_work(_raising(error), stop, every_s=5, what="Nothing was done", log=log)  # type: ignore[arg-type]
    assert stop.rests == [5, 5, 5]
    assert ["Nothing was done: this is tried again." in each.message for each in caplog.records] == [True] * 3
    assert [each.exc_info is None for each in caplog.records] == [known] * 3


def test_what_a_piece_says_of_its_lines_holds_for_its_failure_and_not_for_the_next_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, when_logged = [], []

    def work() -> None:
        before.append(read_log_field("call_id"))
        note_for_log(call_id=f"inv_{len(before)}")
        raise OperationalError("gone")

    monkeypatch.setattr(log, "warning", lambda *_: when_logged.append(read_log_field("call_id")))
    repeat_work(work, Stop(2), every_s=5, what="Nothing was done", log=log)  # type: ignore[arg-type]

    assert before == ["", ""]
    assert when_logged == ["inv_1", "inv_2"]
