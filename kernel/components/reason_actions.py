"""Reason actions: what may be done with a thing, once somebody has said why. ``components/reason_actions.html`` shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonAction:
    """``what`` is its word in the address, and the id of its dialog; ``verb`` stands on the button that opens it."""

    what: str
    url: str
    icon: str
    verb: str
    title: str
    text: str
    button: str
    tone: str = "danger"
