"""Limits: what a run may take, in the units in which people think of it: 512 MiB, 30 s, 64 processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext, gettext_lazy

from kernel.components import quantities

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

# Those that are counted in bytes say so, those in milliseconds and seconds end so; what says none of it is a number of things.
WORDS: dict[str, _StrPromise] = {
    "wall_ms": gettext_lazy("time"),
    "timeout_ms": gettext_lazy("time"),
    "idle_ms": gettext_lazy("time without a sign of life"),
    "cpu_s": gettext_lazy("processor time"),
    "cpu_ms": gettext_lazy("processor time"),
    "memory_bytes": gettext_lazy("memory"),
    "processes": gettext_lazy("processes"),
    "tmp_bytes": gettext_lazy("temporary files"),
    "tmp": gettext_lazy("temporary files"),
    "max_bytes_in": gettext_lazy("size of the arguments"),
    "max_bytes_out": gettext_lazy("size of the result"),
    "depth": gettext_lazy("depth of the arguments"),
    "result_bytes": gettext_lazy("size of the result"),
    "result_depth": gettext_lazy("depth of the result"),
    "log_bytes": gettext_lazy("output of the process that is kept"),
    "log_flood_bytes": gettext_lazy("output of the process"),
    "files": gettext_lazy("files"),
    "file_bytes": gettext_lazy("size of a file"),
    "artifacts": gettext_lazy("artifacts"),
    "artifact_bytes": gettext_lazy("size of the artifacts"),
    "output_bytes": gettext_lazy("size of the result"),
    "requests": gettext_lazy("requests"),
}


def limit_word(name: str) -> str:
    """A name that is not known here is shown as it is."""
    return str(WORDS.get(name, name))


def limit_amount(name: str, amount: float) -> str:
    if name == "tmp" or "bytes" in name.split("_"):
        return quantities.size(int(amount))
    if name.endswith("_ms"):
        return quantities.span_ms(amount)
    if name.endswith("_s"):
        return quantities.span_ms(amount * 1000)
    return quantities.number(amount)


def limit_text(name: str, amount: float) -> str:
    return gettext("%(what)s at most %(amount)s") % {"what": limit_word(name), "amount": limit_amount(name, amount)}
