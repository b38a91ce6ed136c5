"""Leases: is one renewed for as long as the work goes on, whatever the database does meanwhile, and not when it hangs or is over?"""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError

from kernel import leases
from kernel.leases import STALLED_AFTER_S, note_progress, renew_lease

WITHIN_S, SOON_S = 10, 0.001


def test_a_lease_is_renewed_until_the_work_is_done() -> None:
    renewed, three = list[str](), threading.Event()

    def renew() -> bool:
        renewed.append(threading.current_thread().name)
        if len(renewed) >= 3:
            three.set()
        return True

    with renew_lease(renew, every_s=SOON_S):
        assert three.wait(WITHIN_S)
    count = len(renewed)

    assert set(renewed) == {"lease"}
    assert "lease" not in {thread.name for thread in threading.enumerate()}
    assert len(renewed) == count


def test_a_database_that_is_away_is_asked_again() -> None:
    tries, again = list[int](), threading.Event()

    def renew() -> bool:
        tries.append(1)
        if len(tries) == 1:
            raise OperationalError("away")
        again.set()
        return True

    with renew_lease(renew, every_s=SOON_S):
        assert again.wait(WITHIN_S)


def test_one_that_is_lost_is_not_asked_for_again_and_a_failure_of_the_work_ends_it() -> None:
    tries, lost = list[int](), threading.Event()

    def renew() -> bool:
        tries.append(1)
        lost.set()
        return False

    with pytest.raises(ValueError, match="the work"), renew_lease(renew, every_s=SOON_S):
        assert lost.wait(WITHIN_S)
        for thread in [each for each in threading.enumerate() if each.name == "lease"]:
            thread.join(WITHIN_S)
        raise ValueError("the work")

    assert tries == [1]


def test_one_is_left_to_run_out_when_nothing_has_come_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now, renewed = [0.0], threading.Semaphore(0)
    monkeypatch.setattr(leases, "_now", lambda: now[0])

    def renew() -> bool:
        renewed.release()
        return True

    with renew_lease(renew, every_s=SOON_S):
        for _ in range(5):  # longer in all than it may be silent
            now[0] += STALLED_AFTER_S * 0.9
            note_progress()
            assert renewed.acquire(timeout=WITHIN_S)
        now[0] += STALLED_AFTER_S * 1.1
        (thread,) = [each for each in threading.enumerate() if each.name == "lease"]
        thread.join(WITHIN_S)
        assert not thread.is_alive()

    note_progress()  # of no lease
