"""What might be personal data or a secret, by its shape alone?

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

CARD = re.compile(_BEFORE + r"[2-6](?:[ .\-]{0,2}[0-9]){12,18}(?![0-9A-Za-z])")
CN_ID = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{5}[ \-]?(?:19|20)[0-9]{6}[ \-]?[0-9]{3}[0-9Xx](?![0-9A-Za-z])")
IBAN = re.compile(r"(?<![0-9A-Za-z])[A-Za-z]{2}[0-9]{2}(?: ?[0-9A-Za-z]){11,30}(?![0-9A-Za-z])")
US_SSN = re.compile(r"(?<![0-9A-Za-z\-])[0-8][0-9]{2}([ \-])[0-9]{2}\1[0-9]{4}(?![0-9A-Za-z\-])")
US_SSN_BARE = re.compile(_BEFORE + r"[0-8][0-9]{8}" + _AFTER)
SSN_WORDS = re.compile(r"(?i)\bssn\b|social security")

PHONES: tuple[tuple[str | None, re.Pattern[str]], ...] = (
    (None, re.compile(r"(?<![0-9A-Za-z+])(?:\+|00)[ ]?[1-9][0-9]{0,2}(?:[ .\-()]{0,2}[0-9]){6,13}(?![0-9A-Za-z])")),
    ("CN", re.compile(_BEFORE + r"(?:86[ \-]?)?1[3-9][0-9](?:[ .\-]?[0-9]{4}){2}" + _AFTER)),
    ("CN", re.compile(_BEFORE + r"(?:86[ \-])?1[3-9][0-9]{2}[ \-][0-9]{3}[ \-][0-9]{4}" + _AFTER)),
    (
        "CN",
        re.compile(
            r"(?<![0-9A-Za-z.\-])(?:\(0[1-9][0-9]{1,2}\)|0[1-9][0-9]{1,2})[ \-]?[2-9][0-9]{2,3}[ \-]?[0-9]{4}" + _AFTER
        ),
    ),
    ("CN", re.compile(_BEFORE + r"[48]00[ \-][0-9]{3,4}[ \-][0-9]{3,4}" + _AFTER)),
    (
        "US",
        re.compile(
            _BEFORE + r"(?:1[ .\-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .\-])[2-9][0-9]{2}[ .\-][0-9]{4}" + _AFTER
        ),
    ),
    ("GB", re.compile(r"(?<![0-9A-Za-z.\-])(?:\(0[1-9][0-9]{1,4}\)|0[1-9][0-9]{1,4})(?:[ \-]?[0-9]){5,9}" + _AFTER)),
)
PHONE_BARE = re.compile(_BEFORE + r"[1-9](?:[ .\-]?[0-9]){6,13}" + _AFTER)
PHONE_WORDS = re.compile(
    r"(?i)phone|mobile|\bcell\b|\btel\b|\bfax\b|whatsapp|\bcall\b|电话|手机|号码|联系方式|微信|传真"
)
PHONE_REGIONS = ("US", "CN", "GB")

IPV4 = re.compile(r"(?<![0-9A-Za-z.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z])(?!\.[0-9])")
IPV6 = re.compile(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f:]{6,39}+(?:\.[0-9]{1,3}){0,3}(?![0-9A-Za-z:])")

# An address in Chinese: a way with a number is the anchor, what is around it is read from there.
ZH_ANCHOR = re.compile(
    r"(?:路|街|巷|大道|道|弄|胡同|里|村|园|苑|小区|大厦|广场)(?:[东南西北]段|[东南西北]|中段)?"
    r" ?[0-9〇零一二三四五六七八九十百]{1,6}(?:-[0-9]{1,5})? ?(?:号楼|号院|号|弄|栋|幢|座)"
)
ZH_MORE = re.compile(
    r"(?:[,， ]{0,2}(?:[0-9A-Za-z一二三四五六七八九十-]{1,8}(?:号楼|单元|栋|幢|座|室|楼|层|号|房)"
    r"|[一-龥]{2,8}(?:小区|花园|大厦|大楼|中心|广场|公寓|家园)(?=[0-9A-Za-z]))){1,6}"
)
ZH_NO_WAYS = re.compile(r"[知报味频通渠轨管车]道|[这那哪家心手店城夜公英海]里|校园")
ZH_REGION = re.compile(r"[一-龥]{2,7}?(?:省|自治区|市|特别行政区)")
ZH_LEAD = re.compile(
    r".*(?:地址|住址|住在|家住|位于|寄到|寄往|寄至|送到|送至|发到|发往|搬到|搬去|收货|来自|前往|去了|在|到|至|往|是|为)"
)
ZH_DISTRICT = re.compile(r"[一-龥]{1,6}(?:区|县|旗|镇|乡|街道)")

_WAY = (
    r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Way|Place|Pl|Square|Sq|Terrace|Ter"
    r"|Parkway|Pkwy|Highway|Hwy|Close|Crescent|Gardens|Grove|Hill|Row|Mews|Circle|Cir|Trail|Alley)"
)
_NAME = r"(?!The\b|On\b|In\b)[A-Z0-9][A-Za-z0-9.'\-]{0,20}"
EN_ADDRESS = re.compile(
    r"(?<![0-9A-Za-z])[0-9]{1,6}[A-Za-z]?(?:-[0-9]{1,4})? (?:[NSEW]{1,2}\.? )?(?:"
    + _NAME
    + r" ){1,4}?"
    + _WAY
    + r"\b\.?(?: [NSEW]{1,2}\b)?"
    + r"(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|Room|#)\.? ?[A-Za-z0-9\-]{1,6})?"
    + r"(?:(?:, [A-Z][A-Za-z.'\-]{1,20}(?: [A-Z][A-Za-z.'\-]{1,20}){0,2}){0,2},? (?:[A-Z]{2} [0-9]{5}(?:-[0-9]{4})?"
    + r"|[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}))?"
)
PO_BOX = re.compile(r"(?<![A-Za-z])P\.? ?O\.? ?Box [0-9]{1,8}(?![0-9])", re.IGNORECASE)

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

# Full-width digits and signs stand for the plain ones, one for one, so that places stay the same.
PLAIN = str.maketrans("０１２３４５６７８９＋－．＠（）　：Ｘｘ", "0123456789+-.@() :Xx")
