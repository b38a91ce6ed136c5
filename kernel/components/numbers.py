"""Numbers: how amounts are written for who reads them, by their language or as they have chosen.

What programs read (answers, exports, logs, the value of a field) is never written here.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING

from django.db import models
from django.utils import numberformat
from django.utils.formats import get_format
from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

# Between thousands where a space stands: it does not let a number break over two lines.
NARROW_SPACE = "\u202f"
ROUND = Context(prec=100, rounding=ROUND_HALF_UP)  # room for whatever amount there is


class NumberStyle(models.TextChoices):
    """What stands between thousands, and before the decimals."""

    LANGUAGE = "language", gettext_lazy("As usual in the language")
    POINT = "point", "1,234.50"
    COMMA = "comma", "1.234,50"
    SPACE = "space", f"1{NARROW_SPACE}234,50"


POINT_STYLE = (".", ",")
SEPARATORS = {
    NumberStyle.POINT: POINT_STYLE,
    NumberStyle.COMMA: (",", "."),
    NumberStyle.SPACE: (",", NARROW_SPACE),
}
_style: ContextVar[str] = ContextVar("toolhub_number_style", default=NumberStyle.LANGUAGE)


@contextmanager
def use_number_style(style: str) -> Iterator[None]:
    token = _style.set(style)
    try:
        yield
    finally:
        _style.reset(token)


def format_number(value: float | Decimal, places: int | None = None) -> str:
    """Grouped by thousands in every language (Django groups Chinese by four). ``places``: None keeps those that there are; otherwise
    rounded to so many, as amounts of money are (Django cuts off what is behind them)."""
    if places is not None:
        value = Decimal(str(value)).quantize(Decimal(1).scaleb(-places), context=ROUND)
    chosen = _style.get()
    decimal, thousand = SEPARATORS.get(NumberStyle(chosen)) or (
        get_format("DECIMAL_SEPARATOR"),
        get_format("THOUSAND_SEPARATOR") or POINT_STYLE[1],  # of Chinese Django says none
    )
    return numberformat.format(
        value, decimal, decimal_pos=places, grouping=3, thousand_sep=thousand, force_grouping=True, use_l10n=False
    )
