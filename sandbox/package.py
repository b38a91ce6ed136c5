"""What is in a tool's package, and what does it import from others?

The package is written where nobody may change it, with the bytecode of each module beside it. Its code is compiled here and
read, never run: the names of the modules that it imports are in the code objects.
"""

from __future__ import annotations

import _imp
import importlib.util
import os
import sys
from contextlib import suppress
from importlib import _bootstrap_external
from importlib.machinery import PathFinder
from opcode import opmap
from types import CodeType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DEPENDENCIES = "/deps"

_IMPORT_NAME, _LOAD_CONST, _EXTENDED = opmap["IMPORT_NAME"], opmap["LOAD_CONST"], opmap["EXTENDED_ARG"]
_COROUTINE = 0x80 | 0x200  # inspect.CO_COROUTINE, CO_ASYNC_GENERATOR
_NOT_FOR_US = {"__main__", "antigravity", "idlelib", "this", "turtle", "turtledemo"}
_MAX_PRELOADED = 200
_MAX_DEPTH = 50

Import = tuple[str, tuple[str, ...]]  # a module, and the names taken from it


def write_package(names: list[str], contents: list[bytes], place: str, *, bytecode: bool = False) -> list[CodeType]:
    """Write the package's files so that nobody may change them. Returns the code of its modules, with ``bytecode``.

    Bytecode that was brought along is left out: what runs is what the sources say.
    """
    os.chmod(place, 0o700)  # engines give a mounted folder the mode of the folder below it
    folders = {place}
    codes = []
    for name, content in zip(names, contents, strict=True):
        parts = name.split("/")
        if {"", ".", ".."}.intersection(parts):
            raise ValueError(f"A package holds plain files below one folder, not {name!r}.")
        if "__pycache__" in parts:
            continue
        path = f"{place}/{name}"
        _make_folder(os.path.dirname(path), folders)
        _write(path, content)
        if bytecode and name.endswith(".py"):
            code = _compiled(path, content)
            if code is not None:
                codes.append(code)
                cached = importlib.util.cache_from_source(path)
                _make_folder(os.path.dirname(cached), folders)
                with suppress(OSError):  # no room: then the source it is
                    _write(cached, _as_file(code, content))
    for folder in folders:
        os.chmod(folder, 0o555)
    return codes


def _make_folder(path: str, folders: set[str]) -> None:
    if path not in folders:
        _make_folder(os.path.dirname(path), folders)
        os.mkdir(path, 0o700)
        folders.add(path)


def _write(path: str, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        os.fchmod(fd, 0o444)
    finally:
        os.close(fd)


def _compiled(path: str, source: bytes) -> CodeType | None:
    try:
        code: CodeType = compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # the call will say so
    return code


def _as_file(code: CodeType, source: bytes) -> bytes:
    """As the import system writes it, with the word not to look at the source again."""
    digest = _imp.source_hash(importlib.util._RAW_MAGIC_NUMBER, source)  # type: ignore[attr-defined]
    data: bytearray = _bootstrap_external._code_to_hash_pyc(code, digest, False)  # type: ignore[attr-defined]
    return bytes(data)


def preload(codes: list[CodeType], own: list[str]) -> list[str]:
    """Import what these modules import of the standard library and of the dependencies; returns the modules' names.

    ``own`` are the package's files: its own modules are never imported here. What fails to be imported is left to the call.
    """
    ours = {name.split("/", 1)[0].removesuffix(".py") for name in own}
    foreign = _top_levels(DEPENDENCIES)
    wanted: dict[Import, None] = {}
    for code in codes:
        wanted.update(dict.fromkeys(_imports_of(code)))
    done: dict[str, None] = {}
    for name, names in list(wanted)[:_MAX_PRELOADED]:
        top = name.partition(".")[0]
        if top in ours or top in _NOT_FOR_US or top not in sys.stdlib_module_names | foreign:
            continue
        if name.endswith(".__main__"):  # a program, and no module
            continue
        with suppress(Exception, SystemExit, KeyboardInterrupt):
            __import__(name, fromlist=names)
            done[name] = None
    return list(done)


def look_around(folder: str) -> None:
    """Let the import system find out what lies in a folder and below it, before a module is looked for there."""
    for place, _, _ in os.walk(folder):
        PathFinder.find_spec("", [place])


def _top_levels(folder: str) -> set[str]:
    """Names that can be imported from a folder: a package's folder, a module, an extension."""
    with suppress(OSError):
        return {name.partition(".")[0] for name in os.listdir(folder) if not name.endswith((".dist-info", ".data"))}
    return set()


def _imports_of(code: CodeType, depth: int = 0) -> Iterator[Import]:
    """Absolute imports, also those inside functions."""
    if code.co_flags & _COROUTINE:
        yield "asyncio", ()
    extended = 0
    constants: list[object] = [
        None,
        None,
    ]  # the last two that were loaded: how relative an import is, and what it takes
    for operation, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument |= extended
        extended = argument << 8 if operation == _EXTENDED else 0
        if operation == _LOAD_CONST:
            constants = [constants[1], code.co_consts[argument]]
        elif operation == _IMPORT_NAME and constants[0] == 0:
            names = constants[1] if isinstance(constants[1], tuple) else ()
            yield code.co_names[argument], tuple(name for name in names if isinstance(name, str) and name != "*")
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and depth < _MAX_DEPTH:
            yield from _imports_of(constant, depth + 1)
