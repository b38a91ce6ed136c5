"""Signers: do all signers keep the same promises: the fake of the tests, and the file that the keeper reads?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from evidence.keys.key_file import add_key, make_key_file
from evidence.log.signer import FileSigner, InMemorySigner
from evidence.problems import KeyUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from evidence.log.signer import CheckpointSigner


def in_memory(folder: Path) -> CheckpointSigner:
    del folder
    return InMemorySigner({"old": b"1" * 32, "new": b"2" * 32}, current="new")


def of_a_file(folder: Path) -> CheckpointSigner:
    path = folder / "signing-keys.json"
    make_key_file(path)
    add_key(path, activate=True)
    return FileSigner(path)


@pytest.fixture(params=[in_memory, of_a_file], ids=["in memory", "of a file"])
def signer(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointSigner:
    made: CheckpointSigner = request.param(tmp_path)
    return made


def names_of(signer: CheckpointSigner) -> list[str]:
    keys = signer.keys()
    return [key.name for key in keys]


@pytest.mark.req("TOOLS-18")
def test_what_a_key_signs_its_public_half_verifies(signer: CheckpointSigner) -> None:
    keys = signer.keys()

    for key in keys:
        Ed25519PublicKey.from_public_bytes(key.log).verify(signer.sign(b"text", key=key.name), b"text")
        Ed25519PublicKey.from_public_bytes(key.clock).verify(signer.sign(b"text", key=key.name, clock=True), b"text")


@pytest.mark.req("TOOLS-18")
def test_a_clock_and_its_key_do_not_sign_for_one_another(signer: CheckpointSigner) -> None:
    key = signer.keys()[0]

    with pytest.raises(InvalidSignature):
        Ed25519PublicKey.from_public_bytes(key.log).verify(signer.sign(b"text", key=key.name, clock=True), b"text")
    assert key.log != key.clock


@pytest.mark.req("TOOLS-18")
def test_the_current_key_comes_first(signer: CheckpointSigner) -> None:
    names = names_of(signer)

    assert len(names) == len(set(names)) == 2
    assert names == [signer.current, *sorted(set(names) - {signer.current})]  # type: ignore[attr-defined]


@pytest.mark.req("TOOLS-18")
def test_a_key_that_is_not_there_signs_nothing(signer: CheckpointSigner) -> None:
    with pytest.raises(KeyUnavailable):
        signer.sign(b"text", key="nobody's")


@pytest.mark.req("TOOLS-18")
def test_keys_stay_what_they_are(signer: CheckpointSigner) -> None:
    assert signer.keys() == signer.keys()


@pytest.mark.req("TOOLS-18")
def test_a_file_that_was_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "signing-keys.json"
    make_key_file(path)
    signer = FileSigner(path)
    before = names_of(signer)

    added = add_key(path, activate=True)

    assert names_of(signer) == [added, *before]


@pytest.mark.req("TOOLS-18")
def test_a_file_that_is_gone_signs_no_more(tmp_path: Path) -> None:
    path = tmp_path / "signing-keys.json"
    make_key_file(path)
    signer = FileSigner(path)
    path.unlink()

    with pytest.raises(KeyUnavailable, match="cannot be read"):
        signer.keys()
