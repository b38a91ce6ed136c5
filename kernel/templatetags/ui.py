"""UI tags: how one value looks in the console. What stands around values on a page: :mod:`kernel.templatetags.frames`.

Presentational tags on Django 5.2's own ``simple_tag``, ``simple_block_tag`` and ``inclusion_tag``. They know words and
icons, and nothing about models. A status is never colour alone: an icon and a word always come along.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from django import template
from django.templatetags.static import static
from django.urls import get_script_prefix
from django.utils import timezone
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from kernel.components import labels, limits, manifest_words, quantities, visualizations
from kernel.components.diffs import draw_invisible
from kernel.components.moments import format_relative_time, format_wait, format_zone, write_moment
from kernel.components.timelines import group_by_day

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.forms import BaseForm, BoundField
    from django.template.context import Context

    from kernel.components.diffs import Diff
    from kernel.components.schema_form.fields import SchemaEntry, SchemaField
    from kernel.components.stacked_chart import StackedChart
    from kernel.components.waterfall import Waterfall

register = template.Library()
EMPTY = SafeString("")
FAR_AWAY = timedelta(days=30)
CODE = re.compile(r"`([^`\n]+)`")


def html(form: str, *values: Any) -> SafeString:
    """What Django's ``format_html`` does, three times as fast for what most values are: a page of rows does it hundreds of times."""
    return SafeString(
        form.format(
            *[
                value
                if type(value) is SafeString
                else escape(value)
                if type(value) is str
                else conditional_escape(value)
                for value in values
            ]
        )
    )


# ---- small things ---------------------------------------------------------------------------------------------------


@register.simple_tag
def icon(name: str, cls: str = "") -> SafeString:
    return _icon(name, cls, get_script_prefix())


@cache
def _icon(name: str, cls: str, _script: str) -> SafeString:
    """A page of rows has a hundred of them, and a few are different."""
    return html(
        '<svg class="{}" aria-hidden="true"><use href="{}#{}"/></svg>', f"i {cls}".strip(), static("ui/icons.svg"), name
    )


@register.simple_tag
def badge(status: str, label: str = "") -> SafeString:
    """The state ``status``; ``label`` replaces its word. A word that is not known here is shown as it is."""
    tone, name, text = labels.STATUS.get(status, ("quiet", "circle-dot", status))
    return html('<span class="badge" data-tone="{}">{}{}</span>', tone, icon(name), label or text)


@register.simple_tag
def tags(words: Iterable[object], empty: str = "") -> SafeString:
    """Words beside each other, each in a frame of its own; ``empty`` says what it means that there are none."""
    shown = format_html_join(" ", '<span class="tag">{}</span>', ((word,) for word in words))
    return shown or (html('<span class="dim">{}</span>', empty) if empty else EMPTY)


@register.simple_tag
def risk(level: str) -> SafeString:
    """Three rising bars and a word for Low, Medium or High."""
    tone, filled, text = manifest_words.RISK[str(level).lower()]
    bars = format_html_join(
        "",
        '<rect x="{}" y="{}" width="3" height="{}" rx="1" class="{}"/>',
        ((i * 5, 9 - 3 * i, 3 + 3 * i, "on" if i < filled else "") for i in range(3)),
    )
    return format_html(
        '<span class="risk" data-tone="{}">'
        '<svg viewBox="0 0 13 12" width="13" height="12" aria-hidden="true">{}</svg>{}</span>',
        tone,
        bars,
        text,
    )


@register.simple_tag
def copy(value: object, label: str = "") -> SafeString:
    """A button that puts ``value`` on the clipboard; a value that starts with ``/`` becomes a full address."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    label = label or _("Copy")
    return html(
        '<button type="button" class="iconbtn sm js-only" data-copy="{}" aria-label="{}" title="{}">{}</button>',
        text,
        label,
        label,
        icon("copy"),
    )


@register.simple_tag
def ident(value: object, form: str = "", link: str = "") -> SafeString:
    """A wire id with a copy button; the form ``short`` shows its prefix and its last, random part.

    With ``link`` it leads to the thing; in a row of the class ``rl`` the whole row does.
    """
    text = str(value)
    shown = _short(text) if form == "short" else text
    inner = (
        format_html('<a class="hit" data-row href="{}">{}</a>', link, shown)
        if link
        else format_html("<span>{}</span>", shown)
    )
    label = _("Copy %(id)s") % {"id": text}
    return format_html('<span class="id" title="{}">{}{}</span>', text, inner, copy(text, label))


@register.simple_tag
def ident_text(value: object) -> SafeString:
    """A wire id, shortened, without a button; anything else as it is."""
    return html('<span title="{}">{}</span>', value, _short(str(value)))


def _short(text: str) -> str:
    head, _sep, tail = text.partition("_")
    return f"{head}_…{tail[-8:]}" if len(head) == 3 and len(tail) == 26 else text


@register.simple_tag
def digest(value: str | bytes | memoryview, length: int = 8) -> SafeString:
    """The beginning of a hash, the whole of it in the title and on the clipboard."""
    if not isinstance(value, str):
        value = bytes(value).hex()
    if not value:
        return html('<span class="dim">{}</span>', labels.NO_VALUE)
    algorithm, _sep, body = value.rpartition(":")
    shown = f"{body[:length]}…" if len(body) > length else body
    label = _("Copy hash %(hash)s") % {"hash": body[:length]}
    return html(
        '<span class="id" title="{}"><span>{}</span>{}</span>',
        value,
        f"{algorithm}:{shown}" if algorithm else shown,
        copy(value, label),
    )


# ---- quantities -----------------------------------------------------------------------------------------------------


register.simple_tag(quantities.number)
register.simple_tag(quantities.money)
register.simple_tag(quantities.size)
register.simple_tag(quantities.dur)
register.simple_tag(quantities.span)
register.simple_tag(quantities.per)
register.simple_tag(quantities.seconds)
register.simple_tag(limits.limit_amount, name="limit")


@register.simple_tag
def moment(value: datetime | None, form: str = "relative") -> SafeString:
    """A time. ``relative`` for lists, with the exact time in the title, and the day alone once it is so far away that "58 days ago"
    tells nothing apart; ``exact`` to the millisecond for evidence; ``clock`` is the exact time without its date."""
    if value is None:
        return html('<span class="dim">{}</span>', labels.NO_VALUE)
    written = timezone.localtime(value).isoformat(timespec="milliseconds")
    date, clock = written[:10], written[11:23]
    now = timezone.now()
    relative = date if abs(now - value) > FAR_AWAY else format_relative_time(value, now)
    return _write_time(value, {"exact": f"{date} {clock}", "clock": clock}.get(form, relative))


@register.simple_tag
def waited(since: datetime) -> SafeString:
    """How long something has waited, with the exact time in the title."""
    return _write_time(since, format_wait(since, timezone.now()))


def _write_time(value: datetime, text: str) -> SafeString:
    local = timezone.localtime(value)
    written = local.isoformat(timespec="milliseconds")
    title = f"{written[:10]} {written[11:23]} {format_zone(local)}"
    return html('<time class="num" datetime="{}" title="{}">{}</time>', written, title, text)


register.filter("in_address", write_moment)


@register.simple_tag
def zone(value: datetime) -> str:
    """The offset of a time from UTC, for a column of exact times: said once, not with each."""
    return format_zone(timezone.localtime(value))


# ---- trees and charts -----------------------------------------------------------------------------------------------

register.simple_tag(visualizations.json_tree)
register.simple_tag(visualizations.columns)
register.simple_tag(visualizations.share_bar)


@register.inclusion_tag("components/waterfall.html")
def waterfall(chart: Waterfall, *, at: str = "") -> dict[str, Any]:
    """The steps of a call on one axis. ``at``: the address of the page, where it is drawn at that of a form too."""
    return {"chart": chart, "at": at}


@register.inclusion_tag("components/stacked_chart.html")
def stacked_chart(chart: StackedChart) -> dict[str, Any]:
    """Amounts over a time, by what became of them, with the table of its figures."""
    return {"chart": chart}


@register.simple_tag
def outcome(state: str, reason: str) -> SafeString:
    """The state of a call that ended with ``reason``: a tool's lawful no is another thing than its failure."""
    return badge(labels.read_outcome(state, reason))


@register.inclusion_tag("components/diff.html")
def diff(result: Diff, raw_url: str = "") -> dict[str, Any]:
    return {"diff": result, "raw_url": raw_url}


@register.filter
def with_ids(form: BaseForm, name: str) -> BaseForm:
    """The form with ids of its own: two forms of a page may have fields of the same name."""
    form.auto_id = f"id_{name}_%s"
    return form


@register.inclusion_tag("components/facts.html", takes_context=True)
def facts(context: Context, rows: Iterable[Any], headed: bool = False, query: str = "") -> dict[str, Any]:
    """Facts as a timeline: what happened, who did it, the reason that was given, and the hash of the leaf. ``headed``: each day has
    its heading also when there is one only. ``query``: the search that finds all of them, for a link to it."""
    shown = list(rows)
    request = context.get("request")
    principal = getattr(request, "principal", None)
    days = group_by_day(shown)
    return {
        "request": request,
        "days": days,
        "headed": headed or len(days) > 1,
        "level": 2 if headed else 3,  # on a page of their own, or in one of its cards
        "of_many": len({row.subject for row in shown}) > 1,
        "may_open": principal is not None and principal.may("evidence.view"),
        "query": query,
    }


@register.simple_tag
def fact_kind(kind: str) -> SafeString:
    tone, name, text = labels.FACT.get(kind, ("quiet", "circle-dot", kind))
    return format_html('<span class="fk" data-tone="{}">{}{}</span>', tone, icon(name), text)


# ---- forms and lists ------------------------------------------------------------------------------------------------


@register.inclusion_tag("components/field.html")
def field(bound: BoundField, cls: str = "") -> dict[str, Any]:
    """Label, help, the field and its errors, tied together for screen readers by Django's own ids."""
    kind = getattr(bound.field.widget, "input_type", "")
    return {
        "field": bound,
        "cls": cls,
        "is_checkbox": kind == "checkbox" and not bound.use_fieldset,
        "zone": timezone.get_current_timezone_name() if kind == "datetime-local" else "",
    }


@register.filter
def with_code(text: str) -> SafeString:
    """Text of the document of the API, in which code stands between backticks."""
    parts = enumerate(CODE.split(text))
    return SafeString("".join(html("<code>{}</code>" if place % 2 else "{}", part) for place, part in parts))


@register.simple_tag
def described(field: SchemaField | SchemaEntry) -> SafeString:
    """Attributes of a control of a schema form: what is said of it, an example, and whether something is wrong."""
    said = {
        "aria-invalid": "true" if field.errors else "",
        "aria-describedby": field.described_by,
        "placeholder": field.example,
    }
    return format_html_join(" ", '{}="{}"', ((name, value) for name, value in said.items() if value))


@register.inclusion_tag("components/error_summary.html")
def error_summary(form: BaseForm) -> dict[str, Any]:
    """What is wrong with a form, with a link to each field; nothing when all is well."""
    return {"form": form, "wrong": [bound for bound in form if bound.errors]}


@register.inclusion_tag("components/pager.html", takes_context=True)
def pager(context: Context, page: Any) -> dict[str, Any]:
    """Older rows, or the next by name, by the cursor of ``pagination.Page``. The list's query goes along, or filters would be lost.
    ``here``, where a template has it, is the address of the list: it is drawn at that of a refused form too.
    """
    request = context["request"]
    return {
        "request": request,
        "at": context.get("here", ""),
        "page": page,
        "shown": len(page.rows),
        "continued": bool(request.GET.get("after")),
    }


@register.simple_tag
def cut(is_cut: bool, text: str) -> SafeString:
    """That a list without pages is not all there is."""
    return html('<p class="foot">{}{}</p>', icon("info"), text) if is_cut else EMPTY


@register.simple_tag
def call_sentence(pieces: Iterable[Any]) -> SafeString:
    """The sentence of a call (unitools.call_sentences): what its caller sent stands out, and cannot turn the words around it."""
    words = ((SafeString("bdi" if piece.is_value else "span"), draw_invisible(piece.text)) for piece in pieces)
    return format_html_join("", "<{0}>{1}</{0}>", words)


@register.filter
def visible(text: str) -> SafeString:
    """Text that an agent reads, with its invisible characters drawn."""
    return draw_invisible(str(text))
