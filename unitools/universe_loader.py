"""Universe loader: the Universe that a file holds, and the code that belongs to it.

A file inside a Python package stands for the whole package; any other file stands for itself, and imports nothing that lies beside it.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unitools.packages import PackageError, read_package_files
from unitools.universe import Universe

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType

_WORD = re.compile(r"[a-z_][a-z0-9_]*")


class CannotLoad(ValueError):
    """A file that holds no Universe that can be had, with a sentence."""


@dataclass(frozen=True, slots=True)
class LoadedUniverse:
    """``attribute`` of the module ``words`` is the Universe. ``files``: of the package ``words[0]``, or of the one file."""

    universe: Universe
    attribute: str
    words: tuple[str, ...]
    files: Mapping[str, bytes]

    @property
    def is_package(self) -> bool:
        return len(self.words) > 1


def load_universe(path: Path, attribute: str = "") -> LoadedUniverse:
    """Imports the file, so its code runs. ``attribute``: which Universe, where it holds several."""
    path = path.resolve()
    if path.is_dir():
        path /= "__init__.py"
    if path.suffix != ".py" or not path.is_file():
        raise CannotLoad(f"{path} is no Python file.")
    top = path.parent if path.name == "__init__.py" else path
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    words = _words(path, top)
    if not all(_WORD.fullmatch(word) for word in words):
        raise CannotLoad(f"A hub takes modules whose names are small letters, digits and _; this is {'.'.join(words)}.")
    try:
        module = _imported(path, top, words)
        files = read_package_files(top) if top.is_dir() else [(path.name, path.read_bytes())]
    except PackageError as error:
        raise CannotLoad(str(error)) from error
    except ImportError as error:
        raise CannotLoad(f"{path.name} cannot be imported: {error}.") from error
    name = attribute or _only_universe(module, path)
    universe = getattr(module, name, None)
    if not isinstance(universe, Universe):
        raise CannotLoad(f"{path.name} has no Universe called {name}.")
    return LoadedUniverse(universe, name, words, dict(files))


def _words(path: Path, top: Path) -> tuple[str, ...]:
    inner = path.parent if path.name == "__init__.py" else path.with_suffix("")
    if not top.is_dir():
        return (inner.name,)
    words = (top.name, *inner.relative_to(top).parts)
    return words if len(words) > 1 else (top.name, "__init__")


def _imported(path: Path, top: Path, words: tuple[str, ...]) -> ModuleType:
    if top.is_dir():
        sys.path.insert(0, str(top.parent))
        try:
            return importlib.import_module(".".join(word for word in words if word != "__init__"))
        finally:
            sys.path.remove(str(top.parent))
    spec = importlib.util.spec_from_file_location(words[0], path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(words[0])
    sys.modules[words[0]] = module  # dataclasses and annotations look for it there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(words[0], None)
        if before is not None:
            sys.modules[words[0]] = before
        raise
    return module


def _only_universe(module: ModuleType, path: Path) -> str:
    found = {name: held for name, held in vars(module).items() if isinstance(held, Universe)}
    if len({id(each) for each in found.values()}) != 1:
        names = ", ".join(found) or "none"
        raise CannotLoad(f"{path.name} has to hold one Universe, and has {names}. Name one with --universe.")
    return next(iter(found))
