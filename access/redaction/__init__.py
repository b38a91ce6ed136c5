"""What must not be seen, where is it, and how is it hidden?

Obligations (:func:`apply_obligations`) change an output before anybody gets it; :func:`masked_view` shows a person values that are
somebody else's. Pure: nothing here reads a database or a setting, and nobody is asked.
"""

from access.redaction.detectors import KINDS, Hit, find
from access.redaction.masks import distinct
from access.redaction.obligations import (
    Obliged,
    apply_obligations,
    cannot_be_done,
    check_obligations,
    obligations_schema,
    value_obliged,
)
from access.redaction.viewing import is_sensitive_name, masked_view

__all__ = [
    "KINDS",
    "Hit",
    "Obliged",
    "apply_obligations",
    "cannot_be_done",
    "check_obligations",
    "distinct",
    "find",
    "is_sensitive_name",
    "masked_view",
    "obligations_schema",
    "value_obliged",
]
