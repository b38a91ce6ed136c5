from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sandbox import siblings
from sandbox.image import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MAKES = """
import os, sys, threading
sys.path.insert(0, {root!r})
from sandbox import siblings
siblings._OURS = ("/",)
here = os.getpid()
if os.fork() == 0:
    made = siblings.Siblings.of_this_process()
    assert made.make(lambda: os._exit(7 if os.getppid() == here else 1))
    assert made.make(lambda: 1 / 0)  # it goes no further than this
    os._exit(0)
print(sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(3)))
threading.Thread(target=threading.Event().wait, daemon=True).start()
print(siblings.Siblings.of_this_process())
"""


def test_the_parent_of_the_maker_is_told_how_it_ended() -> None:
    command = MAKES.format(root=str(ROOT))
    done = subprocess.run(
        [sys.executable, "-I", "-c", command], capture_output=True, text=True, timeout=30, check=False
    )

    assert done.stdout == "[0, 0, 7]\nNone\n", done.stderr


@pytest.mark.parametrize("place", [0, siblings._PIECE_BYTES - 3, siblings._PIECE_BYTES, 2 * siblings._PIECE_BYTES - 7])
def test_a_library_that_asks_is_known_wherever_it_says_so(tmp_path: Path, place: int) -> None:
    library = tmp_path / "library.so"

    library.write_bytes(bytes(place) + b"pthread_atfork" + bytes(50))
    assert siblings._asks(str(library))

    library.write_bytes(bytes(place) + b"os.register_at_fork" + bytes(50))
    assert not siblings._asks(str(library))
