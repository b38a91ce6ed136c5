"""File exchange: how files come into one call, and out of it again.

The tool's process opens its folder for files before anything of a tool is loaded, and hands it to the first process of the
box: so also where the folder is in a mount namespace that ends with the call. It comes from a process that is not trusted
any more than the tool, so it is looked at first: only a folder in memory is one.
"""

from __future__ import annotations

import ctypes
import os

from sandbox import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TMPFS = 0x01021994
_libc = ctypes.CDLL(None, use_errno=True)


class FileExchange:
    """The folder for files of one call."""

    def __init__(self, folder: int, rules: list[dict[str, Any]], limits: dict[str, int]) -> None:
        about = (ctypes.c_long * 32)()
        if _libc.fstatfs(folder, about) or about[0] != _TMPFS:
            raise OSError("This is no folder for files.")
        self._folder, self._rules, self._limits = folder, rules, limits
        self._before: dict[str, tuple[int, int, int]] = {}

    def lay_out(self, inputs: list[dict[str, Any]], contents: list[bytes]) -> None:
        paths = [str(each["path"]) for each in inputs]
        files.lay_out(self._folder, list(zip(paths, contents, strict=True)))
        self._before = files.snapshot_files(self._folder, paths)

    def collect(self) -> files.CollectedFiles:
        """What a call has left, when nothing of it is alive any more."""
        return files.collect_files(
            self._folder,
            self._rules,
            self._before,
            most=self._limits["files"],
            most_bytes=self._limits["file_bytes"],
        )

    def close(self) -> None:
        os.close(self._folder)
