"""Frame tags: what stands around the content of a page: where it belongs, its cards, banners and dialogs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from kernel.components import labels
from kernel.templatetags.ui import EMPTY, icon

if TYPE_CHECKING:
    from django.template.context import Context


register = template.Library()


@register.simple_tag(takes_context=True)
def nav_current(context: Context, job: dict[str, Any]) -> SafeString:
    """Marks the entry of the sidebar to which the page belongs."""
    return SafeString(' aria-current="page"') if _is_of(job, context.get("section")) else EMPTY


@register.inclusion_tag("shell/job_tabs.html", takes_context=True)
def job_tabs(context: Context) -> dict[str, Any]:
    """The pages of the job to which this one belongs; nothing where it is the only one that the person may see."""
    section = context.get("section")
    jobs = (job for group in context.get("nav") or () for job in group["items"])
    job = next((job for job in jobs if _is_of(job, section)), None)
    return {"job": job if job and len(job["pages"]) > 1 else None, "section": section}


def _is_of(job: dict[str, Any], section: str | None) -> bool:
    return any(page["key"] == section for page in job["pages"])


@register.simple_block_tag
def card(content: str, name: str, title: str) -> SafeString:
    """A part of a page under a heading; ``name`` makes the heading's id."""
    return format_html(
        '<section class="card" aria-labelledby="{0}-h"><header class="card-h"><h2 id="{0}-h">{1}</h2></header>{2}</section>',
        name,
        title,
        content,
    )


@register.simple_block_tag
def banner(content: str, tone: str = "info", icon_name: str = "") -> SafeString:
    return format_html(
        '<div class="banner" data-tone="{}">{}<div>{}</div></div>',
        tone,
        icon(icon_name or labels.TONE_ICONS[tone]),
        content,
    )


@register.simple_block_tag
def revealed_values(content: str) -> SafeString:
    """Values that somebody has asked to see, with a reason: announced at once, and hidden again after a minute."""
    return format_html(
        '<div class="body" role="alert" tabindex="-1" data-hide-after="60" data-hidden="{}">'
        '<div class="revealed"><p><b>{}</b></p>{}</div></div>',
        _("Hidden again. To see the values, reveal them once more with a reason."),
        _("Your access was recorded. The values are hidden again after 60 seconds."),
        content,
    )


@register.simple_block_tag
def filters(content: str, view: str) -> SafeString:
    """The filters of a list, whose rows are ``#rows``: they are in the address, and change it without a new page."""
    return format_html(
        '<form class="filters" role="search" action="{0}" hx-get="{0}" hx-target="#rows" hx-swap="outerHTML"'
        ' hx-push-url="true" hx-trigger="submit, change">{1}</form>',
        reverse(view),
        content,
    )


@register.simple_block_tag
def nothing(content: str, icon_name: str, title: str) -> SafeString:
    """An empty state: what would be here, and what to do about it."""
    return format_html('<div class="empty">{}<h2>{}</h2>{}</div>', icon(icon_name), title, content)


@register.simple_block_tag
def dialog(content: str, id: str, title: str) -> SafeString:
    """A confirmation. It is a popover, opened by ``<button popovertarget="…">``, so it needs no script."""
    return format_html(
        '<div popover class="dlg" id="{0}" role="dialog" aria-labelledby="{0}-h"><h2 id="{0}-h">{1}</h2>{2}</div>',
        id,
        title,
        content,
    )


@register.simple_tag
def crumb(label: str, view: str, *args: Any) -> SafeString:
    """A step of a trail."""
    return format_html('<li><a href="{}">{}</a></li>', reverse(view, args=args), label)


@register.simple_block_tag
def trail(content: str) -> SafeString:
    """The way back to what a page belongs to: its crumbs, the outermost first."""
    return format_html('<nav class="crumbs" aria-label="{}"><ol>{}</ol></nav>', _("Breadcrumb"), content)


@register.simple_tag
def crumbs(label: str, view: str, *args: Any) -> SafeString:
    """The way back to the list that a page belongs to."""
    return trail(crumb(label, view, *args))


@register.simple_tag
def page_title(text: str) -> SafeString:
    return format_html('<div class="page-t"><h1>{}</h1></div>', text)


@register.simple_block_tag
def about(content: str, title: str) -> SafeString:
    """What stands beside a form: what happens when it is sent."""
    return format_html(
        '<aside class="card" aria-labelledby="about-h"><header class="card-h"><h2 id="about-h">{}</h2></header>'
        '<div class="body">{}</div></aside>',
        title,
        content,
    )


@register.simple_block_tag
def entry(content: str, label: str, cls: str = "") -> SafeString:
    """A line of a list of what is known of a thing: the label and the value."""
    classes = format_html(' class="{}"', cls) if cls else EMPTY
    return format_html("<div><dt>{}</dt><dd{}>{}</dd></div>", label, classes, content)
