"""Keepers with a token: do logs grow, rotate and verify where no signing key is on any disk, and do several keepers share the work?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as configured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone
from pkcs11 import ObjectClass

from evidence.log.signer import choose_signer, make_signing_key
from evidence.log.signers.tokens import TokenSigner
from evidence.log.signers.transit import TransitSigner
from evidence.log.signing_keys import replace_lost_keys, rotate_key
from evidence.models import Fact, LogKey, Pending
from evidence.problems import KeyUnavailable
from kernel.ids import new_id
from tests.support.evidence_logs import check_log, seal_everything, signing_with, write_facts
from tests.support.http_server import QuietHandler, serve_requests
from tests.support.soft_tokens import list_files, make_token
from tests.support.transit_engine import serve_transit_engine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def uri() -> str:
    return make_token(f"t{new_id().hex[-12:]}")


@pytest.fixture
def token(uri: str, settings: Any) -> Iterator[TokenSigner]:
    settings.TOOLHUB_SIGNER, settings.TOOLHUB_SIGNING_PKCS11_URI, settings.TOOLHUB_SIGNING_KEY_FILE = "token", uri, None
    signer = choose_signer()
    assert isinstance(signer, TokenSigner)
    with signing_with(signer):
        yield signer
    signer.close()


@pytest.mark.req("OPS-5", "TOOLS-18")
@pytest.mark.django_db(transaction=True)
def test_a_keeper_makes_its_key_in_the_token_seals_and_rotates(token: TokenSigner, settings: Any) -> None:
    tenant_id, output = new_id(), StringIO()
    write_facts(tenant_id, 5)

    call_command("keep", "--once", stdout=output)
    call_command("rotate_log_key", stdout=output)
    write_facts(tenant_id, 5)
    seal_everything()
    call_command("rotate_log_key", "--retire", stdout=output)
    write_facts(tenant_id, 5)
    seal_everything()

    assert check_log(tenant_id) == Fact.objects.filter(tenant_id=tenant_id).count() > 15
    assert f"A signing key was made in {token.place}" in output.getvalue()
    assert [key.name for key in token.list_keys()] == ["k2"]
    assert not (Path(settings.TOOLHUB_DATA_DIR) / "signing-keys.json").exists()


@pytest.mark.req("OPS-5", "TOOLS-18")
@pytest.mark.django_db
def test_keys_that_are_gone_from_the_token_are_not_replaced_in_silence(token: TokenSigner) -> None:
    make_signing_key()
    write_facts(new_id(), 1)
    seal_everything()
    with pytest.raises(CommandError, match="nothing is lost"):
        call_command("rotate_log_key", "--lost")
    with token._opened() as session:
        for each in list(session.get_objects({})):
            each.destroy()

    with pytest.raises(KeyUnavailable, match="No other was made"):
        make_signing_key()
    call_command("rotate_log_key", "--lost", stdout=StringIO())

    assert [key.name for key in token.list_keys()] == ["k2"]
    assert LogKey.objects.get(pk="k1").retired_at is not None


@pytest.mark.req("OPS-5", "TOOLS-18")
@pytest.mark.django_db
def test_a_key_of_which_something_is_missing_is_no_key(token: TokenSigner, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a token leaves it that was cut off, or that two processes have used at once and that bears none."""

    def lose_the_clock(name: str) -> None:
        with token._opened() as session:
            halves = token._find(session, ObjectClass.PRIVATE_KEY)
            halves[f"{name}/clock"].destroy()

    make_signing_key()
    lose_the_clock("k1")
    with pytest.raises(KeyUnavailable, match="No signing key in the token t"):
        make_signing_key()
    with token._opened() as session:
        for each in list(session.get_objects({})):
            each.destroy()
    make_signing_key()
    add_key = token.add_key

    def add_half_a_key() -> str:
        name = add_key()
        lose_the_clock(name)
        return name

    monkeypatch.setattr(token, "add_key", add_half_a_key)
    with pytest.raises(KeyUnavailable, match="k2 that was made"):
        rotate_key()

    assert list(LogKey.objects.values_list("name", flat=True)) == ["k1"]
    assert [key.name for key in token.list_keys()] == ["k1"]


@pytest.mark.req("OPS-5", "TOOLS-18")
@pytest.mark.django_db
def test_a_lost_key_is_replaced_by_a_whole_one_or_not_at_all(
    token: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_signing_key()
    write_facts(new_id(), 1)
    seal_everything()
    with token._opened() as session:
        for each in list(session.get_objects({})):
            each.destroy()
    monkeypatch.setattr(token, "make_first_key", lambda name: None)

    with pytest.raises(KeyUnavailable, match="is whole"):
        replace_lost_keys()

    assert LogKey.objects.get().retired_at is None


@pytest.mark.req("OPS-5", "TOOLS-18")
@pytest.mark.django_db
def test_nothing_is_sealed_without_a_key_that_signs(token: TokenSigner) -> None:
    make_signing_key()
    tenant_id = new_id()
    write_facts(tenant_id, 1)
    seal_everything()
    LogKey.objects.update(retired_at=timezone.now())
    write_facts(tenant_id, 1)

    with pytest.raises(KeyUnavailable, match="those that did are retired"):
        seal_everything()

    assert Pending.objects.filter(tenant_id=tenant_id).count() == 1


@pytest.mark.req("OPS-5")
def test_an_address_without_a_transit_engine_makes_no_key(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s.first")

    class Nowhere(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802  names of the library
            self.read_body()
            self.write_answer(404, b'{"errors": []}')

    with serve_requests(Nowhere) as port:
        signer = TransitSigner(f"http://127.0.0.1:{port}/v1/other", token_file=tmp_path / "token")
        with pytest.raises(KeyUnavailable, match="There is no transit engine at"):
            signer.make_first_key()


@pytest.mark.req("OPS-5", "TOOLS-18")
@pytest.mark.django_db(transaction=True)
def test_a_log_is_signed_by_a_transit_engine(settings: Any, tmp_path: Path) -> None:
    tenant_id = new_id()
    with serve_transit_engine() as engine:
        (tmp_path / "token").write_text(engine.token)
        settings.TOOLHUB_SIGNER, settings.TOOLHUB_SIGNING_TRANSIT_URL = "transit", engine.url
        settings.TOOLHUB_SIGNING_TRANSIT_TOKEN_FILE = tmp_path / "token"
        with signing_with(choose_signer()):
            write_facts(tenant_id, 3)
            call_command("keep", "--once", stdout=StringIO())
            call_command("rotate_log_key", stdout=StringIO())
            write_facts(tenant_id, 3)
            seal_everything()
            call_command("rotate_log_key", "--retire", stdout=StringIO())
            seal_everything()

            assert check_log(tenant_id) == Fact.objects.filter(tenant_id=tenant_id).count() > 6
    assert set(engine.keys) == {"toolhub-k2", "toolhub-k2-clock"}


def begin(database: str, folder: Path, uri: str, *words: str, faults: str = "") -> subprocess.Popen[str]:
    env = os.environ | {"TOOLHUB_SIGNING_PKCS11_URI": uri, "TOOLHUB_FAULTS": faults}
    command = [sys.executable, "-m", "tests.support.keeper_process", database, str(folder), *words]
    return subprocess.Popen(
        command, cwd=configured.BASE_DIR, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    with process:
        out, err = process.communicate(timeout=120)
    return process.returncode, out.strip(), err


@pytest.mark.req("OPS-5", "TOOLS-18")
@pytest.mark.django_db
def test_several_keepers_share_a_token_and_one_that_is_killed_is_missed_by_nobody(
    begun_database: str, tmp_path: Path, uri: str
) -> None:
    code, _, err = end(begin(begun_database, tmp_path, uri, "migrate"))
    assert code == 0, err

    killed = begin(begun_database, tmp_path, uri, "write", "seal", faults="note.before_commit=kill")
    assert end(killed)[0] == -signal.SIGKILL

    for each in [begin(begun_database, tmp_path, uri, "write", "seal") for _ in range(2)]:
        code, _, err = end(each)
        assert code == 0, err
    assert end(begin(begun_database, tmp_path, uri, "seal", "check"))[:2] == (0, "99 facts, 99 leaves, 0 pending")
    assert not list(tmp_path.rglob("signing-keys*"))
    assert "signing-keys.json" not in list_files()


@pytest.mark.req("OPS-5", "TOOLS-18")
@pytest.mark.django_db
def test_keepers_that_start_at_once_make_one_key(begun_database: str, tmp_path: Path, uri: str) -> None:
    assert end(begin(begun_database, tmp_path, uri, "tables"))[0] == 0

    for each in [begin(begun_database, tmp_path, uri, "key") for _ in range(3)]:
        code, _, err = end(each)
        assert code == 0, err

    signer = TokenSigner(uri)
    try:
        assert [key.name for key in signer.list_keys()] == ["k1"]
    finally:
        signer.close()
