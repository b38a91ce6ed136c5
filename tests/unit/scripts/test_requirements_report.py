"""The report on requirements: does the report on requirements find what tests say of themselves?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts import requirements

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT = "| id | requirement |\n|---|---|\n| CARD-1 | Kind: a hub. |\n| UNI-3 | Tag \\| Prefix. |\n"
TEST = """
import pytest
pytestmark = [pytest.mark.req("UNI-3")]

@pytest.mark.req("CARD-1")
class TestA:
    @pytest.mark.req("CARD-1", "CARD-2")
    @pytest.mark.req("CARD-1")
    def test_a(self): ...
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(requirements, "ROOT", tmp_path)
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    (tmp_path / "docs" / "reference" / "requirements.md").write_text(DOCUMENT)
    (tmp_path / "tests").mkdir()
    return tmp_path


def test_a_mark_is_found_with_the_test_that_it_stands_on() -> None:
    found = [(mark.id, mark.line, mark.test) for mark in requirements.find_marks(TEST)]

    assert found == [("UNI-3", 3, 0), ("CARD-1", 5, 0), ("CARD-1", 7, 9), ("CARD-2", 7, 9), ("CARD-1", 8, 9)]


def test_what_has_no_test_is_listed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests" / "test_x.py").write_text('import pytest\n@pytest.mark.req("CARD-1")\ndef test_a(): ...\n')

    assert requirements.main() == 0

    said = capsys.readouterr().out
    assert "CARD     1 of   1 have a test" in said
    assert "all      1 of   2 have a test" in said
    assert "UNI-3     Tag" in said


def test_a_mark_of_a_module_proves_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests" / "test_x.py").write_text(
        'import pytest\npytestmark = pytest.mark.req("CARD-1")\ndef test_a(): ...\n'
    )

    assert requirements.main() == 2

    said = capsys.readouterr()
    assert "CARD     0 of   1 have a test" in said.out
    assert said.err == "tests/test_x.py:2: CARD-1 stands on no test: mark each test that shows it\n"


def test_what_is_no_mark_of_a_test_or_no_requirement_is_a_no(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests" / "test_x.py").write_text(TEST)

    assert requirements.main() == 2

    assert capsys.readouterr().err.splitlines() == [
        "tests/test_x.py:3: UNI-3 stands on no test: mark each test that shows it",
        "tests/test_x.py:5: CARD-1 stands on no test: mark each test that shows it",
        "tests/test_x.py:7: there is no requirement CARD-2",
        "tests/test_x.py:8: CARD-1 marks its test twice",
    ]


def test_every_row_of_this_project_is_read_once() -> None:
    text = (requirements.ROOT / "docs/reference/requirements.md").read_text()
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]

    assert list(requirements.parse_requirements(text)) == [row for row in rows if row[:1].isupper() and "-" in row]
