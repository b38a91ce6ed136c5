"""Witness: does a witness cosign what continues the log that it has seen, and nothing else?"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evidence.verify import merkle, notes
from evidence.witnesses.witness import Witness, WitnessRequest, WitnessState, read_or_make_key
from tests.support.witness_processes import witness_process

if TYPE_CHECKING:
    from pathlib import Path

ORIGIN = "hub.example/log/checkpoints"
LOG = notes.Signer(ORIGIN, Ed25519PrivateKey.generate())
OTHER = notes.Signer(ORIGIN, Ed25519PrivateKey.generate())


class Tree:
    """A log of one's own. ``fork``: from which leaf on it differs from the others."""

    def __init__(self, fork: int = 1 << 60) -> None:
        self._hashes = [merkle.leaf_hash(f"leaf {n}{' forged' if n >= fork else ''}".encode()) for n in range(600)]
        self.tiles = merkle.Tiles(self._tile)

    def _tile(self, level: int, n: int) -> bytes | None:
        width = 256**level
        found = []
        for at in range(n * 256, n * 256 + 256):
            if (at + 1) * width > len(self._hashes):
                break
            found.append(self._node(self._hashes[at * width : (at + 1) * width]))
        return b"".join(found) or None

    def _node(self, hashes: list[bytes]) -> bytes:
        while len(hashes) > 1:
            hashes = [merkle.node_hash(*hashes[at : at + 2]) for at in range(0, len(hashes), 2)]
        return hashes[0]

    def request(self, old: int, size: int, *, signer: notes.Signer = LOG, proof_from: int | None = None) -> bytes:
        start = old if proof_from is None else proof_from
        proof = merkle.consistency_proof(self.tiles, start, size) if start <= size else []
        text = notes.Checkpoint(ORIGIN, size, self.tiles.root(size)).text()
        return WitnessRequest(old, proof, notes.sign(text, signer)).text().encode()


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return Witness(
        read_or_make_key(tmp_path / "key", "w.example"), [str(LOG.key)], WitnessState(tmp_path / "seen.json")
    )


@pytest.mark.req("TOOLS-18")
def test_it_cosigns_a_log_that_grows_and_the_same_size_again(witness: Witness, tmp_path: Path) -> None:
    tree, vkey, before = Tree(), str(read_or_make_key(tmp_path / "key", "w.example").key), 0
    for size in (1, 2, 3, 255, 256, 256, 257, 600):
        answer = witness.add_checkpoint(tree.request(before, size))

        assert answer.status == 200
        text = notes.Checkpoint(ORIGIN, size, tree.tiles.root(size)).text()
        assert notes.open_note(f"{text}\n{answer.body}", [vkey]).verified[0].at
        before = size


@pytest.mark.req("TOOLS-18")
def test_who_does_not_know_what_was_seen_is_told(witness: Witness) -> None:
    tree = Tree()
    assert witness.add_checkpoint(tree.request(7, 40)).body == "0\n"
    assert witness.add_checkpoint(tree.request(0, 40)).status == 200

    for old in (0, 39, 41):
        answer = witness.add_checkpoint(tree.request(old, 50))
        assert (answer.status, answer.body, answer.media_type) == (409, "40\n", "text/x.tlog.size")
    assert witness.add_checkpoint(tree.request(0, 30)).status == 409, "a log that was set back"


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("fork", [0, 17, 39])
def test_a_fork_is_refused_whatever_the_client_sends_along(fork: int, witness: Witness) -> None:
    honest, forged = Tree(), Tree(fork=fork)
    assert witness.add_checkpoint(honest.request(0, 40)).status == 200

    assert witness.add_checkpoint(forged.request(40, 40)).status == 409
    assert witness.add_checkpoint(forged.request(40, 60)).status == 422
    assert witness.add_checkpoint(forged.request(40, 60, proof_from=39)).status == 422
    assert witness.add_checkpoint(honest.request(40, 60, proof_from=60)).status == 422, "without a proof"
    assert witness.add_checkpoint(honest.request(40, 60)).status == 200


@pytest.mark.req("TOOLS-18")
def test_only_the_logs_that_it_watches_are_cosigned_and_only_with_their_signature(witness: Witness) -> None:
    tree = Tree()
    assert witness.add_checkpoint(tree.request(0, 5, signer=OTHER)).status == 403
    foreign = notes.Signer("other.example/log", LOG.private)
    text = notes.Checkpoint("other.example/log", 5, tree.tiles.root(5)).text()
    assert witness.add_checkpoint(WitnessRequest(0, [], notes.sign(text, foreign)).text().encode()).status == 404
    assert witness.add_checkpoint(tree.request(6, 5)).status == 400
    tampered = tree.request(0, 5).replace(b"\n5\n", b"\n6\n")
    assert witness.add_checkpoint(tampered).status == 403


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"old 0\n",
        b"old 00\n\nx\n",
        b"old -1\n\nx\n",
        b"new 0\n\nx\n",
        b"old 0\nnot base64!\n\nx\n",
        b"old 0\nAAAA\n\nx\n",
        b"old 0\n" + b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n" * 64 + b"\nx\n",
        b"old 0\n\nx\n",
    ],
)
def test_what_is_not_of_the_format_is_refused(body: bytes, witness: Witness) -> None:
    assert witness.add_checkpoint(body).status == 400


@pytest.mark.req("TOOLS-18")
def test_what_it_has_seen_and_its_key_outlive_it(tmp_path: Path) -> None:
    def started() -> Witness:
        return Witness(
            read_or_make_key(tmp_path / "key", "w.example"), [str(LOG.key)], WitnessState(tmp_path / "seen.json")
        )

    started().add_checkpoint(Tree().request(0, 40))

    assert started().add_checkpoint(Tree().request(0, 30)).body == "40\n"
    assert started().add_checkpoint(Tree(fork=3).request(40, 60)).status == 422
    assert started().add_checkpoint(Tree().request(40, 60)).status == 200
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["key", "seen.json"]


@pytest.mark.req("TOOLS-18")
def test_of_many_at_once_none_goes_back(witness: Witness, tmp_path: Path) -> None:
    tree = Tree()
    witness.add_checkpoint(tree.request(0, 10))
    requests = [tree.request(10, size) for size in range(11, 43)]
    answers: list[int] = []
    threads = [threading.Thread(target=lambda r=r: answers.append(witness.add_checkpoint(r).status)) for r in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == [200] + [409] * 31
    assert WitnessState(tmp_path / "seen.json").of(ORIGIN)[0] > 10


@pytest.mark.req("TOOLS-18")
def test_two_witnesses_never_share_a_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evidence.witnesses", "--name", "w.example", "--bind", "127.0.0.1:0"]
    command += ["--dir", str(tmp_path), "--log", str(LOG.key)]
    with witness_process(tmp_path, str(LOG.key)):
        second = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert second.returncode == 1
    assert "Another witness uses" in second.stderr
