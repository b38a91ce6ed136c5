"""Is anything of a call left in its scratch space?

What a tool left is deleted within a bounded time, without following anything; what cannot be deleted ends the box.
"""

from __future__ import annotations

import os
import stat
import time

from sandbox.hints import WORK

_PATIENCE_S = 0.1


class Scratch:
    """The scratch space of the box, as the first process of the box sees it."""

    def __init__(self, place: str = WORK) -> None:
        self._place = place
        self._mode = 0o700

    def limit(self, size: int) -> None:
        """Without a size nothing may be written there."""
        self._mode = 0o700 if size else 0o500
        os.chmod(self._place, self._mode)

    def clear(self) -> bool:
        """Empty it. False when that did not work in time."""
        try:
            if stat.S_IMODE(os.stat(self._place).st_mode) != self._mode:
                os.chmod(self._place, 0o700)
            if os.listdir(self._place):
                os.chmod(self._place, 0o700)
                self._delete_all(time.monotonic() + _PATIENCE_S)
                os.chmod(self._place, self._mode)
            return not os.listdir(self._place)
        except OSError:
            return False

    def _delete_all(self, deadline: float) -> None:
        """Depth first, with a list of its own: a tool makes trees deeper than a stack."""
        waiting = [self._place]
        while waiting:
            folder = waiting[-1]
            os.chmod(folder, 0o700, follow_symlinks=True)
            below = []
            with os.scandir(folder) as entries:
                for entry in entries:
                    if time.monotonic() > deadline:
                        raise TimeoutError
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
                    else:
                        os.unlink(entry.path)
            if below:
                waiting += below
            else:
                waiting.pop()
                if waiting:
                    os.rmdir(folder)
