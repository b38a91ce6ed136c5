"""Huge pages: is memory that is full joined, is what is not left alone, and does nobody notice where the kernel will not?

In processes of their own: what is joined stays so. Linux joins since 6.1, where it has huge pages at all.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel import huge_pages

JOINS = (
    tuple(int(each) for each in re.findall(r"\d+", os.uname().release)[:2]) >= (6, 1)
    and not huge_pages.is_switched_off()
)
ROOT = Path(__file__).resolve().parents[3]
FILLED = """
import mmap, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from kernel import huge_pages

if {setting!r}:
    huge_pages.SETTING = Path({setting!r})
PAGES = huge_pages.HUGE_BYTES // huge_pages.PAGE_BYTES
memory = mmap.mmap(-1, 4 * huge_pages.HUGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for number in range(0, len(memory), huge_pages.PAGE_BYTES * {each}):
    memory[number] = number // huge_pages.PAGE_BYTES % 251

def read(what):
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(what))

had, held = read("AnonHugePages:"), read("Rss:")
joined = huge_pages.collapse_memory()
whole = all(memory[at] == at // huge_pages.PAGE_BYTES % 251 for at in range(0, len(memory), huge_pages.PAGE_BYTES * {each}))
print(joined, (read("AnonHugePages:") - had) >> 11, whole, read("Rss:") - held < 1024 * (1 + joined // 8))
"""


def collapse(each: int, setting: str = "") -> list[str]:
    """``setting``: the file that says whether the host has huge pages, where it is not the host's."""
    command = FILLED.format(root=str(ROOT), each=each, setting=setting)
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_full_memory_is_joined_and_keeps_what_it_holds() -> None:
    joined, came, whole, grew_little = collapse(1)

    # Of four the first need not begin where a huge page can.
    assert (int(came) >= 3) == JOINS
    assert int(joined) >= int(came)
    assert (whole, grew_little) == ("True", "True")


@pytest.mark.parametrize(("said", "is_joined"), [("always [madvise] never", True), ("always madvise [never]", False)])
def test_where_the_host_has_switched_huge_pages_off_memory_stays_as_it_is(
    said: str, is_joined: bool, tmp_path: Path
) -> None:
    setting = tmp_path / "enabled"
    setting.write_text(f"{said}\n")

    joined, came, whole, grew_little = collapse(1, str(setting))

    assert (int(came) >= 3) == (is_joined and JOINS)
    assert (int(joined) > 0) == (is_joined and JOINS)
    assert (whole, grew_little) == ("True", "True")


def test_memory_of_which_a_part_is_used_does_not_grow() -> None:
    _, came, whole, grew_little = collapse(4)

    assert (came, whole, grew_little) == ("0", "True", "True")


def test_a_kernel_that_says_nothing_of_pages_keeps_nobody_from_working(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def refuse() -> int:
        raise PermissionError("no")

    monkeypatch.setattr(time, "sleep", asked.append)
    monkeypatch.setattr(huge_pages, "collapse_memory", refuse)

    huge_pages.collapse_twice()

    assert asked == [huge_pages.AFTER_S[0]]  # and it is not tried again
