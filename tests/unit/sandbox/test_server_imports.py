"""Server imports: is all found that a server of others imports, also inside its functions, without running any of it?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sandbox.mcp_server import check_module, find_script
from sandbox.server_imports import ServerImports

RUNS = "1 / 0\n"
FILES = {
    "lazy_server/__init__.py": f"{RUNS}def main():\n    from .app import serve\n    from . import late\n    serve()\n",
    "lazy_server/__main__.py": f"{RUNS}from lazy_server import main\nmain()\n",
    "lazy_server/app.py": f"{RUNS}import wave\nfrom .parts.tools import add\nfrom ... import no\ndef serve():\n    import chunk\n",
    "lazy_server/late.py": RUNS,
    "lazy_server/parts/__init__.py": RUNS,
    "lazy_server/parts/tools.py": f"{RUNS}from ..late import x\nimport colorsys as add\n",
    "lazy_server/broken.py": "def (",
    "lazy-1.0.dist-info/entry_points.txt": "[other]\nlazy = no:no\n[console_scripts]\nlazy = lazy_server:main [extra]\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return str(tmp_path)


@pytest.mark.req("BRING-2")
def test_what_functions_and_relative_imports_name_is_found_and_nothing_is_run(folder: str) -> None:
    found = ServerImports("lazy_server", folder)

    own = {"lazy_server", "lazy_server.__main__", "lazy_server.app", "lazy_server.late", "lazy_server.parts.tools"}
    assert own <= set(found.own)
    assert {name for name, _ in found.foreign} == {"wave", "chunk", "colorsys"}
    assert "lazy_server" not in sys.modules


@pytest.mark.req("BRING-2")
def test_of_packages_of_others_only_those_that_begin_alike_are_imported_where_a_call_decides(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("plain_library", "known_library"):
        Path(folder, f"{name}.py").write_text("X = 1\n")
    Path(folder, "served.py").write_text("import plain_library, known_library\n")
    monkeypatch.syspath_prepend(folder)

    ServerImports("served", folder).import_foreign({"known_library"})

    assert sys.modules.pop("known_library")
    assert "plain_library" not in sys.modules


@pytest.mark.req("BRING-2")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_modules_that_open_something_are_left_to_the_call(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "plain_server": "X = 1\n",
        "open_server": "file = open(__file__)\n",
    }.items():
        Path(folder, f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)

    for name in ("plain_server", "open_server"):
        ServerImports(name, folder).import_own()

    assert "plain_server" in sys.modules
    assert "open_server" not in sys.modules
    del sys.modules["plain_server"]


@pytest.mark.req("BRING-2")
def test_a_console_script_names_its_module_and_function(folder: str) -> None:
    assert find_script("lazy", "Lazy", folder) == ("lazy_server", "main")
    with pytest.raises(LookupError, match="brings no program 'other'"):
        find_script("other", "lazy", folder)


@pytest.mark.req("BRING-2")
def test_a_program_of_another_package_is_not_the_server(folder: str) -> None:
    other = Path(folder, "aaa-1.0.dist-info")
    other.mkdir()
    (other / "entry_points.txt").write_text("[console_scripts]\nlazy = aaa:main\nmore = aaa:main\n")

    assert find_script("lazy", "lazy", folder) == ("lazy_server", "main")
    with pytest.raises(LookupError):
        find_script("more", "lazy", folder)
    Path(folder, "LAZY-2.0.dist-info").mkdir()
    with pytest.raises(LookupError, match="2 of the packages here are lazy"):
        find_script("lazy", "lazy", folder)


@pytest.mark.req("BRING-2")
def test_a_module_of_another_package_is_not_the_server(folder: str) -> None:
    recorded = "lazy_server/__init__.py,,\nlazy_server/app.py,,\nlazy_server/fast.cpython-311-x86_64-linux-gnu.so,,\njson.py,,\n"
    Path(folder, "lazy-1.0.dist-info/RECORD").write_text(recorded)

    for mine in ("lazy_server", "lazy_server.app", "lazy_server.fast"):
        check_module(mine, "lazy", folder)
    for other in ("http.server", "json", "lazy_server.late", "aaa"):
        with pytest.raises(LookupError, match="brings no module"):
            check_module(other, "lazy", folder)
