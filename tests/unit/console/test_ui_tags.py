"""UI tags: do the console's tags draw what they say, safely and in both languages?"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from django import forms
from django.template import Context, Template, TemplateSyntaxError
from django.test import RequestFactory
from django.utils import timezone as django_timezone
from django.utils import translation

from evidence.kinds import Kind
from kernel.components import labels, quantities
from kernel.components.moments import format_relative_time
from kernel.components.visualizations import MAX_NODES, columns, json_tree
from kernel.templatetags import frames, ui, words

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
INVOCATION_STATES = "received denied held queued running succeeded failed timed_out cancelled expired outcome_unknown"
TOOL_STATES = "registered enabled paused deprecated"
CONSENT_STATES = "requested approved denied revoked expired"


def render(source: str, **context: object) -> str:
    request = RequestFactory().get(context.pop("url", "/things?state=failed"))  # type: ignore[arg-type]
    return Template("{% load ui %}" + source).render(Context({"request": request, **context}))


@pytest.mark.parametrize("state", f"{INVOCATION_STATES} {TOOL_STATES} {CONSENT_STATES}".split())
def test_every_state_has_an_icon_a_word_and_a_tone(state: str) -> None:
    html = ui.badge(state)

    assert "<use href=" in html
    assert "data-tone=" in html
    assert state not in labels.STATUS[state][2]  # a word for people, not the wire's
    assert str(labels.STATUS[state][2]) in html


def test_a_state_that_is_not_known_is_shown_as_it_is_and_escaped() -> None:
    assert "&lt;b&gt;" in ui.badge("<b>")


def test_tags_are_escaped_and_say_what_it_means_that_there_are_none() -> None:
    source = "{% tags words empty %}"

    assert (
        render(source, words=["name", "<b>"], empty="none <yet>")
        == '<span class="tag">name</span> <span class="tag">&lt;b&gt;</span>'
    )
    assert render(source, words=[], empty="none <yet>") == '<span class="dim">none &lt;yet&gt;</span>'
    assert render("{% tags words %}", words=[]) == ""


def test_every_state_is_translated_to_chinese() -> None:
    english = {state: str(text) for state, (_tone, _icon, text) in labels.STATUS.items()}

    with translation.override("zh-hans"):
        same = [state for state, text in english.items() if str(labels.STATUS[state][2]) == text]

    assert same == []


def test_every_kind_of_fact_has_a_tone_an_icon_and_words_in_both_languages() -> None:
    english = {kind: str(labels.FACT[kind][2]) for kind in Kind.values}
    tones = {labels.FACT[kind][0] for kind in Kind.values}

    with translation.override("zh-hans"):
        same = [kind for kind, text in english.items() if str(labels.FACT[kind][2]) == text]

    assert same == []
    assert not set(english) & set(english.values())
    assert tones <= labels.TONE_ICONS.keys()


def test_words_of_manifests_are_said_in_chinese_and_others_as_they_are() -> None:
    known = ["personal", "payment", "health", "location", "credentials"]

    with translation.override("zh-hans"):
        assert not set(words.data_classes(known)) & set(known)
        assert words.data_classes(["loyalty"]) == ["loyalty"]
        assert words.operation("embed") == "文本向量"
        assert words.origin_word("llm") == "模型提议"
        assert words.place_word("header") == "标头"


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [
        (60, "a minute", "每分钟"),
        (86_400, "a day", "每天"),
        (604_800, "a week", "每周"),
        (7200, "per 2 hours", "每 2 小时"),
    ],
)
def test_a_limit_says_how_often_it_begins_anew(seconds: int, english: str, chinese: str) -> None:
    assert quantities.per(seconds) == english
    with translation.override("zh-hans"):
        assert quantities.per(seconds) == chinese


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "—"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.00 s"),
        (61_500, "1 m 1.5 s"),
        (3_660_000, "1 h 1 m"),
        (864e5 * 3, "3 days"),
    ],
)
def test_a_duration_is_written_in_the_unit_that_fits(ms: float | None, text: str) -> None:
    assert quantities.dur(ms) == text


@pytest.mark.parametrize(
    ("count", "text"), [(None, "—"), (0, "0 B"), (1023, "1,023 B"), (262_144, "256 KiB"), (1_572_864, "1.5 MiB")]
)
def test_sizes_use_units_of_1024(count: int | None, text: str) -> None:
    assert quantities.size(count) == text


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        (timedelta(seconds=-2), "just now"),
        (timedelta(seconds=-49), "49 s ago"),
        (timedelta(minutes=-4), "4 min ago"),
        (timedelta(hours=-4), "4 h ago"),
        (timedelta(days=-1), "1 day ago"),
        (timedelta(days=-66), "66 days ago"),
        (timedelta(minutes=30), "in 30 min"),
        (timedelta(days=2), "in 2 days"),
    ],
)
def test_relative_times_look_back_and_ahead(delta: timedelta, text: str) -> None:
    assert format_relative_time(NOW + delta, NOW) == text


def test_evidence_times_are_absolute_and_to_the_millisecond() -> None:
    value = datetime(2026, 11, 21, 14, 2, 11, 84_999, UTC)
    with django_timezone.override(timezone(timedelta(hours=5, minutes=30))):
        html = ui.moment(value, "exact")

    assert ">2026-11-21 19:32:11.084<" in html
    assert 'datetime="2026-11-21T19:32:11.084+05:30"' in html
    assert "UTC+5:30" in html


def test_a_missing_time_is_a_dash() -> None:
    assert "—" in ui.moment(None)


def test_a_short_id_shows_its_random_end_and_copies_the_whole() -> None:
    id_ = "inv_01kc8q4m7tfxz0random6part4"

    html = ui.ident(id_, "short")

    assert "inv_…om6part4" in html
    assert f'data-copy="{id_}"' in html


def test_a_digest_is_shortened_and_copied_whole() -> None:
    html = ui.digest("sha256:" + "ab" * 32)

    assert "sha256:abababab…" in html
    assert 'data-copy="sha256:' + "ab" * 32 + '"' in html


def test_a_json_tree_escapes_values_and_shows_invisible_characters() -> None:
    html = json_tree({"<k>": "<script>\u200b", "n": 1, "none": None, "empty": {}})

    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "U+200B" in html
    assert '<span class="j-k">{}</span>' in html


def test_a_large_json_tree_is_cut_and_says_so() -> None:
    html = json_tree(list(range(MAX_NODES + 500)))

    assert html.count("<li>") <= MAX_NODES
    assert "501 more values" in html


def test_a_chart_says_in_words_what_it_shows_uses_no_style_and_is_as_wide_as_its_place() -> None:
    svg = columns([("11-29", 3.0), ("11-30", 1.0)], "Spent on each of 2 days", 2.0, "Limit")

    assert 'role="img" aria-label="Spent on each of 2 days Limit"' in svg
    assert "style=" not in svg
    assert 'width="100%"' in svg
    assert re.findall(r'<rect class="(.)" x="([0-9.]+)%".*? width="([0-9.]+)%"', svg) == [
        ("a", "7.5", "35.0"),  # over the limit
        ("n", "57.5", "35.0"),
    ]


def test_captions_of_many_columns_do_not_touch() -> None:
    few, many = (columns([(f"day {n}", 1.0) for n in range(count)], "Days") for count in (7, 30))

    assert few.count("</text>") == 7
    assert re.findall(r"day \d+", many) == [f"day {n}" for n in range(0, 30, 5)]


def test_the_risk_meter_takes_the_manifests_words() -> None:
    assert ui.risk("High").count('class="on"') == 3
    assert ui.risk("Low").count('class="on"') == 1


class ExampleForm(forms.Form):
    reason = forms.CharField(label="Reason", help_text="Kept as evidence.")
    sure = forms.BooleanField(label="I have read it")
    scope = forms.ChoiceField(label="Scope", widget=forms.RadioSelect, choices=[("once", "Once")])


def test_a_field_ties_its_help_and_its_error_to_the_input() -> None:
    form = ExampleForm({"reason": ""})

    html = render(
        "{% error_summary form %}{% field form.reason %}{% field form.sure %}{% field form.scope %}", form=form
    )

    assert 'aria-describedby="id_reason_helptext id_reason_error"' in html
    assert 'id="id_reason_helptext"' in html
    assert 'id="id_reason_error"' in html
    assert 'role="alert"' in html
    assert 'href="#id_reason"' in html
    assert "<legend>Scope</legend>" in html


def test_a_form_without_mistakes_has_no_summary() -> None:
    assert render("{% error_summary form %}", form=ExampleForm()).strip() == ""


def test_the_pager_keeps_the_filter() -> None:
    html = render(
        "{% pager page %}", page=SimpleNamespace(rows=[1, 2], next="inv_next"), url="/things?state=failed&after=inv_x"
    )

    assert 'href="?state=failed&amp;after=inv_next"' in html
    assert 'href="/things?state=failed"' in html


def test_a_list_that_fits_has_no_pager() -> None:
    assert render("{% pager page %}", page=SimpleNamespace(rows=[1], next="")).strip() == ""


def test_a_dialog_opens_without_a_script() -> None:
    html = render('{% dialog "revoke" "Revoke?" %}<p>text</p>{% enddialog %}')

    assert '<div popover class="dlg" id="revoke" role="dialog" aria-labelledby="revoke-h">' in html


def test_copying_a_document_copies_readable_json() -> None:
    assert json.dumps({"a": 1}, indent=2).replace('"', "&quot;") in ui.copy({"a": 1})


@pytest.mark.parametrize(
    ("seconds", "text"), [(86_400, "1 day"), (5400, "90 minutes"), (7200, "2 hours"), (45, "45.00 s"), (0, "0 ms")]
)
def test_a_chosen_length_of_time_is_named_as_it_was_chosen(seconds: int, text: str) -> None:
    assert quantities.span(seconds) == text


TABLE = """
{% load tables %}{% table each in names label linked %}
  {% column "Name" "row" %}{{ each }}{% endcolumn %}
  {% if shows_length %}{% column "Length" "num" %}{{ each|length }}{% endcolumn %}{% endif %}
  {% column "Actions" "acts" %}-{% endcolumn %}
{% endtable %}
"""


def test_a_column_is_a_heading_and_a_cell_of_each_row() -> None:
    html = "".join(render(TABLE, names=["ada", "<b>"], label="Names & more", shows_length=True).split("\n"))

    head, body = html.replace("  ", "").split("</thead>")
    assert 'aria-label="Names &amp; more"' in head
    assert '<th scope="col">Name</th><th scope="col" class="num">Length</th>' in head
    assert '<th scope="col"><span class="sr-only">Actions</span></th>' in head
    assert '<tr class="rl"><th scope="row">ada</th><td class="num">3</td><td class="acts">-</td></tr>' in body
    assert '<th scope="row">&lt;b&gt;</th>' in body


def test_a_column_that_is_left_out_has_no_heading_either() -> None:
    html = render(TABLE, names=["ada"], label="Names", shows_length=False)

    assert html.count("<th scope=") == 3
    assert html.count("<td") == 1


def test_a_table_that_cannot_be_read_says_how_it_is_written() -> None:
    with pytest.raises(TemplateSyntaxError, match="row in rows label"):
        render("{% load tables %}{% table names %}{% endtable %}")


def test_an_entry_names_its_value() -> None:
    assert render("{% entry 'Id' 'mono' %}{{ id }}{% endentry %}", id="<1>") == (
        '<div><dt>Id</dt><dd class="mono">&lt;1&gt;</dd></div>'
    )


def test_a_trail_leads_back_step_by_step_and_escapes_names() -> None:
    html = render('{% trail %}{% crumb "Catalogue" "tools" %}{% crumb name "tool" "a.b" %}{% endtrail %}', name="<b>")

    assert html == (
        '<nav class="crumbs" aria-label="Breadcrumb"><ol>'
        '<li><a href="/tools">Catalogue</a></li><li><a href="/tools/a.b">&lt;b&gt;</a></li></ol></nav>'
    )
    assert frames.crumbs("Catalogue", "tools") == render('{% trail %}{% crumb "Catalogue" "tools" %}{% endtrail %}')


def test_amounts_in_a_tree_and_in_a_change_are_also_in_units_of_people() -> None:
    assert "512 MiB" in json_tree({"memory_bytes": 536_870_912})
    assert "30 s" in json_tree({"limits": [{"wall_ms": 30_000}]}, 5)
    assert 'class="j-h"> ' not in json_tree({"count": 3})
    assert words.in_units("536870912", "/limits/memory_bytes") == "512 MiB"
    assert words.in_units("64", "/limits/files") == "64"
    assert words.in_units("a text", "/limits/memory_bytes") == "a text"
