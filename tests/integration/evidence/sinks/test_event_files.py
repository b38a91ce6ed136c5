"""Event files: is every event in the files once, in order, whenever their writer dies?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from evidence.deliveries.queue import Sender
from evidence.models import EventSink
from evidence.sinks import delivery, files, services
from kernel.ids import encode, new_id
from kernel.principal import Principal
from tests.support.evidence_logs import seal_everything, signing_with, write_facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def keys() -> Iterator[Any]:
    with signing_with() as found:
        yield found


@pytest.fixture
def by() -> Principal:
    return Principal.system("test", tenant_id=new_id())


@pytest.fixture
def sink(by: Principal, settings: Any, tmp_path: Path) -> EventSink:
    """With 50 events before it and its own."""
    settings.TOOLHUB_EVENTS_DIR = str(tmp_path)
    write_facts(by.tenant_id, 50)
    made, secret = services.make_sink(name="files", channel="file", from_beginning=True, max_mb=1, by=by)
    assert secret == ""
    seal_everything()
    return made


def written(sink: EventSink) -> list[int]:
    """The index of each line of each file, in the order of their names."""
    names = sorted(files.sink_folder(sink).glob("*.jsonl"))
    return [int(json.loads(line)["sequence"]) for name in names for line in name.read_bytes().splitlines()]


def more(sink: EventSink, count: int = 10) -> None:
    write_facts(sink.tenant_id, count)
    seal_everything()


def newest(sink: EventSink) -> Path:
    return max(files.sink_folder(sink).glob("*.jsonl"))


@pytest.mark.req("TOOLS-26")
def test_events_are_lines_in_a_folder_of_their_tenant(sink: EventSink, tmp_path: Path) -> None:
    assert delivery.deliver_due() == 51

    assert written(sink) == list(range(51))
    folder = tmp_path / encode("ten", sink.tenant_id) / sink.wire_id
    today = timezone.now().strftime("%Y-%m-%d")
    assert [each.name for each in folder.glob("*.jsonl")] == [f"{today}-{0:020d}.jsonl"]
    assert (newest(sink).stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    more(sink)
    assert delivery.deliver_due() == 10
    assert written(sink) == list(range(61))


@pytest.mark.req("TOOLS-26")
@pytest.mark.parametrize("torn", [b"", b'{"specversion":"1.0","seq', b"\0\0\0"])
def test_lines_that_the_database_does_not_know_of_are_not_doubled_and_a_torn_one_is_cut_off(
    torn: bytes, sink: EventSink
) -> None:
    delivery.deliver_due()
    with newest(sink).open("ab") as file:
        file.write(torn)
    EventSink.objects.update(cursor=17)  # the writer died when the lines were on the disk
    more(sink)

    assert delivery.deliver_due() == 10

    assert written(sink) == list(range(61))
    assert EventSink.objects.get().cursor == 61


@pytest.mark.req("TOOLS-26")
def test_a_sink_is_not_behind_when_all_its_lines_are_in_the_files(sink: EventSink) -> None:
    delivery.deliver_due()
    EventSink.objects.update(cursor=17, next_attempt_at=timezone.now())  # died so, and nothing happens afterwards

    deliverer = Sender(delivery.QUEUE)
    assert deliverer.start_due() == 1
    assert deliverer.finish() == 0
    deliverer.close()

    assert EventSink.objects.get().cursor == 51
    assert delivery.QUEUE.list_due() == []


@pytest.mark.req("TOOLS-26")
def test_a_writer_may_die_at_any_byte(sink: EventSink) -> None:
    delivery.deliver_due()
    whole = newest(sink).read_bytes()

    for size in range(0, len(whole), len(whole) // 23):
        newest(sink).write_bytes(whole[:size])
        EventSink.objects.update(cursor=0, next_attempt_at=timezone.now())
        delivery.deliver_due()

        assert newest(sink).read_bytes() == whole


@pytest.mark.req("TOOLS-26")
def test_another_file_begins_when_one_is_full_and_with_each_day(
    sink: EventSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MB", 4096)
    delivery.deliver_due()
    sizes = [each.stat().st_size for each in files.sink_folder(sink).glob("*.jsonl")]
    assert len(sizes) > 3
    assert max(sizes) < 4096 + 1500
    assert written(sink) == list(range(51))
    monkeypatch.undo()
    yesterday = newest(sink).with_name(f"2000-01-01-{0:020d}.jsonl")
    for each in files.sink_folder(sink).glob("*.jsonl"):
        each.replace(yesterday)
    more(sink)
    delivery.deliver_due()

    assert newest(sink).name.startswith(timezone.now().strftime("%Y"))
    assert len(newest(sink).read_bytes().splitlines()) == 10


@pytest.mark.req("TOOLS-26")
def test_files_that_were_carried_away_are_not_written_again(sink: EventSink) -> None:
    delivery.deliver_due()
    newest(sink).unlink()
    more(sink)

    delivery.deliver_due()

    assert written(sink) == list(range(51, 61))


@pytest.mark.req("TOOLS-26")
def test_a_disk_that_does_not_take_it_is_a_failed_try(sink: EventSink, settings: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    settings.TOOLHUB_EVENTS_DIR = str(tmp_path / "file")

    assert delivery.deliver_due() == 0

    row = EventSink.objects.get()
    assert (row.cursor, row.attempts) == (0, 1)
    assert "Not a directory" in row.last_error
