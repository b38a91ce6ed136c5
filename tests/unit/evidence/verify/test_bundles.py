"""Bundles: does toolhub-verify accept what is whole and name what is wrong?"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from evidence.verify import bundle
from evidence.verify.bundle_verifier import verify_bundle
from evidence.verify.command import main
from evidence.verify.notes import Cosigner, Signer
from tests.unit.evidence.verify.bundles import (
    AT,
    CLOCK,
    GLOBAL_SIGNER,
    WITNESS,
    Log,
    facts,
    files_of,
    leaf,
    lines_of,
    sealed,
    unpack,
    write,
)
from tests.unit.evidence.verify.trees import ORIGIN, SIGNER, private_key

if TYPE_CHECKING:
    from pathlib import Path

LOG = Log(facts(21))
KEY = str(SIGNER.key)


def sentences(path: Path, **asked: Any) -> list[str]:
    return [str(found) for found in verify_bundle(path, **asked).findings]


@pytest.mark.req("TOOLS-18")
def test_a_whole_bundle_is_verified_as_a_zip_file_and_as_a_folder(tmp_path: Path) -> None:
    path = write(tmp_path / "b.zip", LOG, files_of(LOG, older=9))

    for each in (path, unpack(path, tmp_path / "folder")):
        report = verify_bundle(each, keys=[KEY, str(CLOCK.key)], witnesses=[str(WITNESS.key)])
        assert report.findings == []
        assert (report.facts, report.good, report.pairs, report.open_calls) == (21, 21, 10, 1)
        assert (report.commitments, report.values) == (11, 11)
        assert (report.older, report.signed_at) == ([9], AT)
        assert report.cosigned == {WITNESS.name: AT + 1}
        assert report.own_witnesses == [WITNESS.name]
        assert (report.in_global_log, report.own_global_key) == (GLOBAL_SIGNER.name, True)


def test_a_bundle_of_the_middle_of_a_log_counts_calls_that_began_before(tmp_path: Path) -> None:
    files = files_of(LOG, start=5, stop=13)
    path = write(tmp_path / "b.zip", LOG, files, start=5, stop=13, open_calls=["inv_6"])

    report = verify_bundle(path)

    assert report.findings == []
    assert (report.facts, report.pairs, report.open_calls, report.begun_before) == (8, 3, 1, 1)


def test_an_empty_range_is_a_bundle_too(tmp_path: Path) -> None:
    path = write(tmp_path / "b.zip", LOG, files_of(LOG, start=5, stop=5), start=5, stop=5)

    assert verify_bundle(path).ok


def test_a_selection_may_leave_leaves_out(tmp_path: Path) -> None:
    chosen = b"".join(line for line in lines_of(LOG, 0, 21) if json.loads(line)["index"] % 3 == 2)
    files = files_of(LOG, stop=0) | {bundle.facts_name(2): chosen}

    report = verify_bundle(write(tmp_path / "b.zip", LOG, files, complete=False))

    assert report.findings == []
    assert (report.facts, report.pairs) == (7, 0)


@pytest.mark.req("TOOLS-18")
def test_a_leaf_that_is_left_out_is_named_and_the_rest_is_still_read(tmp_path: Path) -> None:
    files = files_of(LOG)
    files[bundle.facts_name(4)] = b"".join(line for line in lines_of(LOG, 4, 8) if json.loads(line)["index"] != 6)

    report = verify_bundle(write(tmp_path / "b.zip", LOG, files))

    assert [str(found) for found in report.findings] == [
        "Leaf 6: It is missing: the next leaf of the bundle is 7.",
    ]
    assert (report.first_bad, report.good) == (6, 20)


def test_the_end_of_a_range_that_is_left_out_is_named(tmp_path: Path) -> None:
    files = files_of(LOG, stop=16)

    assert "Leaf 16: It is missing, and so is every leaf to 20." in sentences(
        write(tmp_path / "b.zip", LOG, files, open_calls=[])
    )


def test_a_leaf_that_was_changed_is_named_and_the_rest_is_still_read(tmp_path: Path) -> None:
    files = files_of(LOG)
    files[bundle.facts_name(8)] = files[bundle.facts_name(8)].replace(b"fct_9", b"fct_8")

    report = verify_bundle(write(tmp_path / "b.zip", LOG, files))

    assert [str(found) for found in report.findings][:1] == [
        "Leaf 9: Leaf 9 is not in the tree of 21 leaves: its proof leads to another root."
    ]
    assert (report.first_bad, report.good) == (9, 20)


def test_facts_in_another_order_are_named(tmp_path: Path) -> None:
    files, lines = files_of(LOG), list(lines_of(LOG, 4, 8))
    files[bundle.facts_name(4)] = b"".join([lines[0], lines[2], lines[1], lines[3]])

    found = sentences(write(tmp_path / "b.zip", LOG, files))

    assert "Leaf 5: It is missing: the next leaf of the bundle is 6." in found
    assert any(
        each.startswith("Leaf 5: Line 3 of facts/000000000004.jsonl holds it, where it is out of") for each in found
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"columns": {"kind": "tool.enabled"}}, "The column kind says 'tool.enabled', the leaf 'invocation.ended'."),
        ({"columns": {"colour": "red"}}, "There is no column 'colour'."),
        ({"columns": []}, "The columns in line 2 of facts/000000000000.jsonl are not an object."),
        ({"values": [{"snapshot": "snp_0", "salt": "", "value": ""}]}, "opens snp_0, to which its leaf is not"),
        ({"more": 1}, "does not have exactly what a line of facts has."),
        ({"index": True}, "does not have exactly what a line of facts has."),
        ({"proof": "c2sp.org/tlog-proof@v2\n"}, "does not begin with the line c2sp.org/tlog-proof@v1."),
    ],
)
def test_what_stands_beside_a_leaf_must_fit_it(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    files, lines = files_of(LOG, piece=21), list(lines_of(LOG, 0, 21))
    lines[1] = json.dumps(json.loads(lines[1]) | change).encode() + b"\n"
    files[bundle.facts_name(0)] = b"".join(lines)

    found = sentences(write(tmp_path / "b.zip", LOG, files))

    assert found[0].startswith("Leaf 1: ")
    assert sentence in found[0]


def test_an_opened_value_is_the_one_that_the_leaf_committed_to(tmp_path: Path) -> None:
    files = files_of(LOG, piece=21)
    files[bundle.facts_name(0)] = files[bundle.facts_name(0)].replace(b"Berlin", b"London", 1)

    assert sentences(write(tmp_path / "b.zip", LOG, files)) == [
        "Leaf 0: The opened value of snp_0 is not the one that the leaf committed to.",
    ]


@pytest.mark.req("TOOLS-18")
def test_calls_without_their_other_half_are_named(tmp_path: Path) -> None:
    log = Log(
        [
            leaf(0, "invocation.began", "inv_a"),
            leaf(1, "invocation.ended", "inv_b"),
            leaf(2, "dry_run.began", "inv_c"),
            leaf(3, "invocation.began", "inv_a"),
            leaf(4, "invocation.began"),
        ]
    )

    assert sentences(write(tmp_path / "b.zip", log, files_of(log), open_calls=["inv_c", "inv_d"])) == [
        "Leaf 3: The call inv_a began at leaf 0 already.",
        "Leaf 4: A fact of kind invocation.began names no call.",
        "Leaf 0: The call inv_a began and did not end, and the manifest does not call it open.",
        "The manifest calls inv_d open, which did not begin in the range or has ended.",
        "Leaf 1: The call inv_b ended and never began.",
    ]


def test_an_end_that_was_sealed_before_its_begin_is_a_pair_as_well(tmp_path: Path) -> None:
    """Two hosts have two clocks."""
    log = Log([leaf(0, "invocation.ended", "inv_a"), leaf(1, "invocation.began", "inv_a")])

    report = verify_bundle(write(tmp_path / "b.zip", log, files_of(log), open_calls=[]))

    assert (report.findings, report.pairs, report.open_calls) == ([], 1, 0)


def test_an_older_checkpoint_shows_that_history_was_rewritten_and_signed_again(tmp_path: Path) -> None:
    kept = LOG.checkpoint(9).encode()
    leaves = facts(21)
    leaves[3] = leaf(3, "invocation.ended", "inv_1", outcome="failed")
    rewritten = Log(leaves)

    assert sentences(write(tmp_path / "a.zip", rewritten, files_of(rewritten, older=9)), keys=[KEY]) == []
    assert sentences(tmp_path / "a.zip", keys=[KEY], older=[kept]) == [
        "There are two different trees of 9 leaves: history was rewritten."
    ]


def test_a_bundle_says_when_it_cannot_be_compared_with_a_kept_checkpoint(tmp_path: Path) -> None:
    path = write(tmp_path / "b.zip", LOG, files_of(LOG, start=2, older=9), start=2)
    longer = Log(facts(30))

    report = verify_bundle(path, older=[LOG.checkpoint(10).encode()])
    assert (report.ok, report.findings) == (False, [])
    assert re.search("does not show whether its log continues your checkpoint of 10 leaves", report.unanswered[0])
    assert "that of the bundle only 21: the log was cut" in sentences(path, older=[longer.checkpoint().encode()])[0]
    assert verify_bundle(path, older=[LOG.checkpoint(9).encode(), LOG.checkpoint(21).encode()]).older == [9, 21]


def test_a_bundle_of_all_leaves_can_be_compared_with_any_kept_checkpoint(tmp_path: Path) -> None:
    path = write(tmp_path / "b.zip", LOG, files_of(LOG, older=9))
    other = Log([*facts(12), *facts(1)])

    assert verify_bundle(path, older=[LOG.checkpoint(size).encode() for size in (13, 9, 1, 20, 0, 13)]).older == [
        9,
        0,
        1,
        13,
        20,
    ]
    assert len(sentences(path, older=[LOG.checkpoint(13).encode(), other.checkpoint().encode()])) == 1
    assert sentences(path, older=[other.checkpoint().encode()]) == [
        "There are two different trees of 13 leaves: history was rewritten."
    ]


def test_only_keys_that_the_auditor_names_count_when_some_are_named(tmp_path: Path) -> None:
    forger = Signer(ORIGIN, private_key(66))
    forged = Log(facts(4), signer=forger)
    path = write(tmp_path / "b.zip", forged, files_of(forged))

    assert sentences(path) == []
    assert "No trusted key signed this note" in sentences(path, keys=[KEY])[0]


def test_a_witness_that_the_auditor_names_must_have_cosigned(tmp_path: Path) -> None:
    other = Cosigner("witness.example/w2", private_key(7))
    path = write(tmp_path / "b.zip", LOG, files_of(LOG))
    forged = write(tmp_path / "c.zip", LOG, files_of(LOG) | {bundle.GLOBAL: LOG.global_log(witnessed=False)})

    assert "witness.example/w2" in sentences(path, witnesses=[str(other.key)])[0]
    assert "has not cosigned" in sentences(forged, witnesses=[str(WITNESS.key)])[0]
    assert "is of type 4" in sentences(path, witnesses=[KEY])[0]


def test_the_checkpoint_is_the_one_in_the_log_of_checkpoints(tmp_path: Path) -> None:
    other = Log(facts(20))
    path = write(tmp_path / "b.zip", LOG, files_of(LOG) | {bundle.GLOBAL: other.global_log()})

    assert sentences(path) == ["Leaf 1 is not in the tree of 3 leaves: its proof leads to another root."]


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        ({"origin": "hub.example/evidence/ten_2"}, "The manifest is of hub.example/evidence/ten_2, the checkpoint of"),
        ({"stop": 22}, "The manifest speaks of leaves 0 to 21, the checkpoint of 21 leaves."),
        ({"signers": [Signer(ORIGIN, private_key(9))]}, "No trusted key signed the list of files"),
    ],
)
def test_the_manifest_fits_the_checkpoint(tmp_path: Path, manifest: dict[str, Any], sentence: str) -> None:
    assert sentence in sentences(write(tmp_path / "b.zip", LOG, files_of(LOG), **manifest))[0]


def test_the_command_says_what_it_found_and_ends_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "b.zip", LOG, files_of(LOG, older=9))
    (tmp_path / "old").write_text(LOG.checkpoint(9))
    (tmp_path / "keys").write_text(f"{KEY}\n{CLOCK.key}\n")

    assert (
        main(
            [
                str(path),
                "--key",
                str(tmp_path / "keys"),
                "--older",
                str(tmp_path / "old"),
                "--witness",
                str(WITNESS.key),
            ]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert said.endswith("\nVERIFIED\n")
    assert "facts      21 of 21 are in the log; all leaves from 0 to 20" in said
    assert "continues  the checkpoint of 9 leaves" in said

    assert main([str(path)]) == 0
    assert "came with the evidence: compare it" in capsys.readouterr().out

    assert main([str(path), "--json", "--key", str(Signer(ORIGIN, private_key(8)).key)]) == 2
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["first_bad"]) == (False, None)
    assert "No trusted key" in told["findings"][0]["sentence"]

    (tmp_path / "old").write_text(LOG.checkpoint(10))
    part = write(tmp_path / "part.zip", LOG, files_of(LOG, start=4), start=4)
    assert main([str(part), "--older", str(tmp_path / "old")]) == 1
    assert "UNKNOWN" in capsys.readouterr().out
    assert main([str(tmp_path / "nothing.zip")]) == 1
    assert "nothing.zip" in capsys.readouterr().err
    assert main([str(path), "--key", "a+b+c"]) == 1


def test_what_a_bundle_says_cannot_command_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log([leaf(0, "invocation.ended", "inv_\x1b[2J", data=sealed("snp_1"))])

    assert main([str(write(tmp_path / "b.zip", log, files_of(log)))]) == 2
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert r"inv_\x1b[2J" in said
