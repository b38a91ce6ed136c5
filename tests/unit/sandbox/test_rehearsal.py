"""Rehearsal: is what a call's process runs rewritten before there is one, and does nothing else come of that?"""

from __future__ import annotations

import subprocess
import sys

from sandbox.image import ROOT

# In an interpreter of its own, where nothing has run before. What Python has rewritten is in the second form of the bytecode.
REHEARSES = """
import dis, os, sys, types
sys.path.insert(0, {root!r})
from sandbox import call, ipc, protocol, rehearsal
paths = call.answer_call, call._encode, call._report, protocol.unpack, protocol.read_json, ipc.receive_message, ipc.send_message
def rewritten():
    codes = [each.__code__ for each in paths]
    return [code._co_code_adaptive != code.co_code for code in codes]
before, open_before = rewritten(), os.listdir("/proc/self/fd")
rehearsal.rehearse_calls(types.SimpleNamespace(limits={{"result_bytes": 1000}}, ground=None))
print(any(before), all(rewritten()), os.listdir("/proc/self/fd") == open_before)
"""


def test_what_each_call_runs_is_rewritten_and_nothing_is_left_open() -> None:
    command = REHEARSES.format(root=str(ROOT))
    done = subprocess.run(
        [sys.executable, "-I", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.stdout, done.stderr) == ("False True True\n", "")
