"""Redaction: what must not be seen, where it is, and how it is hidden.

Obligations (:func:`apply_obligations`) change an output before anybody gets it; :func:`masked_view` shows a person values that are
somebody else's. Pure: nothing here reads a database or a setting, and nobody is asked.
"""

from access.redaction.detectors import KINDS, Hit, find_hits
from access.redaction.disclosure import is_sensitive_name, masked_view
from access.redaction.masks import masked_hit, number_duplicates
from access.redaction.obligations import (
    ObligationResult,
    apply_detectors,
    apply_obligations,
    build_obligation_failure,
    check_obligations,
    detector_kinds,
    obligations_schema,
)
from access.redaction.sweeps import Placeholders, Sweep

__all__ = [
    "KINDS",
    "Hit",
    "ObligationResult",
    "Placeholders",
    "Sweep",
    "apply_detectors",
    "apply_obligations",
    "build_obligation_failure",
    "check_obligations",
    "detector_kinds",
    "find_hits",
    "is_sensitive_name",
    "masked_hit",
    "masked_view",
    "number_duplicates",
    "obligations_schema",
]
