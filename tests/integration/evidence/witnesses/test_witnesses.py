"""Witnesses: do witnesses see every checkpoint, and refuse a hub that rewrites or forgets?"""

from __future__ import annotations

import json
import subprocess
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.models import UUIDField
from django.utils import timezone

from evidence.log import reader
from evidence.models import GLOBAL_LOG, Anchor, Checkpoint, Fact
from evidence.verify import notes
from evidence.witnesses import anchors
from evidence.witnesses.client import WitnessAddress
from kernel.ids import new_id
from tests.support.append_only_triggers import rewritable
from tests.support.evidence_logs import seal_everything, signing_with, write_facts
from tests.support.http_server import local_server
from tests.support.witness_processes import WitnessProcess, witness_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.django_db(transaction=True)
TENANT = new_id()


@pytest.fixture(autouse=True)
def keys(settings: Any) -> Iterator[Any]:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    with signing_with() as found:
        yield found


def grow(count: int = 3) -> int:
    """More facts in the log; the size of the global log then."""
    write_facts(TENANT, count)
    seal_everything()
    newest = reader.latest_checkpoint(GLOBAL_LOG)
    assert newest is not None
    return newest.size


def vkeys() -> list[str]:
    return [str(key) for key in reader.list_vkeys(reader.load_origin(GLOBAL_LOG))]


@pytest.fixture
def two(settings: Any, tmp_path: Path) -> Iterator[list[WitnessProcess]]:
    """Two witnesses that know this hub's key."""
    grow()
    with (
        witness_process(tmp_path / "one", *vkeys(), name="one.example") as one,
        witness_process(tmp_path / "two", *vkeys(), name="two.example") as two,
    ):
        settings.TOOLHUB_WITNESSES = [one.setting, two.setting]
        yield [one, two]


def show() -> int:
    Anchor.objects.update(next_attempt_at=timezone.now())
    return anchors.update_anchors()


def states() -> dict[str, tuple[int, str]]:
    return {each.anchor.name: (each.anchor.size, each.alarm) for each in anchors.load_anchor_statuses()}


def kinds() -> list[str]:
    return list(Fact.objects.filter(kind__startswith="anchor.").order_by("id").values_list("kind", flat=True))


def global_id() -> Any:
    """As SQL has it here."""
    return UUIDField().get_db_prep_value(GLOBAL_LOG, connection)


def forget(size: int) -> None:
    """As a hub whose database was set back: the global log has ``size`` leaves again. What the hub knows of witnesses goes, too."""
    with rewritable(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM evidence_checkpoint WHERE tenant_id = %s AND size > %s", [global_id(), size])
    Anchor.objects.update(size=min(size, 1))


@pytest.mark.req("TOOLS-18")
def test_both_cosign_every_checkpoint_and_anybody_can_verify_that(two: list[WitnessProcess]) -> None:
    for _ in range(4):
        size = grow()

        assert show() == 2

        checkpoint = reader.latest_checkpoint(GLOBAL_LOG)
        assert checkpoint is not None
        assert checkpoint.size == size
        for each in two:
            opened = notes.open_note(checkpoint.note, [each.vkey])
            [cosigned] = opened.verified
            assert cosigned.at is not None
            assert abs(cosigned.at - timezone.now().timestamp()) < 3600
        assert notes.open_checkpoint(checkpoint.note, vkeys()).size == size
    assert states() == {"one.example": (size, ""), "two.example": (size, "")}
    assert anchors.update_anchors() == 0, "there is nothing new"


@pytest.mark.req("TOOLS-18")
def test_a_witness_that_was_restarted_goes_on_where_it_was(settings: Any, tmp_path: Path) -> None:
    grow()
    for _ in range(3):
        with witness_process(tmp_path / "w", *vkeys()) as witness:
            settings.TOOLHUB_WITNESSES = [witness.setting]
            size = grow()
            assert show() == 1
    seen = json.loads((tmp_path / "w" / "seen.json").read_text())
    assert [entry[0] for entry in seen.values()] == [size]


@pytest.mark.req("TOOLS-18")
def test_a_hub_that_forgot_what_a_witness_has_seen_asks_it(two: list[WitnessProcess]) -> None:
    show()
    size = grow()
    Anchor.objects.all().delete()

    assert show() == 2

    assert states()["one.example"] == (size, "")


@pytest.mark.req("TOOLS-18")
def test_a_database_that_was_set_back_is_refused_until_it_is_restored(two: list[WitnessProcess]) -> None:
    before = grow()
    grow()
    show()
    kept = list(Checkpoint.objects.filter(tenant_id=GLOBAL_LOG, size__gt=before))
    forget(before)

    assert show() == 0

    for size, alarm in states().values():
        assert size == 1
        assert "this hub was set back" in alarm
    assert kinds() == ["anchor.refused", "anchor.refused"]
    assert show() == 0
    assert len(kinds()) == 2, "said once"
    with rewritable():
        Checkpoint.objects.bulk_create(kept)
    assert show() == 2
    assert kinds()[2:] == ["anchor.agreed", "anchor.agreed"]
    assert {alarm for _, alarm in states().values()} == {""}


@pytest.mark.req("TOOLS-18")
def test_a_hub_that_goes_on_from_an_older_state_is_refused(two: list[WitnessProcess]) -> None:
    """The rewritten log is longer than what was seen, and signed with the real key."""
    before = grow()
    grow()
    show()
    with rewritable(), connection.cursor() as cursor:
        for table in ("checkpoint", "tile", "log"):
            cursor.execute(f"DELETE FROM evidence_{table} WHERE tenant_id = %s", [global_id()])
        cursor.execute("UPDATE evidence_checkpoint SET global_index = NULL")
        cursor.execute("DELETE FROM evidence_checkpoint WHERE size = %s", [before])
    for _ in range(6):
        size = grow()

    assert show() == 0

    assert size > before
    assert all("history was rewritten" in alarm for _, alarm in states().values())
    assert kinds() == ["anchor.refused", "anchor.refused"]


@pytest.mark.req("TOOLS-18")
def test_a_witness_that_does_not_answer_is_an_alarm_after_a_while_and_holds_up_nobody(
    two: list[WitnessProcess], settings: Any
) -> None:
    show()
    dead = WitnessAddress.parse(two[0].setting)
    settings.TOOLHUB_WITNESSES = [f"{dead.key}@http://127.0.0.1:9", two[1].setting]
    size = grow()

    assert show() == 1

    assert states()["two.example"] == (size, "")
    assert states()["one.example"][1] == "", "a moment is no alarm"
    Anchor.objects.filter(name="one.example").update(anchored_at=timezone.now() - timedelta(hours=1))
    assert "did not answer" in states()["one.example"][1]


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("said", ["", "— two.example AAAA\n", "nothing\n"])
def test_what_is_no_cosignature_of_this_witness_is_not_kept(
    said: str, two: list[WitnessProcess], settings: Any
) -> None:
    with local_server() as liar:
        liar.document = said.encode()
        settings.TOOLHUB_WITNESSES = [f"{WitnessAddress.parse(two[0].setting).key}@{liar.url}"]

        assert show() == 0

    assert states()["one.example"][0] == 0
    newest = reader.latest_checkpoint(GLOBAL_LOG)
    assert newest is not None
    assert "example" not in newest.note.replace("toolhub.example", "")


@pytest.mark.req("TOOLS-18")
def test_a_file_gets_every_checkpoint_once_and_a_torn_line_is_no_harm(settings: Any, tmp_path: Path) -> None:
    settings.TOOLHUB_ANCHOR_FILE = str(tmp_path / "anchor.jsonl")
    sizes = []
    for number in range(3):
        sizes.append(grow())
        assert show() == 1
        assert show() == 0
        if number == 1:
            with (tmp_path / "anchor.jsonl").open("a") as file:
                file.write('{"at": "20')

    kept = [notes.open_checkpoint(note, vkeys()) for name, note in anchors.kept_notes() if name == "file"]

    assert [checkpoint.size for checkpoint in kept] == sizes


@pytest.mark.req("TOOLS-18")
def test_a_file_that_knows_more_than_the_hub_gets_nothing_more(settings: Any, tmp_path: Path) -> None:
    settings.TOOLHUB_ANCHOR_FILE = str(tmp_path / "anchor.jsonl")
    before = grow()
    grow()
    assert show() == 1
    forget(before)
    whole = (tmp_path / "anchor.jsonl").read_bytes()

    assert show() == 0

    assert "this hub was set back" in states()["file"][1]
    assert kinds() == ["anchor.refused"]
    assert (tmp_path / "anchor.jsonl").read_bytes() == whole
    settings.TOOLHUB_ANCHOR_FILE = ""
    show()
    assert states() == {}, "what is not named any more raises no alarm"


@pytest.mark.req("TOOLS-18")
def test_a_repository_gets_every_checkpoint_and_a_push(settings: Any, tmp_path: Path) -> None:
    clone, remote = tmp_path / "clone", tmp_path / "remote.git"
    for command in (["init", "-q", "--bare", str(remote)], ["clone", "-q", str(remote), str(clone)]):
        subprocess.run(["git", *command], check=True, capture_output=True)
    settings.TOOLHUB_ANCHOR_GIT, settings.TOOLHUB_ANCHOR_GIT_PUSH = str(clone), "origin"
    sizes = []
    for _ in range(3):
        sizes.append(grow())
        assert show() == 1

    kept = [notes.open_checkpoint(note, vkeys()) for name, note in anchors.kept_notes() if name == "git"]

    assert [checkpoint.size for checkpoint in kept] == sizes
    pushed = subprocess.run(
        ["git", "-C", remote, "log", "--all", "--format=%s"], check=True, capture_output=True, text=True
    )
    assert len(pushed.stdout.splitlines()) == 3
    (remote / "HEAD").unlink()
    grow()
    assert show() == 0
    assert Anchor.objects.get(name="git").last_error.startswith("git: ")
