from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sandbox import package
from sandbox.image import ROOT
from tests.support.module_sources import BEGINS_THREAD, SETS_HOOK

if TYPE_CHECKING:
    from pathlib import Path


def imports_of(source: str) -> list[package.Import]:
    return list(package.imports_of(compile(source, "main.py", "exec")))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import a", [("a", ())]),
        ("import a.b.c as d", [("a.b.c", ())]),
        ("from a.b import c, d", [("a.b", ("c", "d"))]),
        ("from a import *", [("a", ())]),
        ("from . import a\nfrom .b import c\nfrom ..d import e", []),
        (
            "def run():\n    import a\n    class B:\n        import b\n        c = lambda: __import__('d')",
            [("a", ()), ("b", ())],
        ),
        ("if 0 > 1:\n    import a", [("a", ())]),
        ("async def run(): pass", [("asyncio", ())]),
        ("x = 1", []),
    ],
)
def test_the_names_that_code_imports_are_read_from_it(source: str, found: list[package.Import]) -> None:
    assert imports_of(source) == found


def test_names_are_found_behind_many_constants_too() -> None:
    many = "\n".join(f"x{number} = {number}.5" for number in range(600))

    assert imports_of(f"{many}\nimport a\nfrom b import c") == [("a", ()), ("b", ("c",))]


def test_a_package_is_written_where_nobody_may_change_it(tmp_path: Path) -> None:
    names = ["tool/__init__.py", "tool/main.py", "tool/data/x.txt", "tool/__pycache__/main.cpython-311.pyc"]

    package.write_package(names, [b"", b"A = 1", b"text", b"brought along"], str(tmp_path))

    found = {str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert found == {
        "tool": 0o555,
        "tool/data": 0o555,
        "tool/__init__.py": 0o444,
        "tool/main.py": 0o444,
        "tool/data/x.txt": 0o444,
    }


FINDS = """
import sys, types
sys.dont_write_bytecode = True
sys.path.insert(0, {root!r})
from sandbox import package
place = {place!r}
names = ["tool/__init__.py", "tool/main.py", "tool/deep/__init__.py", "tool/deep/x.py", "tool/late.py", "tool/data.txt"]
sources = [b"", b"from tool.deep import x; A = x.B", b"", b"B = 1", b"def (", b"text"]
package.write_package(names, sources, place)
codes = package.compile_package(names, sources, place)
del codes[place + "/tool/deep/__init__.py"]  # one that is not held is read
sys.path.append(place)
sys.meta_path.insert(0, package.PackageFinder(place, package.find_top_levels(names), codes))
{change}
import tool.main
from importlib import resources
print(tool.main.A, tool.main.__file__ == place + "/tool/main.py", resources.files("tool").joinpath("data.txt").read_text())
try:
    import tool.late
except SyntaxError as error:
    print(error.filename == place + "/tool/late.py")
try:
    import tool.missing
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_the_code_that_is_held_is_what_runs(tmp_path: Path) -> None:
    change = "import os; os.chmod(place + '/tool/main.py', 0o644); open(place + '/tool/main.py', 'w').write('A = 2')"

    for name, text in (("unchanged", ""), ("changed", change)):
        (tmp_path / name).mkdir()
        command = FINDS.format(root=str(ROOT), place=str(tmp_path / name), change=text)
        done = subprocess.run([sys.executable, "-I", "-c", command], capture_output=True, text=True, check=False)
        assert done.stdout == "1 True text\nTrue\ntool.missing\n", done.stderr


IMPORTS = """
import importlib, sys
sys.dont_write_bytecode = True
sys.path.insert(0, {root!r})
from sandbox import package
place = {place!r}
names = ["tool/__init__.py", "tool/main.py", "tool/deep/__init__.py", "tool/deep/x.py", "tool/plain/y.py", "alone.py", "tool/twice.py",
         "tool/twice/__init__.py", "tool/with.dot.py"]
sources = [b"A = 1"] * len(names)
package.write_package(names, sources, place)
codes = package.compile_package(names, sources, place)
sys.path.append(place)
if {ahead}:
    sys.meta_path.insert(0, package.PackageFinder(place, package.find_top_levels(names), codes))
for name in ("tool.main", "tool.deep.x", "tool.plain.y", "alone", "tool.twice"):
    module = importlib.reload(importlib.import_module(name))
    spec = module.__spec__
    print(name, module.__file__, module.__cached__, module.__package__, list(getattr(module, "__path__", ["none"])), module.A,
          spec.name, spec.origin, spec.cached, spec.parent, spec.submodule_search_locations, spec.has_location)
import os, tool
os.mkdir(place + "-others")
open(place + "-others/late.py", "w").write("A = 2")
open(place + "-others/deep.py", "w").write("A = 2")
tool.__path__.insert(0, place + "-others")
del sys.modules["tool.deep"]
print(importlib.import_module("tool.late").A, importlib.import_module("tool.deep").A)
"""


def test_what_is_found_beforehand_is_what_an_import_would_find(tmp_path: Path) -> None:
    place = tmp_path / "package"
    said = []
    for ahead in (True, False):
        place.mkdir()
        command = IMPORTS.format(root=str(ROOT), place=str(place), ahead=ahead)
        done = subprocess.run([sys.executable, "-I", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
        for made in (place, tmp_path / "package-others"):
            made.rename(tmp_path / f"{made.name}-{ahead}")

    assert said[0] == said[1]
    assert said[0].endswith("2 2\n")


ENTRIES = """
import importlib, sys
sys.dont_write_bytecode = True
sys.path.insert(0, {root!r})
from sandbox import package
place = {place!r}
sources = {{
    "tool/__init__.py": b"TOLD = []",
    "tool/main.py": b"from tool.other import run",
    "tool/other.py": b"import tool; tool.TOLD.append(__name__)\\ndef run(): return 'other'",
    "tool/deep/__init__.py": b"from tool.deep import x",
    "tool/deep/x.py": b"import tool; tool.TOLD.append(__name__)\\ndef run(): return 'x'",
    "tool/plain/y.py": b"import tool.plain\\ndef run(): return list(tool.plain.__path__)",
    "tool/swaps.py": b"import sys, types; made = types.ModuleType('swapped'); made.run = lambda: 1; sys.modules[__name__] = made",
    "tool/fails.py": b"raise ValueError('no')",
    "tool/twice.py": b"import sys\\ndef run(): return len([each for each in sys.modules if each == __name__])",
    "tool/twice/below.py": b"def run(): return 1",
    "tool/itself.py": b"import tool.itself as me; WAS = me.__spec__._initializing\\ndef run(): return WAS, me.WAS",
    "tool/broken.py": b"def (",
    "alone.py": b"def run(): return 'alone'",
    "tool/threads.py": {threads!r}.encode(),
    "hooked/__init__.py": {hooked!r}.encode(),
    "hooked/main.py": b"def run(): return 'of nobody'",
}}
names = list(sources)
package.write_package(names, list(sources.values()), place)
codes = package.compile_package(names, list(sources.values()), place)
sys.path.append(place)
finder = package.PackageFinder(place, package.find_top_levels(names), codes)
sys.meta_path.insert(0, finder)
held = finder.make_modules()
print(sorted(each for each in sys.modules if each.partition(".")[0] in ("tool", "alone", "hooked")))

def find(name, entry):
    if {held}:
        return held.find_entry({{"module": name, "entry": entry}})
    return getattr(importlib.import_module(name), entry)

for name in ("tool.main", "tool.deep.x", "tool.plain.y", "tool.swaps", "tool.fails", "tool.fails", "tool.twice.below", "tool.twice",
             "tool.itself", "tool.broken", "tool.missing", "missing", "alone", "tool.threads", "hooked.main", "tool.main"):
    try:
        print(name, find(name, "run")())
    except BaseException as error:
        print(name, type(error).__name__, error, getattr(error, "name", ""))
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    print(module, getattr(module, "__file__", ""), getattr(module, "__cached__", ""), getattr(module, "__package__", ""),
          list(getattr(module, "__path__", ["none"])), spec, getattr(spec, "_initializing", ""), sorted(vars(module or object)))
import tool
print(tool.TOLD, sorted(vars(tool)))
"""


def test_an_entry_is_found_as_an_import_would_find_it(tmp_path: Path) -> None:
    """Whether what is above it runs, loads it, replaces it, has it found by another, fails or is no package; and if a thread waits
    for it. Nothing of it runs before."""
    place = tmp_path / "package"
    said = []
    for held in (True, False):
        place.mkdir()
        command = ENTRIES.format(
            root=str(ROOT),
            place=str(place),
            held=held,
            threads=BEGINS_THREAD.format(module="tool.threads"),
            hooked=SETS_HOOK,
        )
        done = subprocess.run([sys.executable, "-I", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.append(re.sub(r"0x[0-9a-f]+", "", done.stdout))
        place.rename(tmp_path / f"package-{held}")

    assert said[0] == said[1]
    assert said[0].startswith("[]\ntool.main other\n")
    assert "\ntool.threads ['whole']\n" in said[0]
    assert "\nhooked.main of the hook\n" in said[0]


def test_only_what_is_of_others_is_imported_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("foreign", "tool", "raises", "exits"):
        (tmp_path / f"{name}.py").write_text({"raises": "1 / 0", "exits": "raise SystemExit"}.get(name, ""))
    (tmp_path / "foreign-1.0.dist-info").mkdir()
    monkeypatch.setattr(package, "DEPENDENCIES", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    source = "import foreign, tool, tool.other, raises, exits, antigravity, nowhere, colorsys"
    codes = [compile(source, "main.py", "exec")]

    assert package.preload_imports(codes, package.find_top_levels(["tool/main.py"])) == ["foreign", "colorsys"]

    for name in ("foreign", "tool", "raises", "exits"):
        sys.modules.pop(name, None)


@pytest.mark.req("BRING-4")
def test_what_the_modules_of_an_author_import_that_were_brought_is_left_to_the_call(tmp_path: Path) -> None:
    names = ["python_shop/ask.py", "python_shop/source/shop.py", "python_shop/source/more/__init__.py"]
    place = str(tmp_path)
    codes = package.compile_package(names, [b"import a", b"import b", b"import c"], place)

    def select(*more: str) -> list[str]:
        chosen = package.select_preloading(codes, [*names, *more], place)
        return [name for code in chosen for name, _ in package.imports_of(code)]

    assert select("python_shop/as_brought.json") == ["a"]
    assert select() == select("other/as_brought.json") == ["a", "b", "c"]


def test_a_box_does_not_load_what_is_large_and_not_needed() -> None:
    command = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import sandbox.supervisor; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", command], capture_output=True, text=True, check=True
    ).stdout

    assert {"sandbox.zygote", "sandbox.call", "unitools.runtime"} <= set(said.split())
    assert {"typing", "dataclasses", "inspect", "shutil", "pathlib", "subprocess", "asyncio", "hashlib"}.isdisjoint(
        said.split()
    )
