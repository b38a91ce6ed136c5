from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sandbox import package
from sandbox.image import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def imports_of(source: str) -> list[package.Import]:
    return list(package._imports_of(compile(source, "main.py", "exec")))


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


def test_a_package_is_written_where_nobody_may_change_it_with_its_bytecode(tmp_path: Path) -> None:
    names = [
        "tool/__init__.py",
        "tool/main.py",
        "tool/data/x.txt",
        "tool/broken.py",
        "tool/__pycache__/main.cpython-311.pyc",
    ]

    codes = package.write_package(
        names, [b"", b"A = 1", b"text", b"def (", b"brought along"], str(tmp_path), bytecode=True
    )

    found = {str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    written = {name.partition(".cpython")[0] for name in found}
    assert [code.co_filename for code in codes] == [f"{tmp_path}/tool/__init__.py", f"{tmp_path}/tool/main.py"]
    assert {"tool/main.py", "tool/data/x.txt", "tool/__pycache__/main", "tool/__pycache__/__init__"} <= written
    assert "tool/__pycache__/broken" not in written
    assert set(found.values()) == {0o444, 0o555}
    assert not any(b"brought along" in path.read_bytes() for path in tmp_path.rglob("*.pyc"))


def test_the_bytecode_is_used_without_a_look_at_the_source(tmp_path: Path) -> None:
    package.write_package(["tool/__init__.py", "tool/main.py"], [b"", b"A = 1"], str(tmp_path), bytecode=True)
    (tmp_path / "tool" / "main.py").chmod(0o644)
    (tmp_path / "tool" / "main.py").write_text("A = 2")

    command = f"import sys; sys.path.append({str(tmp_path)!r}); import tool.main; print(tool.main.A)"
    said = subprocess.run([sys.executable, "-I", "-c", command], capture_output=True, text=True, check=True).stdout

    assert said == "1\n"


def test_only_what_is_of_others_is_imported_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("foreign", "tool", "raises", "exits"):
        (tmp_path / f"{name}.py").write_text({"raises": "1 / 0", "exits": "raise SystemExit"}.get(name, ""))
    (tmp_path / "foreign-1.0.dist-info").mkdir()
    monkeypatch.setattr(package, "DEPENDENCIES", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    source = "import foreign, tool, tool.other, raises, exits, antigravity, nowhere, colorsys"
    codes = [compile(source, "main.py", "exec")]

    assert package.preload(codes, ["tool/main.py"]) == ["foreign", "colorsys"]

    for name in ("foreign", "tool", "raises", "exits"):
        sys.modules.pop(name, None)


def test_a_box_does_not_load_what_is_large_and_not_needed() -> None:
    command = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import sandbox.supervisor; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", command], capture_output=True, text=True, check=True
    ).stdout

    assert {"sandbox.zygote", "sandbox.call", "unitools.runtime"} <= set(said.split())
    assert {"typing", "dataclasses", "inspect", "shutil", "pathlib", "subprocess", "asyncio", "hashlib"}.isdisjoint(
        said.split()
    )
