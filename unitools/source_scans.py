"""Source scans: what Python source names of the world outside: its environment, hosts, programs that install packages.

The source is read as a tree and never run. What is found is a guess for a person to correct: names that are put together while the
source runs are not seen, and what is seen may never be reached.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{1,63}")
_URL = re.compile(r"(?:https?|wss?)://([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?\.[A-Za-z]{2,})(?=[:/?#\s]|$)")
_READERS = {  # functions that are given the name of what they read, and at which place
    "getenv": 0,
    "from_env": 0,
    "secret_from_env": 0,
    "get_from_env": 1,
    "get_from_dict_or_env": 2,
    "EnvVar": 0,
}
_READ_BY_KEY = ("get", "pop", "setdefault")
_INSTALLERS = frozenset({"pip", "pip3", "uv", "poetry", "conda", "npm"})
_INSTALLS = frozenset({"install", "add", "sync"})
# What reaches nothing outside by itself. Whoever imports anything else may do what no tree says.
_PURE = frozenset({
    "__future__", "abc", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "colorsys", "copy", "dataclasses",
    "datetime", "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "html", "itertools", "json", "math",
    "numbers", "operator", "re", "statistics", "string", "textwrap", "typing", "unicodedata",
})  # fmt: skip
_ACTS = frozenset({"__builtins__", "__import__", "breakpoint", "compile", "eval", "exec", "input", "open"})
# A name says last what it holds: AUTH_MODE is a mode. Words that end no other one need no _ in front: PGPASSWORD.
_SECRET = re.compile(
    r"(?:TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?|(?:API|ACCESS|PRIVATE|SECRET)_?KEYS?|SECRET_KEY_BASE"
    r"|(?:^|_)(?:KEYS?|PASS|PWD|PAT|AUTH))(?:_?\d+)?$",
    re.IGNORECASE,
)
# What ends so and is none: a folder, a number of tokens, a key that all may see or that sorts, a switch, git's names of its settings.
_NO_SECRET = re.compile(
    r"PWD|GIT_CONFIG_KEY_\d+|(?:.*_)?(?:MAX|MIN|NUM)_(?:.*_)?TOKENS|.*(?:PUBLIC|PUBLISHABLE)_?KEYS?"
    r"|(?:.*_)?(?:PRIMARY|FOREIGN|SORT|PARTITION|CACHE)_KEYS?|(?:.*_)?(?:DISABLE|ENABLE|USE|NO|SKIP|OMIT|REQUIRE|ALLOW)_(?:.*_)?AUTH",
    re.IGNORECASE,
)


@dataclass(slots=True)
class SourceScan:
    """Each by the place that names it first, ``file:line``. ``imports``: top-level names, ``.`` for a relative one; ``acts``: whether
    it opens a file or runs text as code; ``is_whole``: whether all that was to be read was."""

    environment: dict[str, str] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    installs: dict[str, str] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    acts: bool = False
    is_whole: bool = True

    def add(self, source: str, file: str) -> None:
        """What another file names. What cannot be read as Python names nothing, and may do anything."""
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.is_whole = False
            return
        texts = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}  # docstrings run nothing
        for node in ast.walk(tree):
            place = f"{file}:{getattr(node, 'lineno', 0)}"
            for name in _read_names(node):
                self.environment.setdefault(name, place)
            match node:
                case ast.Constant(value=str(text)) if id(node) not in texts:
                    for host in _URL.findall(text):
                        self.hosts.setdefault(host.lower(), place)
                case ast.List(elts=parts) | ast.Tuple(elts=parts) if said := _find_install(parts):
                    self.installs.setdefault(said, place)
                case ast.Import(names=names):
                    self.imports.update(each.name.partition(".")[0] for each in names)
                case ast.ImportFrom(module=str(module), level=0):
                    self.imports.add(module.partition(".")[0])
                case ast.ImportFrom():
                    self.imports.add(".")
                case ast.Name(id=name) if name in _ACTS:
                    self.acts = True


def is_secret_name(name: str) -> bool:
    """Whether a name of the environment looks like that of a credential."""
    return _SECRET.search(name) is not None and _NO_SECRET.fullmatch(name) is None


def guess_effect(scan: SourceScan) -> str:
    """What a person is asked to say better. ``None`` is guessed only where all of it was read and nothing in it can reach outside."""
    names_something = scan.acts or scan.hosts or scan.environment or scan.installs
    return "None" if scan.is_whole and scan.imports <= _PURE and not names_something else "Write"


def _read_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Subscript(value=target, slice=ast.Constant(value=str(name))) if _is_environment(target):
            yield from _NAME.findall(name)[:1]
        case ast.Call(func=ast.Attribute(value=target, attr=how), args=[ast.Constant(value=str(name)), *_]) if (
            how in _READ_BY_KEY and _is_environment(target)
        ):
            yield from _NAME.findall(name)[:1]
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=args, keywords=words) if (
            called in _READERS
        ):
            place = _READERS[called]
            said = args[place : place + 1] + [each.value for each in words if each.arg in ("name", "key", "env_key")]
            for each in said:
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and _NAME.fullmatch(each.value):
                    yield each.value


def _is_environment(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )


def _find_install(parts: list[ast.expr]) -> str:
    """``uv add x`` of a command that is written out; empty for any other list."""
    words = [each.value for each in parts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return " ".join(words) if _INSTALLERS & set(words) and _INSTALLS & set(words) else ""
