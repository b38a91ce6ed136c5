"""The processes of `make test`: is what they share out there, and does each test run where it should?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts.provision import parts
from scripts.provision.parts import (
    ALSO_WITH_SQLITE,
    AT_MOST,
    AT_ONCE,
    EARLY,
    FIRST,
    ONLY_WITH_POSTGRESQL,
    ONLY_WITH_SQLITE,
    PARTS,
    WHOLE,
    Part,
    find_next,
    run_parts,
)
from scripts.provision.processors import IdleTime

ROOT = Path(__file__).resolve().parents[3]
ALL = (*FIRST, *EARLY, *PARTS)
TESTS = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").rglob("test_*.py"))]


class Idle(IdleTime):
    """What the processors are said to be."""

    def __init__(self, *, much: bool) -> None:
        self.much = much

    def is_much(self) -> bool:
        return self.much


def test_every_place_that_is_named_is_there() -> None:
    named = {path for part in ALL for path in (*part.paths, *part.without)}

    assert [each for each in named if not (ROOT / each).exists()] == []


def test_no_test_is_left_out_of_both_databases() -> None:
    assert set(ONLY_WITH_POSTGRESQL) & set(ONLY_WITH_SQLITE) == set()
    assert [
        each for each in (*ONLY_WITH_POSTGRESQL, *ONLY_WITH_SQLITE) if not each.startswith("tests/integration/")
    ] == []


def test_what_says_something_of_sqlite_alone_runs_there_in_every_run() -> None:
    assert set(ALSO_WITH_SQLITE) & {*ONLY_WITH_POSTGRESQL, *ONLY_WITH_SQLITE} == set()
    known = {*ALSO_WITH_SQLITE, *ONLY_WITH_SQLITE, *ONLY_WITH_POSTGRESQL}
    of_its_own = ("connection.vendor", "raw_database")
    others = [each for each in TESTS if each.startswith("tests/integration/") and each not in known]
    assert {each: [word for word in of_its_own if word in (ROOT / each).read_text()] for each in others} == {
        each: [] for each in others
    }


def databases_for(test: str, *, whole: bool = False) -> list[str]:
    if not test.startswith("tests/integration/"):
        return ["sqlite" if any(part.sqlite for part in ALL if part.holds(test)) else "postgresql"]
    on_sqlite = (*ONLY_WITH_SQLITE, *ALSO_WITH_SQLITE)
    return [
        *(["postgresql"] if test not in ONLY_WITH_SQLITE else []),
        *(["sqlite"] if (whole and test not in ONLY_WITH_POSTGRESQL) or test in on_sqlite else []),
    ]


@pytest.mark.parametrize("whole", [False, True])
def test_each_test_runs_in_one_part_and_an_integration_test_once_on_each_of_its_databases(whole: bool) -> None:
    shared = (*FIRST, *EARLY, *(WHOLE if whole else PARTS))
    run = {
        test: sorted("sqlite" if part.sqlite else "postgresql" for part in shared if part.holds(test)) for test in TESTS
    }

    assert len(TESTS) > 400
    assert {test: found for test, found in run.items() if found != databases_for(test, whole=whole)} == {}


@pytest.mark.parametrize("all_parts", [ALL, (*FIRST, *EARLY, *WHOLE)])
def test_no_two_parts_use_one_database_on_postgresql(all_parts: tuple[Part, ...]) -> None:
    names = [part.database for part in all_parts if not part.sqlite]

    assert sorted(names) == sorted(set(names))
    assert len(names) > 1


def test_a_part_with_a_database_of_its_own_is_told_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", "import os; print('NAME', os.environ.get('TOOLHUB_TEST_DATABASE_NAME'))"]
    monkeypatch.setattr(parts, "FIRST", [])
    monkeypatch.setattr(parts, "EARLY", [Part("the first", ())])
    monkeypatch.setattr(parts, "PARTS", [Part("the second", (), database="another")])

    run_parts(command, {"PATH": "/usr/bin"}, dict, dict)

    assert sorted(line for line in capsys.readouterr().out.splitlines() if "NAME" in line) == [
        "NAME None",
        "NAME another",
    ]


def test_a_part_that_fails_fails_the_whole_and_what_each_says_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "*(os.environ.get(name) for name in ('SERVICE', 'IMAGE', 'TOOLHUB_TEST_DB'))"
    said = f"import os, sys; print(*sys.argv[1:], {told})"
    command = [sys.executable, "-c", f"{said}; sys.exit(3 if 'fails' in sys.argv else 0)"]
    monkeypatch.setattr(parts, "FIRST", [Part("the first", ("first",))])
    monkeypatch.setattr(parts, "EARLY", [Part("early", ("second",))])
    others = [Part(f"part {number}", (f"path-{number}",), sqlite=True) for number in range(4)]
    monkeypatch.setattr(parts, "PARTS", [*others, Part("the last", ("fails",), ("away",))])

    code = run_parts(command, {"PATH": "/usr/bin"}, lambda: {"SERVICE": "begun"}, lambda: {"IMAGE": "made"})

    printed = capsys.readouterr().out
    assert code == 3
    assert "-p no:cacheprovider first None None None\n" in printed
    assert "-p no:cacheprovider second begun None None\n" in printed
    assert [f"path-{number} begun made sqlite\n" in printed for number in range(4)] == [True] * 4
    assert "fails --ignore=away begun made None\n" in printed


def test_what_mostly_waits_begins_beside_those_that_compute_and_takes_no_place_of_theirs() -> None:
    boxes, calls, hubs = Part("boxes", (), waits=True), Part("calls", ()), Part("hubs", ())
    others = [Part(f"part {number}", ()) for number in range(AT_ONCE)]
    busy = Idle(much=False)

    assert find_next([boxes, calls], others, busy) == boxes
    assert find_next([calls, hubs], others, busy) is None
    assert find_next([calls, hubs], [boxes, *others[1:]], busy) == calls
    assert find_next([], [boxes], busy) is None


def test_one_more_begins_where_processors_are_idle_and_never_two() -> None:
    calls, others = Part("calls", ()), [Part(f"part {number}", ()) for number in range(AT_MOST)]

    assert AT_MOST == AT_ONCE + 1
    assert find_next([calls], others[:AT_ONCE], Idle(much=True)) == calls
    assert find_next([calls], others[:AT_ONCE], Idle(much=False)) is None
    assert find_next([calls], others, Idle(much=True)) is None
