"""One real box, driven directly: what a hub may rely on when it loads it and calls it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import protocol, run_monitor
from tests.support.box_driver import ROOMY, DrivenBox, Said
from tests.support.module_sources import BEGINS_THREAD, SETS_HOOK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LEVELS = ("shared", "fresh", "single", "cold")
REUSED = ("shared", "fresh")
ADDS = "def run(a): return a + 1"
SLEEPS = "import time\ndef run(): time.sleep(60)"


@pytest.fixture
def box_of(tmp_path: Path) -> Iterator[Callable[..., DrivenBox]]:
    """Makes boxes that are gone after the test."""
    tmp_path.chmod(0o755)
    made: list[DrivenBox] = []

    def make(**options: Any) -> DrivenBox:
        made.append(DrivenBox(tmp_path, **options))
        return made[-1]

    yield make
    for box in made:
        box.close()


def once(box: DrivenBox, source: str, *, level: str = "fresh", **arguments: Any) -> Said:
    """Load and call, without waiting in between."""
    box.send_load({"main": source}, level=level)
    box.send_call(**arguments)
    loaded, _ = protocol.unpack(box.channel.receive(protocol.LOADED))
    assert loaded["ok"], loaded
    return box.receive_result()


@pytest.mark.parametrize("attach", [False, True], ids=["socket", "attach"])
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_loaded_and_called_in_the_same_way(
    box_of: Callable[..., DrivenBox], level: str, attach: bool
) -> None:
    said = once(box_of(attach=attach), ADDS, level=level, a=1)

    assert (said.ended, said.value, said.clean) == (run_monitor.EXITED, 2, True), said


@pytest.mark.parametrize("level", REUSED)
def test_a_reused_box_answers_call_after_call_and_nothing_passes_between_them(
    box_of: Callable[..., DrivenBox], level: str
) -> None:
    box = box_of()
    source = (
        "import os\nseen = []\ndef run(a):\n    seen.append(a)\n    before = os.listdir('.')\n"
        "    if os.stat('.').st_mtime == 7: before.append('word')\n"
        "    os.makedirs('x/y'); open('x/y/z', 'w').write('left'); os.symlink('/', 'x/link'); os.chmod('x', 0)\n"
        "    os.utime('.', (7, 7)); os.chmod('.', 0o755)\n"
        "    return [a, before, seen]"
    )
    box.load({"main": source}, level=level)

    for number in range(5):
        said = box.call(a=number)
        assert (said.value, said.clean) == ([number, [], [number]], True), said


@pytest.mark.parametrize("level", ["single", "cold"])
def test_a_box_for_one_call_ends_after_it(box_of: Callable[..., DrivenBox], level: str) -> None:
    box = box_of()

    once(box, ADDS, level=level, a=1)

    assert box.is_gone()


def test_a_box_ends_when_its_hub_goes_away(box_of: Callable[..., DrivenBox]) -> None:
    idle, loading, busy = box_of(), box_of(), box_of()
    loading.load({"main": SLEEPS})
    busy.load({"main": SLEEPS})
    busy.send_call()

    for box in (idle, loading, busy):
        box._line.close()

    assert all(box.is_gone() for box in (idle, loading, busy))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"tool/../outside.py": ""}, "plain files"),
        ({"/p/absolute.py": ""}, "plain files"),
        ({"tool/main.py/below.py": ""}, "FileExistsError"),
    ],
)
def test_a_package_that_is_none_is_said_to_be_none(
    box_of: Callable[..., DrivenBox], more: dict[str, str], why: str
) -> None:
    box = box_of()

    loaded = box.load({"main": ADDS}, more=more)

    assert not loaded["ok"]
    assert why in loaded["why"]
    assert box.is_gone()


@pytest.mark.req("SVC-7")
@pytest.mark.parametrize("level", LEVELS)
def test_a_call_can_be_cancelled(box_of: Callable[..., DrivenBox], level: str) -> None:
    box = box_of()
    box.load({"main": "import time\ndef run():\n    print('begun')\n    time.sleep(60)"}, level=level)
    box.send_call(stream=True)
    kind, _ = box.channel.receive_one_of(protocol.EVENT)

    box.cancel()

    said = box.receive_result()
    assert kind == protocol.EVENT
    assert (said.ended, said.clean, said.stdout) == (run_monitor.CANCELLED, False, b"begun\n")
    assert box.is_gone()


def test_to_cancel_what_has_just_ended_is_no_mistake(box_of: Callable[..., DrivenBox]) -> None:
    box = box_of()
    box.load({"main": ADDS})
    box.call(a=1)

    box.cancel()

    assert box.call(a=2).value == 3


@pytest.mark.req("SVC-7")
@pytest.mark.parametrize("level", REUSED)
def test_silence_has_a_limit_of_its_own(box_of: Callable[..., DrivenBox], level: str) -> None:
    box = box_of(limits=replace(ROOMY, idle_ms=600))
    talks = (
        "import sys, time\nfrom unitools import runtime\ndef run(forever):\n"
        "    for number in range(4):\n        time.sleep(0.25)\n"
        "        [print, lambda m: print(m, file=sys.stderr), lambda m: runtime.progress(0.5, m)][number % 3]('here')\n"
        "    time.sleep(60 if forever else 0)\n    return 'done'"
    )
    box.load({"main": talks}, level=level)

    assert box.call(forever=False).value == "done"
    said = box.call(forever=True)

    assert (said.ended, said.clean) == (run_monitor.IDLED, False)


TELLS = """
import sys
from unitools import runtime
def run(size, wait):
    print("begun", flush=True)
    print("careful", file=sys.stderr)
    runtime.progress(0.25, "a quarter")
    print("x" * size, flush=True)
    runtime.progress(1)
    return sys.stdin.read()
"""


@pytest.mark.parametrize("attach", [False, True], ids=["socket", "attach"])
def test_what_a_tool_says_is_told_while_it_runs(box_of: Callable[..., DrivenBox], attach: bool) -> None:
    box = box_of(attach=attach)
    box.load({"main": TELLS})

    said = box.call(size=10, wait=0, stream=True)

    told = {name: b"".join(data for stream, data in box.events if stream == name) for name, _ in box.events}
    assert said.value == ""
    assert told == {
        "stdout": b"begun\n" + b"x" * 10 + b"\n",
        "stderr": b"careful\n",
        "progress": b'{"fraction": 0.25, "message": "a quarter"}\n{"fraction": 1, "message": ""}\n',
    }
    assert (said.stdout, said.stderr) == (told["stdout"], told["stderr"])


def test_of_a_stream_no_more_is_told_than_is_kept_and_nothing_unless_asked(box_of: Callable[..., DrivenBox]) -> None:
    box = box_of()
    box.load({"main": TELLS})
    box.call(size=10, wait=0)
    quiet = list(box.events)

    box.call(size=500_000, wait=0, stream=True)

    assert quiet == []
    assert sum(len(data) for stream, data in box.events if stream == "stdout") == ROOMY.log_bytes


IMPORTS = """
import email.message as m, os, xml.dom
from concurrent import futures
from . import other
from .decimal import mine
import tool.other as same
try: import no_such_module
except ImportError: pass
def run():
    import colorsys
    return [os.getpid() == other.PID, sorted(os.listdir(os.path.dirname(__file__))), mine]
async def later(): pass
"""


@pytest.mark.parametrize("level", REUSED)
def test_what_the_package_imports_of_others_is_there_before_the_call(
    box_of: Callable[..., DrivenBox], level: str
) -> None:
    box = box_of()
    sources = {"main": IMPORTS, "other": "import os\nPID = os.getpid()", "decimal": "mine = 1", "broken": "def (:"}

    loaded = box.load(sources, level=level)

    assert {"asyncio", "colorsys", "concurrent", "email.message", "os", "xml.dom"} == set(loaded["preloaded"])
    assert box.call().value == [True, ["__init__.py", "broken.py", "decimal.py", "main.py", "other.py"], 1]


@pytest.mark.parametrize("level", LEVELS)
def test_a_thread_that_a_module_begins_waits_for_it_to_be_whole(box_of: Callable[..., DrivenBox], level: str) -> None:
    said = once(box_of(), BEGINS_THREAD.format(module="tool.main"), level=level)

    assert (said.ended, said.value) == (run_monitor.EXITED, ["whole"]), said


@pytest.mark.parametrize("level", LEVELS)
def test_import_hooks_that_a_package_sets_find_its_entry(box_of: Callable[..., DrivenBox], level: str) -> None:
    box = box_of()
    box.load({"main": "def run(): return 'of nobody'"}, level=level, more={"tool/__init__.py": SETS_HOOK})

    said = box.call()

    assert (said.ended, said.value) == (run_monitor.EXITED, "of the hook"), said


PROGRAMS = """
import sys
def run():
    return [sys.path[0], sorted(name for name in sys.modules if name.endswith("__main__"))]
def never():
    from unittest import __main__, case
    from test import autotest
    import unittest.__main__.x
    import json.tool
"""


@pytest.mark.parametrize("level", REUSED)
def test_no_program_is_run_ahead_of_the_call(box_of: Callable[..., DrivenBox], level: str) -> None:
    box, plain = box_of(), box_of()
    plain.load({"main": PROGRAMS.partition("def never")[0]}, level=level)

    loaded = box.load({"main": PROGRAMS}, level=level)

    assert {"json.tool", "sys", "unittest"} == set(loaded["preloaded"])
    assert box.call().value == plain.call().value


def test_random_numbers_differ_from_call_to_call(box_of: Callable[..., DrivenBox]) -> None:
    box = box_of()
    box.load({"main": "import random\ndef run(): return random.random()"}, level="shared")

    assert box.call().value != box.call().value


def test_configuration_and_secrets_reach_the_call(box_of: Callable[..., DrivenBox]) -> None:
    source = "from unitools import runtime\ndef run(): return [runtime.config(), runtime.secret('API_TOKEN')]"

    assert once(box_of(), source).value == [{"region": "eu"}, "a-secret-of-the-tenant"]
