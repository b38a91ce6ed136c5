"""Server imports: what the server of a package of others imports, found without running anything of it.

A server imports much of what it needs inside functions, when it is started. The code objects of its modules name all of it, so
that it can be in memory before the first call.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from importlib.machinery import SourceFileLoader

from sandbox.package import DEPENDENCIES, Import, imports_of, is_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import CodeType

MAIN = "__main__"
_MAX_MODULES = 200
_MAX_IMPORTS = 400
# What libraries of servers import by a name that they make up when they run.
_BY_NAME = {"anyio": "anyio._backends._asyncio", "uvloop": "asyncio", "mcp": "mcp.server.stdio"}


class ServerImports:
    """``own``: the server's modules, in the order in which they are met; ``foreign``: what they import of others."""

    def __init__(self, module: str, folder: str = DEPENDENCIES) -> None:
        self._folder, self._top = folder, module.partition(".")[0]
        self.own: dict[str, None] = {}
        self.foreign: dict[Import, None] = {}
        waiting = [f"{module}.{MAIN}", module]
        while waiting and len(self.own) < _MAX_MODULES:
            name = waiting.pop()
            code = self._code_of(name)
            if code is None or name in self.own:
                continue
            self.own[name] = None
            waiting += self._note_imports(code, name)

    def import_foreign(self, only: Collection[str] | None = None) -> None:
        """What the standard library and other packages give to it, of ``only`` these. What fails is left to the call."""
        for name, names in list(self.foreign)[:_MAX_IMPORTS]:
            if not is_program(name) and (only is None or name.partition(".")[0] in only):
                _import_quietly(name, tuple(each for each in names if not is_program(each)))
        for name, late in _BY_NAME.items():
            if name in sys.modules:
                _import_quietly(late, ())

    def import_own(self) -> None:
        """The server's modules but for those that run when they are imported. Those that open something do it in each call: what is
        opened here is closed before a call, and would be shared by all of them.
        """
        before = _list_open()
        for name in self.own:
            if not is_program(name):
                _import_quietly(name, ())
        if _list_open() - before:
            for name in [each for each in sys.modules if each.partition(".")[0] == self._top]:
                del sys.modules[name]
            gc.collect()  # files that nobody holds are closed now, and not when their numbers are those of others

    def _note_imports(self, code: CodeType, name: str) -> Iterator[str]:
        package = name if self._path_of(name).endswith("/__init__.py") else name.rpartition(".")[0]
        for found, names in imports_of(code, package):
            if found.partition(".")[0] == self._top:
                yield from (*(f"{found}.{each}" for each in names), found)
            else:
                self.foreign[found, names] = None

    def _path_of(self, name: str) -> str:
        place = f"{self._folder}/{name.replace('.', '/')}"
        return f"{place}/__init__.py" if os.path.isfile(f"{place}/__init__.py") else f"{place}.py"

    def _code_of(self, name: str) -> CodeType | None:
        """None for what is no file of the package: a name that a module defines, an extension."""
        path = self._path_of(name)
        if os.path.isfile(path):
            with suppress(ImportError, SyntaxError, ValueError, RecursionError, OSError):
                return SourceFileLoader(name, path).get_code(name)
        return None


def _list_open() -> set[tuple[str, str]]:
    """What is open, by number and what it leads to."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the list itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


def _import_quietly(name: str, names: tuple[str, ...]) -> None:
    with suppress(Exception, SystemExit, KeyboardInterrupt):
        __import__(name, fromlist=names)
