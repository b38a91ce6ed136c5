"""Display settings: does each person read, and enter, times of their own zone, while all that programs read stays in UTC?"""

from __future__ import annotations

import gc
import tracemalloc
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from access.display.services import find_display, is_time_zone, list_time_zones, set_display
from access.models import DisplaySettings
from access.roles import Role
from evidence.search.scope import FactScope
from invocations.call_search.histogram import can_count_hours, choose_stretch
from invocations.call_search.language import parse_calls
from kernel.problems import SchemaInvalid
from tests.conftest import make_person
from tests.support.made_calls import make_calls

if TYPE_CHECKING:
    from django.test import Client

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
BERLIN, KOLKATA = "Europe/Berlin", "Asia/Kolkata"
# In Berlin clocks went from 03:00 back to 02:00 in this night: the first is before, the second after, both between 2 and 3.
BEFORE, AFTER = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


@pytest.fixture
def berlin(operator: Person) -> Client:
    set_display(time_zone=BERLIN, user=operator.user)
    return operator.client()


@pytest.fixture
def kolkata(operator: Person, tenant: Any) -> Client:
    person = make_person(tenant, "kiran", Role.OPERATOR)
    set_display(time_zone=KOLKATA, number_style="comma", user=person.user)
    return person.client()


def count(client: Client, **asked: str) -> int:
    answer = client.get("/invocations", asked)
    assert answer.status_code == 200, answer.context["wrong"]
    return len(answer.context["page"].rows)


def test_two_persons_read_the_same_call_at_their_own_times_on_either_side_of_a_change_of_clocks(
    caller: Caller, berlin: Client, kolkata: Client
) -> None:
    for at in (BEFORE, AFTER):
        make_calls(caller, at)

    said = {
        client: client.get("/invocations", {"q": "after:2026-10-01"}).content.decode() for client in (berlin, kolkata)
    }

    assert 'title="2026-10-25 02:30:00.000 UTC+2"' in said[berlin]
    assert 'title="2026-10-25 02:30:00.000 UTC+1"' in said[berlin]
    assert 'title="2026-10-25 06:00:00.000 UTC+5:30"' in said[kolkata]
    assert 'title="2026-10-25 07:00:00.000 UTC+5:30"' in said[kolkata]
    assert f">{BERLIN}</a>" in said[berlin]
    assert f">{KOLKATA}</a>" in said[kolkata]


def test_a_day_that_somebody_asks_for_is_theirs_with_all_its_hours(
    caller: Caller, berlin: Client, kolkata: Client
) -> None:
    make_calls(caller, datetime(2026, 10, 24, 22, 0, tzinfo=UTC))  # the first moment of the 25th in Berlin
    make_calls(caller, datetime(2026, 10, 25, 22, 59, tzinfo=UTC))  # its last minute, 25 hours later
    make_calls(caller, datetime(2026, 10, 24, 18, 30, tzinfo=UTC))  # the first moment of the 25th in Kolkata

    day = {"from": "2026-10-25", "to": "2026-10-25"}
    assert (count(berlin, **day), count(kolkata, **day)) == (2, 2)
    assert count(berlin, q="after:2026-10-25T02:00 before:2026-10-25T03:00") == 0
    assert count(kolkata, q="after:2026-10-25T00:00 before:2026-10-25T00:01") == 1


def test_days_of_the_search_of_facts_are_those_of_who_asks() -> None:
    scope = FactScope(since=date(2026, 10, 25), until=date(2026, 10, 25))

    with timezone.override(BERLIN):
        assert scope.begins_at is not None
        assert scope.ends_at is not None
        assert scope.ends_at.astimezone(UTC) - scope.begins_at.astimezone(UTC) == timedelta(hours=25)


@pytest.mark.req("CARD-6")
def test_columns_of_days_go_from_midnight_to_midnight_also_where_clocks_are_changed() -> None:
    zone = ZoneInfo(BERLIN)
    stretch = choose_stretch(
        parse_calls("after:2026-10-01 before:2026-11-01"), now=datetime(2026, 11, 20, tzinfo=UTC), zone=zone
    )

    assert (stretch.step, stretch.count) == (timedelta(days=1), 31)
    assert {edge.astimezone(zone).strftime("%H:%M") for edge in stretch.edges} == {"00:00"}
    lengths = [later - edge for edge, later in zip(stretch.edges, stretch.edges[1:], strict=False)]
    assert lengths.count(timedelta(hours=25)) == 1
    assert stretch.place_of(datetime(2026, 10, 25, 22, 59, tzinfo=UTC)) == 24
    assert stretch.place_of(datetime(2026, 10, 25, 23, 0, tzinfo=UTC)) == 25
    assert stretch.place_of(stretch.until) is None


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("America/Santiago", date(2026, 9, 6)),
        ("Africa/Cairo", date(2026, 4, 24)),
        ("Atlantic/Azores", date(2026, 3, 29)),
    ],
)
@pytest.mark.parametrize("days_before", [0, 10])
def test_a_midnight_that_clocks_skip_moves_no_other(name: str, changed: date, days_before: int) -> None:
    zone = ZoneInfo(name)
    since = changed - timedelta(days=days_before)
    query = parse_calls(f"after:{since} before:{since + timedelta(days=31)}")

    stretch = choose_stretch(query, now=datetime(2026, 11, 20, tzinfo=UTC), zone=zone)

    local = [edge.astimezone(zone) for edge in stretch.edges]
    assert stretch.step == timedelta(days=1)
    assert [each.date() for each in local] == [since + timedelta(days=n) for n in range(32)]
    assert {each.date(): each.hour for each in local if each.hour} == {changed: 1}


@pytest.mark.req("CARD-6")
def test_a_day_that_a_zone_has_skipped_has_no_column() -> None:
    query = parse_calls("after:2011-12-27 before:2012-01-20")

    stretch = choose_stretch(query, now=datetime(2026, 11, 20, tzinfo=UTC), zone=ZoneInfo("Pacific/Apia"))

    assert len(set(stretch.edges)) == len(stretch.edges)
    assert stretch.count == 23
    assert date(2011, 12, 30) not in {edge.astimezone(ZoneInfo("Pacific/Apia")).date() for edge in stretch.edges}


@pytest.mark.req("CARD-6")
def test_counted_hours_are_added_up_only_where_each_column_begins_with_one() -> None:
    query, now = parse_calls("after:2026-09-28 before:2026-10-10"), datetime(2026, 10, 10, tzinfo=UTC)
    # On Lord Howe the offset is 10:30 until the fourth of October, and 11:00 from then on.
    before, across, after = (
        choose_stretch(parse_calls(asked), now=now, zone=ZoneInfo("Australia/Lord_Howe"))
        for asked in (
            "after:2026-09-28 before:2026-10-03",
            "after:2026-09-28 before:2026-10-10",
            "after:2026-10-05 before:2026-10-10",
        )
    )
    whole = choose_stretch(query, now=now, zone=ZoneInfo(BERLIN))

    assert [can_count_hours(query, each, now) for each in (before, across, after, whole)] == [False, False, True, True]
    back, now = parse_calls("after:2026-03-28 before:2026-04-12"), datetime(2026, 4, 12, tzinfo=UTC)
    assert not can_count_hours(back, choose_stretch(back, now=now, zone=ZoneInfo("Australia/Lord_Howe")), now)


@pytest.mark.req("CARD-6")
def test_each_column_leads_to_its_calls_for_whoever_opens_its_address(
    caller: Caller, berlin: Client, kolkata: Client
) -> None:
    for at in (BEFORE, AFTER):
        make_calls(caller, at)

    chart = berlin.get("/invocations", {"q": "after:2026-10-25T00:00 before:2026-10-25T06:00"}).context["found"].chart
    full = [each.column for each in chart.columns if sum(each.column.amounts.values())]

    assert [column.begin[-6:] for column in full] == ["+02:00", "+01:00"]  # an hour that comes twice is told apart
    for column in full:
        for client in (berlin, kolkata):
            assert len(client.get(column.url).context["page"].rows) == 1
    assert "UTC+2 / UTC+1" in berlin.get("/invocations", {"q": "after:2026-10-24 before:2026-10-27"}).content.decode()


def test_programs_read_times_in_utc_wherever_the_hub_and_its_people_are(
    caller: Caller, berlin: Client, settings: Any
) -> None:
    settings.TIME_ZONE = "Asia/Shanghai"
    make_calls(caller, BEFORE)

    answer = caller.get("/invocations")

    times = [row["created_at"] for row in answer.json()["data"]["invocations"]]
    assert times
    assert {datetime.fromisoformat(each).utcoffset() for each in times} == {timedelta(0)}


def test_times_that_are_entered_are_meant_in_the_zone_beside_their_field(berlin: Client) -> None:
    answer = berlin.get("/grants/new")
    assert answer.status_code == 200
    page = answer.content.decode()

    assert f'<span class="opt">{BERLIN}</span>' in page


# The choice.


def test_a_choice_is_kept_with_the_person_and_shown_everywhere_they_sign_in(operator: Person) -> None:
    answer = operator.client().post("/display", {"time_zone": KOLKATA, "number_style": "space"})

    assert (answer.status_code, answer.headers["Location"]) == (302, "/display")
    kept = find_display(operator.user)
    assert kept is not None
    assert (kept.time_zone, kept.number_style) == (KOLKATA, "space")
    page = operator.client().get("/display").content.decode()  # another session
    assert "1\u202f234,50 EUR" in page
    assert "UTC+5:30" in page


def test_what_is_no_time_zone_is_not_kept(operator: Person) -> None:
    client = operator.client()

    assert client.post("/display", {"time_zone": "../../etc/passwd", "number_style": "point"}).status_code == 422
    assert client.post("/display/zone", {"time_zone": "Mars/Olympus"}).status_code == 422
    with pytest.raises(SchemaInvalid):
        set_display(time_zone="UTC", number_style="roman", user=operator.user)
    assert find_display(operator.user) is None


def test_what_is_asked_about_time_zones_takes_no_memory(operator: Person) -> None:
    client, size = operator.client(), 2_000_000
    client.post("/display/zone", {"time_zone": "Mars/Olympus"})  # what is kept once is kept now

    tracemalloc.start()
    try:
        for number in range(5):
            assert client.post("/display/zone", {"time_zone": f"{number}" * size}).status_code == 422
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < size


def test_a_zone_is_proposed_until_one_was_chosen_or_declined(operator: Person) -> None:
    client = operator.client()
    assert 'id="zone-proposal"' in client.get("/display").content.decode()

    answer = client.post("/display/zone", {"time_zone": "UTC", "next": "/invocations?q=outcome:failed"})

    assert answer.headers["Location"] == "/invocations?q=outcome:failed"
    assert 'id="zone-proposal"' not in client.get("/display").content.decode()


def test_a_zone_that_this_machine_no_longer_knows_leaves_the_hubs(operator: Person) -> None:
    DisplaySettings.objects.create(user=operator.user, time_zone="Atlantis/Capital")

    assert operator.client().get("/invocations").status_code == 200


def test_every_zone_that_is_offered_is_one_and_older_names_are_understood() -> None:
    assert list_time_zones()[0] == "UTC"
    assert all(is_time_zone(name) for name in list_time_zones())
    assert is_time_zone("Asia/Calcutta")
    assert {"Europe/Berlin", "Asia/Shanghai", "America/Sao_Paulo"} <= set(list_time_zones())


def test_who_is_not_signed_in_is_sent_to_the_sign_in(client: Client) -> None:
    assert client.get("/display").headers["Location"].startswith("/sign-in")
    assert client.post("/display/zone", {"time_zone": "UTC"}).headers["Location"].startswith("/sign-in")
