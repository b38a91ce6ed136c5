"""Signers: do all signers keep the same promises: the fake of the tests, the keeper's file, a PKCS#11 token, a transit engine?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pkcs11 import Attribute, ObjectClass

from evidence.keys.key_file import add_key, make_key_file
from evidence.log.signers.files import FileSigner, InMemorySigner
from evidence.log.signers.tokens import TokenAddress, TokenSigner
from evidence.log.signers.transit import TransitSigner
from evidence.problems import KeyUnavailable
from kernel.ids import new_id
from tests.support.soft_tokens import make_token
from tests.support.transit_engine import TransitEngine, serve_transit_engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidence.log.signers.base import CheckpointSigner

describe = TransitEngine._describe
KINDS = ("in memory", "of a file", "of a token", "of a transit engine")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[TransitEngine]:
    with serve_transit_engine() as engine:
        (tmp_path / "token").write_text(f"{engine.token}\n")
        yield engine


@pytest.fixture
def token() -> Iterator[TokenSigner]:
    signer = TokenSigner(make_token(f"t{new_id().hex[-12:]}", prefix="hub"))
    yield signer
    signer.close()


@pytest.fixture(params=KINDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointSigner:
    """A signer that has no key."""
    match request.param:
        case "in memory":
            return InMemorySigner({})
        case "of a file":
            return FileSigner(tmp_path / "signing-keys.json")
        case "of a token":
            token: TokenSigner = request.getfixturevalue("token")
            return token
    engine = request.getfixturevalue("engine")
    return TransitSigner(engine.url, token_file=tmp_path / "token")


@pytest.fixture
def signer(empty: CheckpointSigner) -> CheckpointSigner:
    """One in the middle of a rotation."""
    empty.make_first_key()
    empty.add_key()
    return empty


def names_of(signer: CheckpointSigner) -> list[str]:
    return [key.name for key in signer.list_keys()]


@pytest.mark.req("TOOLS-18", "OPS-5")
def test_what_a_key_signs_its_public_half_verifies(signer: CheckpointSigner) -> None:
    for key in signer.list_keys():
        Ed25519PublicKey.from_public_bytes(key.log).verify(signer.sign(b"text", key=key.name), b"text")
        Ed25519PublicKey.from_public_bytes(key.clock).verify(signer.sign(b"text", key=key.name, clock=True), b"text")


@pytest.mark.req("TOOLS-18", "OPS-5")
def test_a_clock_and_its_key_do_not_sign_for_one_another(signer: CheckpointSigner) -> None:
    key = signer.list_keys()[0]

    with pytest.raises(InvalidSignature):
        Ed25519PublicKey.from_public_bytes(key.log).verify(signer.sign(b"text", key=key.name, clock=True), b"text")
    assert key.log != key.clock


@pytest.mark.req("TOOLS-18", "OPS-5")
def test_the_newest_key_is_the_current_one_and_comes_first(signer: CheckpointSigner) -> None:
    assert names_of(signer) == ["k2", "k1"]
    for number in range(3, 11):
        assert signer.add_key() == f"k{number}"

    assert names_of(signer)[0] == "k10"


@pytest.mark.req("TOOLS-18", "OPS-5")
def test_a_key_that_is_not_there_signs_nothing(signer: CheckpointSigner) -> None:
    for clock in (False, True):
        with pytest.raises(KeyUnavailable, match="nobody's"):
            signer.sign(b"text", key="nobody's", clock=clock)


@pytest.mark.req("TOOLS-18", "OPS-5")
def test_keys_stay_what_they_are(signer: CheckpointSigner) -> None:
    assert signer.list_keys() == signer.list_keys()


@pytest.mark.req("TOOLS-18", "OPS-5")
def test_without_a_key_it_says_so_and_the_first_has_the_name_that_is_wanted(empty: CheckpointSigner) -> None:
    assert not empty.has_keys()

    empty.make_first_key("k7")

    assert empty.has_keys()
    assert names_of(empty) == ["k7"]


@pytest.mark.req("TOOLS-18", "OPS-5")
def test_a_key_that_is_forgotten_signs_no_more_and_the_current_one_is_never_forgotten(signer: CheckpointSigner) -> None:
    signer.forget_keys(["k1", "k2", "k3"])

    assert names_of(signer) == ["k2"]
    with pytest.raises(KeyUnavailable):
        signer.sign(b"text", key="k1")
    with pytest.raises(KeyUnavailable):
        signer.sign(b"text", key="k1", clock=True)


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
        signer.list_keys()


@pytest.mark.req("OPS-5")
def test_two_hubs_share_a_token_and_see_only_their_own_keys() -> None:
    name = f"t{new_id().hex[-12:]}"
    uri = make_token(name, prefix="first")
    mine, theirs = TokenSigner(uri), TokenSigner(uri.replace("object=first", "object=second"))
    mine.make_first_key()
    mine.close()

    assert not theirs.has_keys()
    theirs.make_first_key()
    theirs.add_key()
    theirs.close()
    assert names_of(mine) == ["k1"]
    mine.close()


@pytest.mark.req("OPS-5")
def test_a_key_whose_making_was_cut_off_is_made_again(token: TokenSigner) -> None:
    token.make_first_key()
    with token._opened() as session:
        for each in list(session.get_objects({})):
            if each[Attribute.LABEL] == "hub/k1":
                each.destroy()
    assert not token.has_keys()

    token.make_first_key()

    assert names_of(token) == ["k1"]


@pytest.mark.req("OPS-5")
@pytest.mark.parametrize("kind", [ObjectClass.PRIVATE_KEY, ObjectClass.PUBLIC_KEY])
def test_a_key_whose_end_was_cut_off_is_none_and_the_others_go_on(token: TokenSigner, kind: ObjectClass) -> None:
    token.make_first_key()
    token.add_key()
    with token._opened() as session:
        for each in list(session.get_objects({Attribute.CLASS: kind, Attribute.LABEL: "hub/k1"})):
            each.destroy()

    assert names_of(token) == ["k2"]


@pytest.mark.req("OPS-5")
def test_two_keys_of_one_name_are_told_and_none_signs(token: TokenSigner) -> None:
    token.make_first_key()
    other = TokenSigner.__new__(TokenSigner)
    other.__dict__.update(token.__dict__)
    other._left_over = lambda session: []  # type: ignore[method-assign]
    other.make_first_key()

    with pytest.raises(KeyUnavailable, match="two signing keys k1"):
        token.list_keys()


@pytest.mark.req("OPS-5")
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # of the library, which ends a search that is gone
def test_a_token_that_was_away_is_opened_again(token: TokenSigner) -> None:
    token.make_first_key()
    before = token.list_keys()
    assert token._session is not None
    token._session.close()

    with pytest.raises(KeyUnavailable, match="does not answer"):
        token.list_keys()
    assert token.list_keys() == before


@pytest.mark.req("OPS-5")
@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("", "no pkcs11"),
        ("file:/x", "no pkcs11"),
        ("pkcs11:token=a", "does not name"),
        ("pkcs11:?module-path=/x&pin-source=file:/y", "does not name"),
        ("pkcs11:token=a?module-path=/x&pin-value=1234", "pin-value"),
        ("pkcs11:token=a?module-path=/x&pin-source=1234", "does not name"),
        ("pkcs11:slot-id=a?module-path=/x&pin-source=file:/y", "no number"),
    ],
)
def test_an_address_that_names_no_token_is_refused_with_an_example(uri: str, says: str) -> None:
    with pytest.raises(KeyUnavailable, match=says) as refused:
        TokenAddress.parse(uri)
    assert "pkcs11:token=toolhub" in refused.value.remedy


@pytest.mark.req("OPS-5")
@pytest.mark.parametrize("pin", ["file:/run/pin", "file:///run/pin", "/run/pin"])
def test_an_address_is_read_as_the_standard_has_it(pin: str) -> None:
    found = TokenAddress.parse(f"pkcs11:token=My%20token;object=hub;serial=7?module-path=/lib/x.so&pin-source={pin}")

    assert (found.token, found.prefix, found.serial, found.module) == ("My token", "hub/", "7", "/lib/x.so")
    assert str(found.pin_source) == "/run/pin"


@pytest.mark.req("OPS-5")
def test_what_is_wrong_with_a_token_is_said(tmp_path: Path) -> None:
    uri = make_token(f"t{new_id().hex[-12:]}")
    with pytest.raises(KeyUnavailable, match="no PKCS#11 module"):
        TokenSigner(uri.replace("libsofthsm2", "nothing")).list_keys()
    with pytest.raises(KeyUnavailable, match="no tokens"):
        TokenSigner(uri.replace("token=t", "token=x")).list_keys()
    with pytest.raises(KeyUnavailable, match="The PIN of the signing token"):
        TokenSigner(uri.partition("pin-source")[0] + f"pin-source=file:{tmp_path}/none").list_keys()
    (tmp_path / "pin").write_text("0000")
    with pytest.raises(KeyUnavailable, match="PinIncorrect"):
        TokenSigner(uri.partition("pin-source")[0] + f"pin-source=file:{tmp_path}/pin").list_keys()


@pytest.mark.req("OPS-5")
def test_the_token_of_a_transit_engine_is_read_for_each_request(engine: TransitEngine, tmp_path: Path) -> None:
    signer = TransitSigner(engine.url, token_file=tmp_path / "token")
    signer.make_first_key()
    engine.token = "s.second"
    with pytest.raises(KeyUnavailable, match="does not allow"):
        signer.list_keys()

    (tmp_path / "token").write_text("s.second")

    assert names_of(signer) == ["k1"]


@pytest.mark.req("OPS-5")
def test_a_turn_without_news_asks_a_transit_engine_once(engine: TransitEngine, tmp_path: Path) -> None:
    signer = TransitSigner(engine.url, token_file=tmp_path / "token")
    signer.make_first_key()
    signer.list_keys()
    engine.heard.clear()

    signer.list_keys()

    assert engine.heard == ["GET keys"]


@pytest.mark.req("OPS-5")
def test_what_a_transit_engine_does_not_do_is_said(engine: TransitEngine, tmp_path: Path) -> None:
    signer = TransitSigner(engine.url, token_file=tmp_path / "token")
    signer.make_first_key()
    engine.refused = {"sign"}
    with pytest.raises(KeyUnavailable, match="does not allow POST sign/toolhub-k1") as refused:
        signer.list_keys()
    assert "policy" in refused.value.remedy

    with pytest.raises(KeyUnavailable, match="does not answer: ConnectError"):
        TransitSigner("http://127.0.0.1:9", token_file=None).list_keys()
    with pytest.raises(KeyUnavailable, match="cannot be read"):
        TransitSigner(engine.url, token_file=tmp_path / "none").list_keys()


@pytest.mark.req("OPS-5")
def test_keys_that_do_not_sign_what_they_say_are_not_taken(
    engine: TransitEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = TransitSigner(engine.url, token_file=tmp_path / "token")
    signer.make_first_key()
    monkeypatch.setattr(TransitEngine, "_describe", lambda self, name: describe(self, "toolhub-k1-clock"))

    with pytest.raises(KeyUnavailable, match="no Ed25519 signature of that key"):
        signer.list_keys()
