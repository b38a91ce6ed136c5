"""Keys and secrets: can keys be told from other text, and secrets be read by their owner only?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.agents import api_keys
from evidence.keys.key_file import activate_key, add_key, forget_keys, make_key_file, read_key_file
from evidence.keys.keystore import FileKeyStore, InMemoryKeyStore
from evidence.problems import KeyUnavailable
from kernel.secret_files import read_or_make_secret, write_once
from tests.support.concurrency import MEET_WITHIN_S

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_key_is_known_by_its_look_up_part_and_its_hash() -> None:
    key = api_keys.new_key()

    assert api_keys.extract_lookup(key.text) == key.lookup
    assert api_keys.matches_digest(key.text, key.digest)
    assert not api_keys.matches_digest(api_keys.new_key().text, key.digest)
    assert key.lookup not in key.text.rpartition("_")[2]


def test_keys_do_not_repeat() -> None:
    assert len({api_keys.new_key().text for _ in range(200)}) == 200


@given(st.integers(0, 65), st.sampled_from(api_keys.ALPHABET))
def test_one_wrong_letter_is_noticed_without_a_query(place: int, letter: str) -> None:
    text = api_keys.new_key().text
    place = min(place, len(text) - 1)
    changed = text[:place] + letter + text[place + 1 :]

    assert api_keys.extract_lookup(changed) == (text.split("_")[2] if changed == text else "")


@given(st.text(max_size=90))
def test_other_text_is_no_key(text: str) -> None:
    assert api_keys.extract_lookup(text) == ""


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


def test_a_new_key_wraps_at_once_also_where_the_file_was_read_before_and_older_keys_still_open(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    make_key_file(path)
    store = FileKeyStore(path)
    key_id, wrapped = store.wrap(b"d" * 32, context=b"t")
    elsewhere = FileKeyStore(path)

    name = add_key(path, activate=True)

    later = elsewhere.wrap(b"e" * 32, context=b"t")
    assert (key_id, name, later[0]) == ("k1", "k2", "k2")
    assert store.unwrap(*later, context=b"t") == b"e" * 32  # it reads the file again for a key that it does not know
    assert elsewhere.unwrap(key_id, wrapped, context=b"t") == b"d" * 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == [".keys.json.lock", "keys.json"]


def test_a_prepared_key_waits_and_the_first_is_never_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    make_key_file(path)

    assert add_key(path, activate=False) == "k2"
    assert read_key_file(path)[1] == "k1"
    activate_key(path, add_key(path, activate=False))
    forget_keys(path, ["k1", "k2", "k3"])

    keys_left, current = read_key_file(path)
    assert (sorted(keys_left), current) == (["k1", "k3"], "k3")


def test_a_missing_key_file_is_said_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(KeyUnavailable, match="does not exist"):
        FileKeyStore(tmp_path / "keys.json")
    assert list(tmp_path.iterdir()) == []


def test_keys_for_other_purposes_differ_from_each_other_and_from_the_master_key() -> None:
    store = InMemoryKeyStore({"k1": b"1" * 32, "k2": b"2" * 32}, "k2")

    name, key = store.derive(b"tokens")

    assert name == "k2"
    assert store.derive(b"tokens", "k2")[1] == key
    assert len({key, store.derive(b"other")[1], store.derive(b"tokens", "k1")[1], b"2" * 32}) == 4
    with pytest.raises(KeyUnavailable):
        store.derive(b"tokens", "k9")


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
