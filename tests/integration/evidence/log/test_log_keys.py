"""Log keys: do the keys that logs are signed with change so that everybody can follow, and never unseen?"""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from evidence.exports.jobs import advance_next
from evidence.exports.services import make_export
from evidence.exports.storage import iter_pieces
from evidence.keys.key_file import make_key_file
from evidence.kinds import Kind
from evidence.log import reader
from evidence.log.signer import choose_signer, make_signing_key
from evidence.log.signers.files import FileSigner
from evidence.log.signing_keys import register_keys
from evidence.models import GLOBAL_LOG, Fact, LogKey
from evidence.problems import KeyUnavailable
from evidence.verify import notes
from kernel.database.tenancy import NO_TENANT
from kernel.ids import new_id
from kernel.principal import Principal
from tests.support.evidence_logs import check_log, seal_everything, signing_with, write_facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from uuid import UUID

pytestmark = pytest.mark.django_db
TENANT = new_id()


@pytest.fixture(autouse=True)
def file(tmp_path: Path, settings: Any) -> Iterator[Path]:
    path = tmp_path / "signing-keys.json"
    settings.TOOLHUB_SIGNING_KEY_FILE = path
    make_key_file(path)
    with signing_with(FileSigner(path)):
        yield path


def rotate(*words: str) -> str:
    output = StringIO()
    call_command("rotate_log_key", *words, stdout=output)
    return output.getvalue()


def vkey_of(log: UUID, name: str) -> str:
    return str(notes.VerifierKey(reader.load_origin(log), notes.ED25519, bytes(LogKey.objects.get(pk=name).public)))


def who_signed() -> list[str]:
    """The keys that a verifier finds under the text of the newest checkpoint, by the vkeys that are published."""
    note = reader.checkpoint_at(TENANT).note
    origin = reader.load_origin(TENANT)
    by_id = {notes.VerifierKey.parse(vkey).id: n for n, vkey in enumerate(reader.list_vkeys(origin))}
    names = list(LogKey.objects.order_by("added_at", "name").values_list("name", flat=True))
    opened = notes.open_note(note, reader.list_vkeys(origin))
    return sorted(names[by_id[each.id]] for each in opened.verified if each.at is None)


def sealed() -> None:
    write_facts(TENANT, 2)
    seal_everything()


@pytest.mark.req("TOOLS-18")
def test_during_a_rotation_both_keys_sign_and_afterwards_old_checkpoints_still_verify(file: Path) -> None:
    sealed()
    assert who_signed() == ["k1"]

    said = rotate()
    sealed()
    assert who_signed() == ["k1", "k2"]
    for log in (GLOBAL_LOG, NO_TENANT, TENANT):  # each that an auditor may hold, in a line of its own
        new = [
            vkey
            for vkey in reader.list_vkeys(reader.load_origin(log))
            if vkey_of(log, "k2") in vkey or "/clock" in vkey
        ]
        (line,) = [line for line in said.splitlines() if vkey_of(log, "k2") in line]
        assert line.split() == [new[0], new[-1]]
        assert vkey_of(log, "k1") not in said

    assert rotate("--retire").startswith("Retired: k1.")
    sealed()
    assert who_signed() == ["k2"]
    assert '"k1"' not in file.read_text()
    check_log(TENANT)  # every checkpoint of before and after


@pytest.mark.req("TOOLS-18")
def test_who_trusts_the_old_key_finds_the_new_one_in_a_log_that_the_old_one_signed() -> None:
    sealed()
    old = notes.VerifierKey.parse(reader.list_vkeys(reader.load_origin(TENANT))[0])
    rotate()
    seal_everything()

    for tenant_id in (NO_TENANT, TENANT):
        fact = Fact.objects.filter(tenant_id=tenant_id, kind=Kind.LOG_KEY_ADDED).latest("pk")
        assert '"key":"k2"' in bytes(fact.leaf).decode()
        signed = notes.VerifierKey(reader.load_origin(tenant_id), notes.ED25519, old.public)
        note = reader.checkpoint_at(tenant_id)
        assert notes.open_checkpoint(note.note, [signed]).size > (reader.find_leaf_index(fact) or 0)


@pytest.mark.req("TOOLS-18")
def test_that_a_key_was_retired_is_a_fact_of_each_log() -> None:
    sealed()
    rotate()
    rotate("--retire")

    for tenant_id in (NO_TENANT, TENANT):
        kinds = list(Fact.objects.filter(tenant_id=tenant_id, subject="hub:log_key:k1").values_list("kind", flat=True))
        assert Kind.LOG_KEY_RETIRED in kinds


@pytest.mark.req("TOOLS-18")
def test_a_key_that_was_lost_is_not_replaced_in_silence(file: Path) -> None:
    sealed()
    file.unlink()

    with pytest.raises(KeyUnavailable, match="No other was made"):
        make_signing_key()
    make_key_file(file)  # by somebody who means well
    with pytest.raises(KeyUnavailable, match="not the one that has signed"):
        register_keys()


@pytest.mark.req("TOOLS-18")
def test_a_key_that_is_lost_for_good_is_replaced_on_demand(file: Path) -> None:
    sealed()
    with pytest.raises(CommandError, match="nothing is lost"):
        rotate("--lost")
    file.unlink()

    rotate("--lost")
    sealed()

    assert who_signed() == ["k2"]
    assert LogKey.objects.get(pk="k1").retired_at is not None


@pytest.mark.req("TOOLS-18", "OPS-5")
def test_a_replacement_that_fails_leaves_the_loss_seen_and_may_be_tried_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed()
    file.unlink()
    with monkeypatch.context() as broken:
        broken.setattr(FileSigner, "make_first_key", refuse)
        with pytest.raises(CommandError, match="not now"):
            rotate("--lost")
    with pytest.raises(KeyUnavailable, match="No other was made"):
        make_signing_key()

    rotate("--lost")
    sealed()

    assert who_signed() == ["k2"]


@pytest.mark.req("TOOLS-18", "OPS-5")
def test_a_replacement_that_was_cut_off_goes_on_with_the_key_that_it_made(file: Path) -> None:
    sealed()
    file.unlink()
    make_key_file(file, name="k2")

    rotate("--lost")
    sealed()

    assert who_signed() == ["k2"]


@pytest.mark.req("TOOLS-18", "OPS-5")
def test_keys_that_could_not_be_destroyed_are_destroyed_the_next_time(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed()
    rotate()
    with monkeypatch.context() as broken:
        broken.setattr(FileSigner, "forget_keys", refuse)
        with pytest.raises(CommandError, match="not now"):
            rotate("--retire")
    assert "k1" in file.read_text()

    assert rotate("--retire").startswith("Retired: k1.")
    assert '"k1"' not in file.read_text()


def refuse(signer: FileSigner, *_: object) -> None:
    raise KeyUnavailable("not now")


@pytest.mark.req("TOOLS-18")
def test_a_retired_key_that_is_still_in_the_file_signs_nothing() -> None:
    sealed()
    rotate()
    LogKey.objects.filter(pk="k1").update(retired_at=LogKey.objects.get(pk="k1").added_at)

    sealed()

    assert who_signed() == ["k2"]


@pytest.mark.req("TOOLS-18")
def test_a_process_without_a_file_of_keys_signs_nothing(settings: Any) -> None:
    settings.TOOLHUB_SIGNING_KEY_FILE = None

    with pytest.raises(KeyUnavailable, match="only the keeper"):
        choose_signer()


@pytest.mark.req("TOOLS-18")
def test_during_a_rotation_who_holds_either_key_verifies_an_export_and_its_time(tmp_path: Path) -> None:
    """Their own vkeys are all that they trust: log and clock of one key. Afterwards only the new one counts."""
    sealed()
    old = vkeys_of("k1")
    assert verdict(tmp_path, old) == (0, True)
    rotate()
    sealed()
    new = vkeys_of("k2")

    assert [verdict(tmp_path, each) for each in (old, new)] == [(0, True), (0, True)]
    rotate("--retire")
    sealed()
    assert verdict(tmp_path, new) == (0, True)
    assert verdict(tmp_path, old)[0] == 2


def vkeys_of(name: str) -> list[str]:
    row, origin = LogKey.objects.get(pk=name), reader.load_origin(TENANT)
    clock = notes.VerifierKey(notes.clock_name(origin), notes.COSIGNATURE, bytes(row.clock))
    return [vkey_of(TENANT, name), str(clock)]


def verdict(folder: Path, vkeys: list[str]) -> tuple[int, bool]:
    """Of `toolhub-verify` over an export that is made now; whether the time is said by a clock that the auditor knows."""
    job = make_export(format="bundle", by=Principal.system("test", tenant_id=TENANT))
    while advance_next():
        pass
    job.refresh_from_db()
    path = folder / "bundle.zip"
    path.write_bytes(b"".join(iter_pieces(job)))
    keys = [word for vkey in vkeys for word in ("--key", vkey)]
    command = [sys.executable, "-m", "evidence.verify", str(path), *keys]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin"})
    return done.returncode, "signed at" in done.stdout and "came with the evidence" not in done.stdout
