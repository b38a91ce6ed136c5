"""Can keys be told from other text, and secrets be read by their owner only?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access import keys
from evidence.keystore import FileKeyStore, InMemoryKeyStore
from evidence.problems import KeyUnavailable
from tests.threads import MEET_WITHIN_S
from toolhub.kernel.secrets import read_or_make_secret, write_once

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_key_is_known_by_its_look_up_part_and_its_hash() -> None:
    key = keys.new_key()

    assert keys.lookup_of(key.text) == key.lookup
    assert keys.matches(key.text, key.digest)
    assert not keys.matches(keys.new_key().text, key.digest)
    assert key.lookup not in key.text.rpartition("_")[2]


def test_keys_do_not_repeat() -> None:
    assert len({keys.new_key().text for _ in range(200)}) == 200


@given(st.integers(0, 65), st.sampled_from(keys.ALPHABET))
def test_one_wrong_letter_is_noticed_without_a_query(place: int, letter: str) -> None:
    text = keys.new_key().text
    place = min(place, len(text) - 1)
    changed = text[:place] + letter + text[place + 1 :]

    assert keys.lookup_of(changed) == (text.split("_")[2] if changed == text else "")


@given(st.text(max_size=90))
def test_other_text_is_no_key(text: str) -> None:
    assert keys.lookup_of(text) == ""


# Secrets.


def test_a_secret_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "secret"

    first = read_or_make_secret(path)

    assert read_or_make_secret(path) == first
    assert len(first) >= 48
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["secret"]
    assert MEET_WITHIN_S


def test_who_comes_second_reads_what_the_first_wrote(tmp_path: Path) -> None:
    assert write_once(tmp_path / "x", "first") == "first"
    assert write_once(tmp_path / "x", "second") == "first"


# The key store.


def test_a_wrapped_key_opens_only_in_its_context() -> None:
    store = InMemoryKeyStore()
    key_id, wrapped = store.wrap(b"d" * 32, context=b"tenant-1")

    assert store.unwrap(key_id, wrapped, context=b"tenant-1") == b"d" * 32
    for context, changed in ((b"tenant-2", wrapped), (b"tenant-1", wrapped[:-1] + bytes([wrapped[-1] ^ 1]))):
        with pytest.raises(KeyUnavailable):
            store.unwrap(key_id, changed, context=context)
    with pytest.raises(KeyUnavailable):
        store.unwrap("another", wrapped, context=b"tenant-1")


def test_fingerprints_match_within_a_tenant_and_survive_a_rotation() -> None:
    store = InMemoryKeyStore({"k1": b"1" * 32}, "k1")
    rotated = InMemoryKeyStore({"k1": b"1" * 32, "k2": b"2" * 32}, "k2")
    stranger = InMemoryKeyStore({"k1": b"3" * 32}, "k1")

    mine = store.fingerprint(b"v", context=b"t")
    assert mine == rotated.fingerprint(b"v", context=b"t")
    others = {store.fingerprint(b"w", context=b"t"), store.fingerprint(b"v", context=b"u")}
    assert mine not in others | {stranger.fingerprint(b"v", context=b"t")}


def test_a_key_file_is_made_on_first_use_and_older_keys_still_open(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key_id, wrapped = FileKeyStore(path).wrap(b"d" * 32, context=b"t")
    document = json.loads(path.read_text())
    document["keys"]["k2"] = document["keys"]["k1"][::-1].replace("=", "") + "="
    fresh = FileKeyStore(tmp_path / "other.json")
    document["keys"]["k2"] = json.loads((tmp_path / "other.json").read_text())["keys"]["k1"]
    document["current"] = "k2"
    path.write_text(json.dumps(document))

    rotated = FileKeyStore(path)

    assert rotated.unwrap(key_id, wrapped, context=b"t") == b"d" * 32
    assert rotated.wrap(b"d" * 32, context=b"t")[0] == "k2"
    assert fresh.current == "k1"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"current": "k1", "keys": {}}', '{"current": "k1", "keys": {"k1": "!!"}}',
     '{"current": "k1", "keys": {"k1": "c2hvcnQ="}}', '{"current": "k2", "keys": {"k1": ""}}'],
)  # fmt: skip
def test_a_key_file_that_is_damaged_is_said_and_never_replaced(text: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)

    with pytest.raises(KeyUnavailable) as caught:
        FileKeyStore(path)
    assert "backup" in caught.value.remedy
    assert path.read_text() == text
