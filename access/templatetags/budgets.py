"""Budget tags: how amounts and budgets look in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import template
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy

from access.budgets.forms import DIMENSION_WORDS, SCOPE_WORDS
from access.budgets.services import in_currency
from access.models import BudgetScope, Dimension
from invocations.call_costs.services import find_currency
from kernel.components import quantities
from kernel.components.numbers import format_number

if TYPE_CHECKING:
    from django.template.context import Context
    from django.utils.functional import _StrPromise
    from django.utils.safestring import SafeString

    from access.budgets.selectors import BudgetStatus
    from access.models import Budget

register = template.Library()
BAR_WIDTH, BAR_HEIGHT = 160, 10
STATE_WORDS: dict[str, str | _StrPromise] = {
    "": gettext_lazy("In force"),
    "over": gettext_lazy("Used up"),
    "nearly": gettext_lazy("Nearly used up"),
    "ended": gettext_lazy("Ended"),
}
NOUNS: dict[str, str | _StrPromise] = {
    Dimension.CALLS: gettext_lazy("calls"),
    Dimension.RATE: gettext_lazy("calls, evenly"),
    Dimension.CONCURRENCY: gettext_lazy("at the same time"),
    Dimension.BYTES_IN: gettext_lazy("in"),
    Dimension.BYTES_OUT: gettext_lazy("out"),
    Dimension.CPU_MS: gettext_lazy("CPU"),
    Dimension.TOKENS: gettext_lazy("tokens"),
    Dimension.MONEY: "",  # the currency says it
}


def write_quantity(amount: int, dimension: str, form: str = "", *, currency: str = "") -> str:
    """An amount in the unit that people read. ``about``: no more of it than a forecast knows."""
    match dimension:
        case Dimension.BYTES_IN | Dimension.BYTES_OUT:
            return quantities.size(amount)
        case Dimension.CPU_MS:
            return quantities.dur(amount)
        case Dimension.MONEY:
            found = in_currency(amount)
            places = 2 if form == "about" else max(2, -int(found.as_tuple().exponent))
            return f"{format_number(found, places)} {currency}".rstrip()
        case _:
            return quantities.number(amount)


def write_limit(budget: Budget) -> str:
    """The amount of a budget outside of its page, where nothing else says the currency."""
    return write_quantity(budget.amount, budget.dimension, currency=find_currency(budget.tenant_id))


@register.simple_tag(takes_context=True)
def quantity(context: Context, amount: int, dimension: str, form: str = "") -> str:
    """Money in the ``currency`` of the page."""
    return write_quantity(amount, dimension, form, currency=str(context.get("currency") or ""))


@register.simple_tag
def dimension_noun(dimension: str) -> str:
    """What stands behind the amount."""
    return str(NOUNS[dimension])


@register.simple_tag
def dimension_word(dimension: str) -> str:
    return str(DIMENSION_WORDS[Dimension(dimension)])


@register.simple_tag
def scope_word(scope: str) -> str:
    if scope == BudgetScope.MANIFEST:
        return gettext("By the tool’s manifest")
    return str(SCOPE_WORDS[BudgetScope(scope)])


@register.simple_tag
def budget_state(state: str) -> str:
    """The word for a filter."""
    return str(STATE_WORDS[state])


@register.simple_tag(takes_context=True)
def budget_bar(context: Context, row: BudgetStatus) -> SafeString:
    """What is used, what is held by calls that run, and what is left. Geometry in attributes: the CSP forbids styles."""
    line = row.line
    whole = max(line.amount, row.taken, 1)
    used = round(line.used / whole * BAR_WIDTH, 1)
    held = round(line.reserved / whole * BAR_WIDTH, 1)
    label = gettext("%(used)s of %(limit)s used, %(held)s held") % {
        "used": quantity(context, line.used, line.dimension),
        "limit": quantity(context, line.amount, line.dimension),
        "held": quantity(context, line.reserved, line.dimension),
    }
    return format_html(
        '<svg class="chart" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">'
        '<rect width="{0}" height="{1}" rx="3" fill="currentColor" fill-opacity="0.12"/>'
        '<rect class="{3}" width="{4}" height="{1}" rx="3"/>'
        '<rect class="{3}" x="{4}" width="{5}" height="{1}" rx="3" fill-opacity="0.45"/></svg>',
        BAR_WIDTH,
        BAR_HEIGHT,
        label,
        {"over": "a", "nearly": "c"}.get(row.level, "n"),
        used,
        held,
    )


@register.simple_tag
def refused_by(row: BudgetStatus) -> str:
    """Which calls a budget without anything left refuses: the sentence for people."""
    label = row.line.label
    match row.budget.scope:
        case BudgetScope.TENANT:
            return gettext("Every call of the tenant is refused.")
        case BudgetScope.AGENT:
            return gettext("Every call of %(agent)s is refused.") % {"agent": label}
        case BudgetScope.GRANT:
            return gettext("Calls under the grant %(grant)s are refused.") % {"grant": label}
        case _:
            return gettext("Every call of %(tool)s is refused.") % {"tool": label}
