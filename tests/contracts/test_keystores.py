"""Key stores: do all key stores keep the same promises: the file, the environment, a service in memory and one over HTTP?"""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from evidence.keys.key_file import make_key_file, parse_keys
from evidence.keys.key_service import HttpKeyService, InMemoryKeyService, ServiceKeyStore
from evidence.keys.keystore import FileKeyStore, InMemoryKeyStore
from evidence.problems import KeyUnavailable
from tests.support.http_server import QuietHandler, serve_requests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidence.keys.keystore import KeyStore

KEYS = {"k1": b"1" * 32, "k2": b"2" * 32}
TOKEN = "of-this-hub"


@contextmanager
def key_server(store: InMemoryKeyStore) -> Iterator[str]:
    """A key management service, as small as one can be."""
    service = InMemoryKeyService(store)

    class Answering(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802  as http.server calls it
            said = json.loads(self.read_body())
            given = {name: base64.b64decode(text) if name != "key_id" else text for name, text in said.items()}
            try:
                answer = self.answer(given) if self.headers["Authorization"] == f"Bearer {TOKEN}" else None
            except KeyUnavailable:
                answer = None
            if answer is None:
                self.write_answer(403, b"")
                return
            document = {
                name: base64.b64encode(value).decode() if isinstance(value, bytes) else value
                for name, value in answer.items()
            }
            self.write_answer(200, json.dumps(document).encode())

        def answer(self, given: dict[str, Any]) -> dict[str, Any]:
            match self.path:
                case "/wrap":
                    return dict(zip(("key_id", "wrapped"), service.wrap(**given), strict=True))
                case "/unwrap":
                    return {"plaintext": service.unwrap(given.pop("key_id"), given.pop("wrapped"), **given)}
                case _:
                    return dict(zip(("key_id", "first", "mac"), service.mac(**given), strict=True))

    with serve_requests(Answering) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=["memory", "file", "env", "service", "http"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeyStore]:
    inside = InMemoryKeyStore(dict(KEYS), "k2")
    document = json.dumps(
        {"current": "k2", "keys": {name: base64.b64encode(key).decode() for name, key in KEYS.items()}}
    )
    match request.param:
        case "file":
            (tmp_path / "keys.json").write_text(document)
            yield FileKeyStore(tmp_path / "keys.json")
        case "env":
            yield InMemoryKeyStore(*parse_keys(document, what="TOOLHUB_MASTER_KEYS"))
        case "service":
            yield ServiceKeyStore(InMemoryKeyService(inside))
        case "http":
            with key_server(inside) as url:
                yield ServiceKeyStore(HttpKeyService(url, TOKEN))
        case _:
            yield inside


@pytest.mark.req("SPEC-10")
def test_what_is_wrapped_is_unwrapped_with_the_key_that_is_named_and_in_its_context_only(store: KeyStore) -> None:
    key_id, wrapped = store.wrap(b"d" * 32, context=b"acme")

    assert key_id == "k2"
    assert b"d" * 32 not in wrapped
    assert store.unwrap(key_id, wrapped, context=b"acme") == b"d" * 32
    for wrong in (("k1", wrapped, b"acme"), ("k2", wrapped, b"other"), ("k9", wrapped, b"acme")):
        with pytest.raises(KeyUnavailable):
            store.unwrap(wrong[0], wrong[1], context=wrong[2])
    with pytest.raises(KeyUnavailable):
        store.unwrap(key_id, wrapped[:-1] + bytes([wrapped[-1] ^ 1]), context=b"acme")


@pytest.mark.req("SPEC-10")
def test_fingerprints_compare_within_a_context_and_rest_on_the_first_key(store: KeyStore) -> None:
    assert store.first() == "k1"
    assert store.fingerprint(b"a", context=b"acme") == store.fingerprint(b"a", context=b"acme")
    assert store.fingerprint(b"a", context=b"acme") != store.fingerprint(b"a", context=b"other")
    assert store.fingerprint(b"a", context=b"acme") != store.fingerprint(b"b", context=b"acme")


@pytest.mark.req("SPEC-10")
def test_keys_for_other_purposes_come_from_the_key_in_use_or_the_one_that_is_named(store: KeyStore) -> None:
    name, key = store.derive(b"purpose")

    assert name == "k2"
    assert store.derive(b"purpose", "k2") == (name, key)
    assert store.derive(b"purpose", "k1")[1] != key
    assert store.derive(b"another")[1] != key
    with pytest.raises(KeyUnavailable):
        store.derive(b"purpose", "k9")


@pytest.mark.req("SPEC-10")
def test_a_store_says_which_keys_it_has_unless_only_a_service_knows(store: KeyStore) -> None:
    assert store.names() in ({"k1", "k2"}, None)


@pytest.mark.req("SPEC-10")
def test_a_service_that_does_not_answer_is_said_and_nothing_is_wrapped() -> None:
    with key_server(InMemoryKeyStore(dict(KEYS), "k2")) as url, pytest.raises(KeyUnavailable, match="did not wrap"):
        HttpKeyService(url, "of somebody else").wrap(b"x", context=b"")
    with pytest.raises(KeyUnavailable, match="did not wrap"):
        HttpKeyService(url, TOKEN).wrap(b"x", context=b"")


@pytest.mark.req("SPEC-10")
def test_keys_in_the_environment_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    make_key_file(tmp_path / "keys.json")
    assert parse_keys((tmp_path / "keys.json").read_text(), what="X")[1] == "k1"
    with pytest.raises(KeyUnavailable, match="X cannot be read"):
        parse_keys("", what="X")
