"""Credentials: whether a text holds one.

Known forms by their marks, and assignments to a word such as ``password`` by how random the value is. Placeholders are none.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from unitools.source_scans import is_secret_name

FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")),
    ("an AWS access key", re.compile(r"\b((?:AKIA|ASIA)[0-9A-Z]{16})\b")),
    ("a GitHub token", re.compile(r"\b(gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})\b")),
    ("a GitLab token", re.compile(r"\b(glpat-[A-Za-z0-9_-]{20,})\b")),
    ("a Slack token", re.compile(r"\b(xox[abeoprs]-[A-Za-z0-9-]{10,})\b")),
    ("a Google API key", re.compile(r"\b(AIza[0-9A-Za-z_-]{35})(?![0-9A-Za-z_-])")),
    ("a Stripe key", re.compile(r"\b((?:sk|rk)_live_[0-9A-Za-z]{16,})\b")),
    ("an API key of a model provider", re.compile(r"\b(sk-(?:proj-|ant-|svcacct-|or-)?[A-Za-z0-9_-]{20,})")),
    ("a Hugging Face token", re.compile(r"\b(hf_[A-Za-z0-9]{30,})\b")),
    ("an npm or PyPI token", re.compile(r"\b(npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,})\b")),
    ("a key of this hub", re.compile(r"\b(hub_[a-z0-9]+_[A-Za-z0-9]{8}_[A-Za-z0-9]{43}_[A-Za-z0-9]+)\b")),
    (
        "a signed token (JWT)",
        re.compile(r"\b(eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,})"),
    ),
    (
        "a password in an address",
        re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{1,100}:([^\s/@]{4,200})@[^\s/]", re.IGNORECASE),
    ),
    ("a token in a header", re.compile(r"\b(?:Bearer|Basic)\s{1,4}([A-Za-z0-9+/_.=-]{20,})", re.IGNORECASE)),
    (
        "a password or key",
        re.compile(
            r"(?:password|passwd|pwd|secret|token|api[_ -]?key|access[_ -]?key|private[_ -]?key|密码|密碼|口令|密钥|密鑰)"
            r"[\"']?\s{0,4}(?:[:=：]|is|是|为|為)\s{0,4}[\"'`“]?([A-Za-z0-9+/_!@#$%^&*.=~-]{10,})",
            re.IGNORECASE,
        ),
    ),
)
PLACEHOLDER = re.compile(
    r"example|sample|placeholder|your|xxx|\.\.\.|changeme|dummy|redacted|test|<|\{|\*\*\*", re.IGNORECASE
)
LEAST_ENTROPY = 3.0
RANDOM_ENTROPY = 3.3
MAX_TEXT = 100_000
# What opens nothing, whatever the variable is called; a number may be a password.
_SWITCH = re.compile(r"|true|false|yes|no|on|off|none|null", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d{1,6}(?:\.\d{1,6})?")
_PASSWORD = re.compile(r"(?:PASSWORDS?|PASSWD|PASSPHRASE|PASS|PWD)(?:_?\d+)?$", re.IGNORECASE)


def compute_entropy(text: str) -> float:
    """Bits for each character, by how often each stands in the text itself."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def find_credential(text: str) -> str:
    """What kind of credential the text holds; empty when it holds none. It is never repeated: only its kind is named."""
    for kind, pattern in FORMS:
        for match in pattern.finditer(text[:MAX_TEXT]):
            if not match.groups() or _is_random(kind, match[1]):
                return kind
    return ""


def is_secret_variable(name: str, value: str) -> bool:
    """Whether a variable of the environment holds what is to be kept secret, by its name or by what stands in it."""
    is_number = _NUMBER.fullmatch(value) is not None and _PASSWORD.search(name) is None
    opens_nothing = is_number or _SWITCH.fullmatch(value) is not None
    return (is_secret_name(name) and not opens_nothing) or bool(find_credential(f"{name}={value}"))


def _is_random(kind: str, value: str) -> bool:
    if PLACEHOLDER.search(value):
        return False
    if kind == "a password in an address":
        return True
    if kind in ("a password or key", "a token in a header"):
        classes = sum(bool(re.search(each, value)) for each in ("[a-z]", "[A-Z]", "[0-9]", "[^A-Za-z0-9]"))
        return classes >= 2 and bool(re.search("[0-9]", value)) and compute_entropy(value) >= RANDOM_ENTROPY
    return compute_entropy(value) >= LEAST_ENTROPY
