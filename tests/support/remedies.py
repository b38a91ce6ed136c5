"""Remedies: which words of a remedy can be followed by programs that speak HTTP only?"""

from __future__ import annotations

import re

# A model over MCP sends no request and no header, and writes no envelope: all of that is its client's.
HTTP = re.compile(
    r"\b(GET|POST|PUT|PATCH|DELETE|HEAD)\b|/api/|\bPrefer:|\bRetry-After\b|\bLocation\b|\bIdempotency-Key\b"
    r"|\bon_consent\b|\b[Hh]eaders?\b|\bown endpoint\b",
)

# About the exchange itself, before anybody knows that it is a call: whoever wrote the program reads it, not the model.
OF_EXCHANGES = {
    "REQUEST.ADDRESS_TOO_LONG",
    "REQUEST.HEAD_TOO_LARGE",
    "REQUEST.METHOD_NOT_ALLOWED",
    "REQUEST.NOT_ACCEPTABLE",
    "REQUEST.UNSUPPORTED_MEDIA_TYPE",
}
