"""Package: what is in that of a tool, and what it imports from others.

The package is written where nobody may change it. Its code is compiled here and read, never run: the names of the modules
that it imports are in the code objects. They are held for the calls, which then neither compile nor read anything.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib._bootstrap import _get_module_lock  # type: ignore[attr-defined]  # which import_module takes
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    PathFinder,
    SourceFileLoader,
)
from importlib.util import module_from_spec
from opcode import opmap
from types import CodeType

from unitools.brought_objects import MADE_FILE, SOURCE_FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

DEPENDENCIES = "/deps"

_IMPORT_NAME, _LOAD_CONST, _EXTENDED = opmap["IMPORT_NAME"], opmap["LOAD_CONST"], opmap["EXTENDED_ARG"]
_COROUTINE = 0x80 | 0x200  # inspect.CO_COROUTINE, CO_ASYNC_GENERATOR
_NOT_FOR_US = {"antigravity", "idlelib", "test", "this", "turtle", "turtledemo"}  # importing them does something
_PARTS_NOT_FOR_US = {"test", "tests"}
_MAX_PRELOADED = 200
_MAX_DEPTH = 50

Import = tuple[str, tuple[str, ...]]  # a module, and the names taken from it


def write_package(names: list[str], contents: list[bytes], place: str) -> None:
    """Write the package's files so that nobody may change them.

    Bytecode that was brought along is left out: what runs is what the sources say.
    """
    os.chmod(place, 0o700)  # engines give a mounted folder the mode of the folder below it
    folders = {place}
    for name, content in zip(names, contents, strict=True):
        parts = name.split("/")
        if {"", ".", ".."}.intersection(parts):
            raise ValueError(f"A package holds plain files below one folder, not {name!r}.")
        if "__pycache__" in parts:
            continue
        path = f"{place}/{name}"
        _make_folder(os.path.dirname(path), folders)
        _write(path, content)
    for folder in folders:
        os.chmod(folder, 0o555)


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


def compile_package(names: list[str], contents: list[bytes], place: str) -> dict[str, CodeType]:
    """The code of the package's modules, by their paths. What cannot be compiled is left to the call, which will say so."""
    codes = {}
    for name, content in zip(names, contents, strict=True):
        if name.endswith(".py"):
            path = f"{place}/{name}"
            with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                codes[path] = compile(content, path, "exec", dont_inherit=True)
    return codes


class _CodeLoader(SourceFileLoader):
    """Loads from the code that is held, and from the source what is not."""

    held: dict[str, CodeType]

    def get_code(self, fullname: str) -> CodeType | None:
        return self.held.get(self.path) or super().get_code(fullname)


class PackageFinder:
    """Finds the package's modules, and asks nobody else for them. Those whose code is held are found now."""

    def __init__(self, place: str, own: set[str], codes: dict[str, CodeType]) -> None:
        self._own, self._place = own, place
        loader = type("_CodeLoader", (_CodeLoader,), {"held": codes})
        for folder, _, _ in os.walk(place):
            finder = FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES), (loader, SOURCE_SUFFIXES))
            finder.find_spec("")  # it looks around now
            sys.path_importer_cache[folder] = finder
        self._found: dict[str, tuple[ModuleSpec, str]] = {}
        for path in codes:
            self._find_now(path)

    def _find_now(self, path: str) -> None:
        """What a call finds when it imports this file."""
        words = path.removeprefix(f"{self._place}/").removesuffix(".py").removesuffix("/__init__").split("/")
        name, folder = ".".join(words), "/".join([self._place, *words[:-1]])
        spec = PathFinder.find_spec(name, [folder])
        if spec is not None and spec.origin == path:
            _ = spec.cached  # is made up when it is first asked for
            self._found[name] = spec, folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name in self._found:
            spec, folder = self._found[name]
            if path is None or path == [folder]:
                return spec
        if path is None and name in self._own:
            return PathFinder.find_spec(name, [self._place])
        return None

    def make_modules(self) -> HeldModules:
        """Those whose code is held."""
        return HeldModules(self, self._found)


class HeldModules:
    """Modules that are made, and not run: a call runs those that its entry stands in, and needs of the import system only what is left
    to do then. That system is large, and what of it a call runs is copied for it, page by page. Whatever is not as expected is left to
    it, and so is each import of the modules themselves.
    """

    def __init__(self, finder: PackageFinder, found: dict[str, tuple[ModuleSpec, str]]) -> None:
        self._finder = finder
        self._made: dict[str, tuple[ModuleType, Any, str]] = {
            name: (module_from_spec(spec), spec, folder) for name, (spec, folder) in found.items()
        }
        # Those that imports take, as long as somebody holds them: to make one costs a call more than to take it.
        self._locks = {name: _get_module_lock(name) for name in self._made}
        self._codes = {name: spec.loader.get_code(name) for name, (_, spec, _) in self._made.items()}

    def find_entry(self, head: dict[str, Any]) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self._run(head["module"]), head["entry"])
        return found

    def _run(self, name: str) -> ModuleType:
        """As ``importlib.import_module``, with its lock: a thread that the module begins waits for it to be whole."""
        if name not in self._made:
            return import_module(name)
        lock = self._locks[name]
        lock.acquire()
        try:
            return self._run_made(name)
        finally:
            lock.release()

    def _run_made(self, name: str) -> ModuleType:
        above, _, own = name.rpartition(".")
        parent = sys.modules.get(above) or self._run(above) if above else None
        if name in sys.modules or not self._would_be_found(name, parent):  # the former perhaps by what is above it
            return import_module(name)
        module, spec, _ = self._made[name]
        sys.modules[name] = module
        # Who imports it meanwhile is told that it is not whole.
        spec._initializing = True
        try:
            exec(self._codes[name], module.__dict__)  # the tool's, in the tool's process
        except BaseException:
            sys.modules.pop(name, None)
            raise
        finally:
            spec._initializing = False
        module = sys.modules[name]  # which may have put another in its place
        if parent is not None:
            setattr(parent, own, module)
        return module

    def _would_be_found(self, name: str, parent: ModuleType | None) -> bool:
        """Whether an import would find what was made: nothing has been put before our finder, nor were those of ``parent`` moved."""
        if sys.meta_path[:1] != [self._finder]:
            return False
        return parent is None or getattr(parent, "__path__", None) == [self._made[name][2]]


def find_top_levels(names: list[str]) -> set[str]:
    """What the package's files are imported by."""
    return {name.split("/", 1)[0].removesuffix(".py") for name in names}


def select_preloading(codes: dict[str, CodeType], names: list[str], place: str) -> list[CodeType]:
    """The codes whose imports are worth having before a call. An author's modules that were brought are imported in the call, after
    its secrets: what they import may read those while it is imported.
    """
    brought = [f"{place}/{name.removesuffix(MADE_FILE)}{SOURCE_FOLDER}/" for name in names if _is_made_file(name)]
    return [code for path, code in codes.items() if not path.startswith(tuple(brought))]


def _is_made_file(name: str) -> bool:
    return name.count("/") == 1 and name.endswith(f"/{MADE_FILE}")


def preload_imports(codes: list[CodeType], own: set[str]) -> list[str]:
    """Import what these modules import of the standard library, the SDK and the dependencies; returns the modules' names.

    ``own`` modules are never imported here. What fails to be imported is left to the call.
    """
    foreign = _top_levels_in(DEPENDENCIES) | {"unitools"}
    wanted: dict[Import, None] = {}
    for code in codes:
        wanted.update(dict.fromkeys(imports_of(code)))
    done: dict[str, None] = {}
    for name, names in list(wanted)[:_MAX_PRELOADED]:
        top = name.partition(".")[0]
        if top in own or top in _NOT_FOR_US or top not in sys.stdlib_module_names | foreign or is_program(name):
            continue
        names = tuple(each for each in names if not is_program(each))  # each may be a module
        with suppress(Exception, SystemExit, KeyboardInterrupt):
            __import__(name, fromlist=names)
            done[name] = None
    return list(done)


def is_program(name: str) -> bool:
    """A ``__main__``, or a test: to import it is to run it."""
    parts = name.split(".")
    return any(part in _PARTS_NOT_FOR_US or (part.startswith("__") and part != "__future__") for part in parts)


def _top_levels_in(folder: str) -> set[str]:
    """Names that can be imported from a folder: a package's folder, a module, an extension."""
    with suppress(OSError):
        return {name.partition(".")[0] for name in os.listdir(folder) if not name.endswith((".dist-info", ".data"))}
    return set()


def imports_of(code: CodeType, package: str = "", depth: int = 0) -> Iterator[Import]:
    """Absolute imports, also those inside functions; of a module of ``package`` the relative ones too, by their full names."""
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
        elif operation == _IMPORT_NAME and isinstance(constants[0], int):
            name = _full_name(code.co_names[argument], constants[0], package)
            names = constants[1] if isinstance(constants[1], tuple) else ()
            if name:
                yield name, tuple(name for name in names if isinstance(name, str) and name != "*")
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and depth < _MAX_DEPTH:
            yield from imports_of(constant, package, depth + 1)


def _full_name(name: str, dots: int, package: str) -> str:
    """Empty where it is relative to nothing."""
    if dots == 0:
        return name
    words = package.split(".") if package else []
    if dots > len(words):
        return ""
    return ".".join([*words[: len(words) - dots + 1], *([name] if name else [])])
