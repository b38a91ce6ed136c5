"""One real box, driven directly, into whose helper a dependency has brought code of its own: who is still believed?

What is imported beforehand is in every process that is made from there. So of those processes nothing is taken that the
first process of the box does not know by itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sandbox import run_monitor
from tests.contracts.test_box import REUSED, box_of
from tests.support.box_driver import ROOMY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.box_driver import DrivenBox

__all__ = ["box_of"]
KEEPS_A_WAY = """
import os, sandbox.call as call
close, take = call._closerange, call._take_places
call._closerange = lambda low, high: None if low == 5 else close(low, high)
def keep(descriptor):
    end = take(descriptor)
    os.dup2(end.fileno(), 100)
    return end
call._take_places = keep
"""
FORGES = """
import os, socket, evil
def run(words, says):
    if says: print("the effect took place", flush=True)
    socket.socket(fileno=100).send(words.encode())
    os._exit(1)
"""


@pytest.mark.req("SVC-10")
@pytest.mark.parametrize("says", [True, False], ids=["heard", "silent"])
@pytest.mark.parametrize("level", REUSED)
def test_that_nothing_ran_is_not_believed_of_who_may_have_run(
    box_of: Callable[..., DrivenBox], tmp_path: Path, level: str, says: bool
) -> None:
    folder = tmp_path / "deps"
    folder.mkdir(mode=0o755)
    (folder / "evil.py").write_text(KEEPS_A_WAY)
    box = box_of(binds=[f"{folder}:/deps:ro"])
    loaded = box.load({"main": FORGES}, level=level)
    assert "evil" in loaded["preloaded"]

    said = box.call(words="walls\n\x1b[31m\0" + "x" * 5_000, says=says)

    assert said.ended == run_monitor.UNKNOWN, said
    assert said.head["why_not"].isprintable()
    assert len(said.head["why_not"]) <= 2_000
    assert not said.clean
    assert box.is_gone()


LEAVES_A_PIPE_OPEN = """
import os
for end, place in zip(os.pipe(), (101, 102)): os.dup2(end, place)
os.set_blocking(101, False)
os.closerange = lambda *_: None
"""
USES_THE_PIPE = """
import os, evil
def run():
    try: return os.write(102, b"a secret of this call")
    except OSError as error: return error.strerror
"""


@pytest.mark.req("SVC-10")
@pytest.mark.parametrize("level", REUSED)
def test_what_a_dependency_holds_open_is_closed_before_a_call_whatever_it_puts_in_the_place_of_closing(
    box_of: Callable[..., DrivenBox], tmp_path: Path, level: str
) -> None:
    folder = tmp_path / "deps"
    folder.mkdir(mode=0o755)
    (folder / "evil.py").write_text(LEAVES_A_PIPE_OPEN)
    box = box_of(binds=[f"{folder}:/deps:ro"])
    loaded = box.load({"main": USES_THE_PIPE}, level=level)
    assert "evil" in loaded["preloaded"]

    assert [box.call().value for _ in range(2)] == ["Bad file descriptor"] * 2


def test_what_a_dependency_says_as_it_fails_is_one_line(box_of: Callable[..., DrivenBox], tmp_path: Path) -> None:
    folder = tmp_path / "deps"
    folder.mkdir(mode=0o755)
    (folder / "evil.py").write_text("class Bad(BaseException): pass\nraise Bad('a\\0b\\r\\n\\x1b[31m' + 'x' * 9_000)\n")
    box = box_of(binds=[f"{folder}:/deps:ro"])

    loaded = box.load({"main": "def run():\n    import evil"})

    assert not loaded["ok"]
    assert loaded["why"].isprintable()
    assert len(loaded["why"]) <= 2_000


@pytest.mark.long
def test_to_load_takes_not_much_longer_than_a_call_may(box_of: Callable[..., DrivenBox], tmp_path: Path) -> None:
    folder = tmp_path / "deps"
    folder.mkdir(mode=0o755)
    (folder / "evil.py").write_text("import time\ntime.sleep(600)\n")
    box = box_of(binds=[f"{folder}:/deps:ro"], limits=replace(ROOMY, wall_ms=1_000))

    loaded = box.load({"main": "def run():\n    import evil"})

    assert (loaded["ok"], "in time" in loaded["why"]) == (False, True)
    assert box.is_gone()
