"""Whole logs: is a change anywhere in a whole log found, and named by the first leaf that is wrong?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from evidence.verify.command import main
from evidence.verify.merkle import Frontier, leaf_hash
from evidence.verify.mirror import verify_mirror
from evidence.verify.notes import Checkpoint
from evidence.verify.wholelog import check_log
from tests.unit.evidence.verify.bundles import AT, CLOCK, WITNESS, Log, facts, mirror
from tests.unit.evidence.verify.trees import ORIGIN, SIGNER, leaves_of, unhurried

if TYPE_CHECKING:
    from collections.abc import Iterable

    Row = tuple[int, bytes, bytes | None]

ROOT = Path(__file__).resolve().parents[4]
LEAVES = leaves_of(600)
KEY = str(SIGNER.key)


def rows_of(leaves: list[bytes]) -> list[Row]:
    return [(index, leaf, leaf_hash(leaf)) for index, leaf in enumerate(leaves)]


def head_of(leaves: list[bytes]) -> Checkpoint:
    tree = Frontier()
    tree.append_many(map(leaf_hash, leaves))
    return Checkpoint(ORIGIN, len(leaves), tree.root())


HEADS = [head_of(LEAVES[:size]) for size in (0, 1, 100, 256, 599, 600)]


def found(rows: Iterable[Row], heads: list[Checkpoint] = HEADS, frontier: Frontier | None = None) -> list[str]:
    return [str(finding) for finding in check_log(rows, heads, frontier=frontier)]


def test_a_whole_log_has_nothing_wrong_and_can_be_checked_in_parts() -> None:
    assert found(rows_of(LEAVES)) == []

    tree = Frontier()
    assert found(rows_of(LEAVES[:300]), [head for head in HEADS if head.size <= 300], tree) == []
    assert found(rows_of(LEAVES)[300:], HEADS, tree) == []
    assert tree.size == 600


PEAK = """
import sys, tracemalloc
from evidence.verify.wholelog import check_log

def peak(count):
    tracemalloc.start()
    assert list(check_log(((index, b"%d" % index, None) for index in range(count)), [])) == []
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most

peak(10_000)  # what Python keeps for itself
print(peak(20_000), peak(120_000))
"""


def test_a_long_log_is_checked_in_the_memory_of_a_short_one() -> None:
    """In a process of its own: the threads of other tests allocate too."""
    said = subprocess.run([sys.executable, "-c", PEAK], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    short, long = map(int, said.split())

    assert long < 2 * short


def test_a_changed_leaf_is_named_and_so_is_the_first_checkpoint_that_does_not_fit() -> None:
    rows = rows_of(LEAVES)
    rows[120] = (120, b"another", rows[120][2])

    assert found(rows) == [
        "Leaf 120: Its bytes do not have the hash that is stored for it: it was changed.",
        "The leaves 100 to 255 are not those of the checkpoint of 256 leaves: their tree has another root.",
        "The leaves 100 to 598 are not those of the checkpoint of 599 leaves: their tree has another root.",
        "The leaves 100 to 599 are not those of the checkpoint of 600 leaves: their tree has another root.",
    ]


def test_a_leaf_that_was_changed_with_its_hash_is_bounded_by_checkpoints() -> None:
    rows = rows_of(LEAVES)
    rows[120] = (120, b"another", leaf_hash(b"another"))

    assert found(rows)[0].startswith("The leaves 100 to 255 are not those of the checkpoint of 256 leaves")


def test_leaves_that_are_missing_twice_or_cut_off_are_named() -> None:
    rows = rows_of(LEAVES)

    assert found(rows[:50] + rows[51:]) == ["Leaf 50: It is missing."]
    assert found(rows[:50] + rows[53:]) == ["Leaf 50: It is missing, and so is every leaf to 52."]
    assert found([*rows[:50], rows[49], *rows[50:]]) == [
        "Leaf 49: It comes where leaf 50 must be: the log has it twice or in another order."
    ]
    assert found(rows[:599]) == ["Leaf 599: It is missing: the log ends before its checkpoint of 600 leaves."]


@unhurried
@given(st.data())
def test_any_change_to_a_log_is_found_at_or_before_its_place(data: st.DataObject) -> None:
    rows, at = rows_of(LEAVES), data.draw(st.integers(0, 598))
    match data.draw(st.sampled_from(["change", "change with its hash", "delete", "insert", "swap", "truncate"])):
        case "change":
            rows[at] = (at, rows[at][1] + b"!", rows[at][2])
        case "change with its hash":
            rows[at] = (at, b"!", leaf_hash(b"!"))
        case "delete":
            del rows[at]
        case "insert":
            rows.insert(at, (at, b"!", leaf_hash(b"!")))
        case "swap":
            (_, one, _), (_, other, _) = rows[at : at + 2]
            rows[at : at + 2] = [(at, other, leaf_hash(other)), (at + 1, one, leaf_hash(one))]
        case "truncate":
            rows = rows[: at + 1]

    assert found(rows)


def test_a_copied_log_is_verified_leaf_by_leaf_and_against_any_checkpoint_that_was_kept(tmp_path: Path) -> None:
    log = Log(facts(601))
    folder = mirror(tmp_path / "log", log)

    report = verify_mirror(
        folder, keys=[KEY, str(CLOCK.key)], older=[log.checkpoint(size).encode() for size in (3, 517)]
    )

    assert report.findings == []
    assert (report.facts, report.good, report.pairs, report.open_calls) == (601, 601, 300, 1)
    assert (report.older, report.signed_at) == ([3, 517], AT)
    assert main([str(folder)]) == 0


def test_a_changed_copy_is_refused_at_its_first_bad_leaf(tmp_path: Path) -> None:
    log = Log(facts(601))
    folder = mirror(tmp_path / "log", log)
    file = folder / "tile/entries/001"
    file.write_bytes(file.read_bytes().replace(b"fct_300", b"fct_301"))

    report = verify_mirror(folder)

    assert (report.first_bad, report.good) == (300, 600)
    assert "Leaf 300: Its bytes do not have the hash" in "\n".join(report.lines())


def test_a_copy_that_was_cut_rewritten_or_not_witnessed_is_refused(tmp_path: Path) -> None:
    log, longer, other = Log(facts(300)), Log(facts(400)), Log([*facts(299), b'{"v":1}'])
    folder = mirror(tmp_path / "log", log)

    def sentence(**asked: list[bytes] | list[str]) -> str:
        return str(verify_mirror(folder, **asked).findings[0])  # type: ignore[arg-type]

    assert "that of the mirror only 300: the log was cut" in sentence(older=[longer.checkpoint().encode()])
    assert "not those of the checkpoint of 300 leaves" in sentence(older=[other.checkpoint().encode()])
    assert "has not cosigned" in sentence(witnesses=[str(WITNESS.key)])
    (folder / "tile/entries/001.p/44").unlink()
    assert sentence() == "tile/entries/001.p/44 is missing."
    (folder / "vkeys").unlink()
    assert main([str(folder)]) == 1
