"""Processors: whether they had time to spare is told from what Linux counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.provision import processors
from scripts.provision.processors import IdleTime

if TYPE_CHECKING:
    from pathlib import Path

LINE = "cpu  {used} 0 0 {idle} {disk} 0 0 0 0 0\ncpu0 9 9 9 9 9 9 9 9 0 0\n"


@pytest.mark.parametrize(
    ("used", "idle", "disk", "much"), [(850, 150, 0, False), (750, 150, 100, True), (0, 0, 0, False)]
)
def test_a_fifth_of_the_time_is_much(
    used: int, idle: int, disk: int, much: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times, now = tmp_path / "stat", [100.0]
    monkeypatch.setattr(processors, "TIMES", times)
    monkeypatch.setattr(processors, "monotonic", lambda: now[0])
    times.write_text(LINE.format(used=1000, idle=5000, disk=70))
    looked = IdleTime()
    times.write_text(LINE.format(used=1000 + used, idle=5000 + idle, disk=70 + disk))

    now[0] += processors.WHILE_S / 2
    too_early = looked.is_much()
    now[0] += processors.WHILE_S / 2

    assert (too_early, looked.is_much()) == (False, much)
    assert not looked.is_much()


def test_the_share_of_a_run_counts_what_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = tmp_path / "stat"
    monkeypatch.setattr(processors, "TIMES", times)
    times.write_text(LINE.format(used=1000, idle=5000, disk=70))
    begun = processors.read_times()
    nothing_yet = processors.share_idle(begun)
    times.write_text(LINE.format(used=1700, idle=5200, disk=170))

    assert (nothing_yet, processors.share_idle(begun)) == (None, 0.3)


def test_where_nothing_counts_the_times_there_is_none_to_spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "TIMES", tmp_path / "nothing")
    monkeypatch.setattr(processors, "WHILE_S", 0.0)

    assert not IdleTime().is_much()
