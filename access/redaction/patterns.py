"""Patterns: what might be personal data or a secret, by its shape alone.

Candidates only: :mod:`access.redaction.detectors` decides. The expressions are linear: every repetition is bounded, possessive, or
ends at a character that it cannot contain, and none begins in the middle of a run of its own characters.
"""

from __future__ import annotations

import re

_BEFORE = r"(?<![0-9A-Za-z])(?<![0-9][.\-])"
_AFTER = r"(?![0-9A-Za-z])(?![.\-][0-9])"

AT = re.compile(r"@((?:[A-Za-z0-9-]{1,63}+\.){1,8}[A-Za-z]{2,24}+)(?![A-Za-z0-9-])")
LOCAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.!#$%&'*+/=?^_`{|}~-")
MAX_LOCAL = 64

CARD = re.compile(_BEFORE + r"[1-6](?:[ .\-]{0,2}[0-9]){11,18}(?![0-9A-Za-z])")
CN_ID = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{5}[ \-]?(?:19|20)[0-9]{6}[ \-]?[0-9]{3}[0-9Xx](?![0-9A-Za-z])")
IBAN = re.compile(r"(?<![0-9A-Za-z])[A-Za-z]{2}[0-9]{2}(?: ?[0-9A-Za-z]){11,30}(?![0-9A-Za-z])")
US_SSN = re.compile(r"(?<![0-9A-Za-z\-])[0-8][0-9]{2}([ \-])[0-9]{2}\1[0-9]{4}(?![0-9A-Za-z\-])")
US_SSN_BARE = re.compile(_BEFORE + r"[0-8][0-9]{8}" + _AFTER)
SSN_WORDS = re.compile(r"(?i)\bssn\b|social security")

IPV4 = re.compile(r"(?<![0-9A-Za-z.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z])(?!\.[0-9])")
IPV6 = re.compile(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f:]{6,39}+(?:\.[0-9]{1,3}){0,3}(?![0-9A-Za-z:])")

SEVEN_DIGITS = re.compile(r"[0-9](?:[ .\-/()]{0,3}[0-9]){6}")
NUMERIC = re.compile(r"[0-9〇零一二三四五六七八九十百]")

_RUN = r"(?<![A-Za-z0-9_\-])"
# Each with the words of which one must occur in the text, in lower case: most texts hold none, and finding that out is cheap.
SECRETS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (words, re.compile(pattern))
    for words, pattern in (
        (("akia", "asia", "abia", "acca"), _RUN + r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Za-z])"),
        (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _RUN + r"gh[pousr]_[A-Za-z0-9]{30,}+"),
        (("github_pat_",), _RUN + r"github_pat_[A-Za-z0-9_]{22,}+"),
        (("glpat-",), _RUN + r"glpat-[A-Za-z0-9_\-]{20,}+"),
        (("npm_",), _RUN + r"npm_[A-Za-z0-9]{36,}+"),
        (("pypi-",), _RUN + r"pypi-[A-Za-z0-9_\-]{50,}+"),
        (("xox",), _RUN + r"xox[abeprs]-[A-Za-z0-9\-]{10,}+"),
        (("k_live_", "k_test_"), _RUN + r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+"),
        (("sk-",), _RUN + r"sk-[A-Za-z0-9_\-]{20,}+"),
        (("aiza",), _RUN + r"AIza[0-9A-Za-z_\-]{35,}+"),
        (("hub_",), _RUN + r"hub_[a-z]{2,10}_[0-9A-Za-z]{8}_[0-9A-Za-z]{40,}+"),
        (("ltai",), _RUN + r"LTAI[0-9A-Za-z]{12,}+"),
        (("eyj",), _RUN + r"eyJ[A-Za-z0-9_\-]{8,}+\.eyJ[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]{8,}+"),
        (("bearer ", "basic "), r"(?i)(?<![a-z])(?:bearer|basic) ([A-Za-z0-9_\-.~+/]{16,}+={0,2})"),
        (("://",), r"(?<=://)[^\s:/@]{1,100}:[^\s/@]{1,200}(?=@)"),
        (
            ("pass", "pwd", "secret", "token", "key", "密码", "口令", "密钥", "令牌"),
            r"(?i)(?:passw(?:or)?d|passwd|passphrase|pwd|secret|token|(?:api|access|private)[_\- ]?key|密码|口令|密钥|令牌)"
            r"[\"']?\s{0,3}(?:[=:：]|是|为| is )\s{0,3}[\"']?(?P<set>[^\s\"',;，；。、]{6,}+)",
        ),
    )
)
KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
KEY_END = "-----END "

# Full-width digits and signs, and the spaces and hyphens of typesetters, stand for the plain ones, one for one, so that places
# stay the same.
PLAIN = (
    str.maketrans("０１２３４５６７８９＋－．＠（）　：Ｘｘ", "0123456789+-.@() :Xx")
    | dict.fromkeys(map(ord, "\u00a0\u2007\u2008\u2009\u202f"), " ")
    | dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212"), "-")
)
