"""Hostile packages: which packages do harm by being loaded, before any function of theirs is called?

A box writes a package to its own file system, compiles it, looks into the compiled code for what it imports, and imports
the standard modules of that ahead of the call. Everything here is aimed at one of these steps, or at the import itself.
Each entry is a package: names and contents as they are in the archive. Its module ``hostile.main`` is asked for ``run``.
"""

from __future__ import annotations

import io
import marshal
import py_compile
import sys
import tempfile
import zipfile
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import TYPE_CHECKING

from invocations.sandbox.base import RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable


def _lines(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def _never(modules: Iterable[str]) -> str:
    """Asks for them in a function that nobody calls."""
    return HARMLESS + _lines("def never():", *(f"    import {name}" for name in modules))


HARMLESS = "def run(): return []\n"
_EVERYBODY = "for pid in range(2, 100):"

# What a tool's own code does to its own process while it is imported.
SOURCES = {
    "forks": _lines("import os, time", "if os.fork() == 0: time.sleep(60)", HARMLESS),
    "leaves a process": _lines(
        "import os, time", "if os.fork() == 0:", "    os.setsid()", "    time.sleep(60)", HARMLESS
    ),
    "hangs": "while True: pass",
    "sleeps": _lines("import time", "time.sleep(60)"),
    "exits": _lines("import os", "os._exit(0)"),
    "leaves by an exit": "raise SystemExit(0)",
    "raises what nobody catches": _lines("class Bad(BaseException):", "    def __str__(self): raise Bad", "raise Bad"),
    "is killed": _lines("import os, signal", "os.kill(os.getpid(), signal.SIGKILL)"),
    "kills everybody": _lines(
        "import os", _EVERYBODY, "    try: pid != os.getpid() and os.kill(pid, 9)", "    except OSError: pass", HARMLESS
    ),
    "stops everybody": _lines(
        "import os",
        _EVERYBODY,
        "    try: pid != os.getpid() and os.kill(pid, 19)",
        "    except OSError: pass",
        HARMLESS,
    ),
    "floods": _lines("import os", "while True: os.write(1, b'x' * 65536)"),
    "takes all memory": _lines("held = []", "while True: held.append(bytearray(1 << 20))"),
    "takes all processes": _lines(
        "import os, time",
        "try:",
        "    while True:",
        "        if os.fork() == 0: time.sleep(60)",
        "except OSError: pass",
        HARMLESS,
    ),
    "fills the scratch space": _lines(
        "try: open('/w/x', 'wb').write(bytes(64 << 20))", "except OSError: pass", HARMLESS
    ),
    "reports by itself": _lines(
        "import json, os, struct",
        "rest = json.dumps({'report': {}, 'attempts': [], 'error': {'type': '', 'message': ''}}).encode()",
        "os.write(3, b'L' + struct.pack('!BII', 1, 10, len(rest)) + b'[1, 2, 3 ]' + rest)",
        "import time",
        "time.sleep(60)",
    ),
    "is loaded for ever": _lines("import os", "while True: os.write(3, b'L')"),
    "replaces the import": _lines("import builtins", "builtins.__import__ = lambda *a, **k: 1 / 0", HARMLESS),
    "replaces what decodes": _lines("import json", "json.loads = lambda *a: {'a': 1}", "def run(**a): return []"),
    "hangs every event": _lines("import sys, time", "sys.addaudithook(lambda *a: time.sleep(60))", HARMLESS),
    "ends at every event": _lines(
        "import sys", "def hook(*a): raise SystemExit(0)", "sys.addaudithook(hook)", HARMLESS
    ),
    "traces": _lines("import sys", "sys.settrace(lambda *a: 1 / 0)", "sys.setprofile(lambda *a: 1 / 0)", HARMLESS),
    "puts another in its place": _lines(
        "import sys",
        "class Module:",
        "    def __getattr__(self, name): return lambda: []",
        "sys.modules[__name__] = Module()",
    ),
    "gives a function that is none": _lines(
        "class Run:",
        "    def __call__(self): return []",
        "    def __getattribute__(self, name): raise SystemExit",
        "run = Run()",
    ),
    "waits when it is thrown away": _lines(
        "import time",
        "class Slow:",
        "    def __del__(self): time.sleep(60)",
        "kept = [Slow()]",
        "kept.append(kept)",
        HARMLESS,
    ),
    "asks for modules with effects": _never(
        (
            "antigravity",
            "this",
            "idlelib.idle",
            "turtledemo.__main__",
            "test.autotest",
            "test.__main__",
            "lib2to3.__main__",
            "ensurepip.__main__",
            "unittest.__main__",
            "__main__",
            "site",
            "sitecustomize",
            "pdb",
            "zipfile.__main__",
            "webbrowser",
            "turtle",
            "tkinter.__main__",
            "multiprocessing.resource_tracker",
            "asyncio.__main__",
            "faulthandler",
            "readline",
            "crypt",
        ),
    ),
    "asks for what runs the box": _never(
        (
            "sandbox.supervisor",
            "sandbox.zygote",
            "sandbox.call",
            "sandbox.relay",
            "sandbox.programs",
            "unitools.runtime",
            "hostile.main",
            "hostile.poison",
        ),
    ),
    "asks for ten thousand modules": _never(f"m{number}.n{number}" for number in range(10_000)),
    "asks for modules with long names": _never((".".join(["a"] * 5_000), "b" * 50_000, "os." + "path." * 500 + "x")),
}

# What breaks a compiler, or takes it for ever. These may be compiled before any call has begun.
UNCOMPILABLE = {
    "is no Python": "this is no Python",
    "has NUL in it": "def run(): return []\0",
    "is deep": "x = " + "(" * 100_000 + ")" * 100_000,
    "is deep in another way": _lines("x = " + "-" * 200_000 + "1", HARMLESS),
    "is one long sum": _lines("x = " + "+".join(["1"] * 100_000), HARMLESS),
    "is one long chain": _lines("x = a" + ".a" * 200_000, HARMLESS),
    "is indented for ever": _lines(*(f"{' ' * depth}if 1:" for depth in range(2_000))),
    "has a number of a million digits": _lines(f"x = {'9' * 1_000_000}", HARMLESS),
    "has large constants": _lines(
        "x = [" + ", ".join(["(1 << 4000) * (1 << 4000)", "'x' * 4096", "(1,) * 250"] * 5_000) + "]", HARMLESS
    ),
    "has a coding of its own": _lines("# coding: rot13", HARMLESS),
    "has a coding that nobody knows": _lines("# coding: \x00", HARMLESS),
    "has many lambdas": _lines("x = " + "lambda: " * 20_000 + "1", HARMLESS),
    "has many loops in one": _lines("x = [1 " + "for a in b " * 5_000 + "]", HARMLESS),
}


def _archive(files: dict[str, bytes | str], *, links: dict[str, str] | None = None) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
        for name, target in (links or {}).items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o120777 << 16
            archive.writestr(entry, target)
    return memory.getvalue()


def package_of_source(source: str) -> bytes:
    poison = _lines("import os", "os.kill(1, 9)", "os._exit(3)")
    return _archive({"hostile/__init__.py": "", "hostile/main.py": source, "hostile/poison.py": poison})


def _compiled(source: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "main.py")
        path.write_text(source)
        done = py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        return Path(done or "").read_bytes()


_TAG = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
_FORGED = _compiled("def run(): return ['not what the source says']")
_BROKEN = MAGIC_NUMBER + b"\1" + bytes(11) + marshal.dumps((0,) * 10)[:5] + b"\xff" * 200
_BASE: dict[str, bytes | str] = {"hostile/__init__.py": "", "hostile/main.py": HARMLESS}
_OTHERS: dict[str, bytes | str] = dict.fromkeys(
    (
        "json.py", "json/__init__.py", "os.py", "sitecustomize.py", "usercustomize.py", "x.pth", "unitools/runtime.py",
        "sandbox/call.py",
    ),
    "raise SystemExit('not mine')",
)  # fmt: skip

ARCHIVES = {
    "byte code that is not its source": _archive(_BASE | {f"hostile/__pycache__/main.{_TAG}.pyc": _FORGED}),
    "byte code that breaks its reader": _archive(_BASE | {f"hostile/__pycache__/main.{_TAG}.pyc": _BROKEN}),
    "byte code without a source": _archive({"hostile/__init__.py": "", "hostile/main.pyc": _BROKEN}),
    "a library of the machine": _archive(
        {"hostile/__init__.py": "", f"hostile/main.{_TAG}-x86_64-linux-gnu.so": b"\x7fELF" + bytes(4096)}
    ),
    "modules of others": _archive(_BASE | _OTHERS),
    "paths that climb": _archive(_BASE | {"hostile/../../opt/toolhub/sandbox/call.py": "raise SystemExit"}),
    "paths from the root": _archive(_BASE | {"/opt/toolhub/sandbox/call.py": "raise SystemExit", "//w/x": "x"}),
    "paths of nothing": _archive(_BASE | {"hostile//x.py": "", "hostile/./y.py": "", "hostile/.": "x"}),
    "paths that are odd": _archive(
        _BASE | {"hostile/\n.py": "", "hostile/\x7f\u202e.py": "", "hostile/" + "x" * 300 + ".py": ""}
    ),
    "a path of a thousand folders": _archive(_BASE | {"hostile/" + "d/" * 1000 + "x.py": ""}),
    "a file that is a folder": _archive(_BASE | {"hostile/main.py/x.py": "x"}),
    "links": _archive(_BASE, links={"hostile/passwd.py": "/etc/passwd", "hostile/runner": "/opt/toolhub/sandbox"}),
    "more files than there is room for": _archive(_BASE | {f"hostile/m{number}.py": "" for number in range(9_000)}),
    "more bytes than there is room for": _archive(
        _BASE | {f"hostile/m{number}.py": b"#" * (1 << 20) for number in range(23)}
    ),
}

# The tool may do what it likes to itself; it must end, soon, as one of these.
ENDS = frozenset(RunStatus) - {RunStatus.LOST, RunStatus.CANCELLED}
PACKAGES = (
    {name: package_of_source(source) for name, source in SOURCES.items()}
    | {f"source that {name}": package_of_source(source) for name, source in UNCOMPILABLE.items()}
    | ARCHIVES
)
