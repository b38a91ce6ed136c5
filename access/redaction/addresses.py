"""Which part of a text leads to somebody's door?

In Chinese a way with a number is the anchor, and what is around it is read from there. Elsewhere it is the line with the town: a
postcode in the form of its country, before which the lines of an address have to stand; or a kind of way with a number and a name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from access.redaction.spans import Span

ZH_REACH = 40
LOOK_BACK = 160

ZH_ANCHOR = re.compile(
    r"(?:路|街|巷|大道|道|弄|胡同|里|村|园|苑|小区|大厦|广场)(?:[东南西北]段|[东南西北]|中段)?"
    r" ?(?:[0-9〇零一二三四五六七八九十百]{1,6}(?:-[0-9]{1,5})? ?(?:号楼|号院|号|弄|栋|幢|座)|[A-Za-z] ?(?:号楼|栋|幢|座))"
)
ZH_MORE = re.compile(
    r"(?:[,， ]{0,2}(?:[0-9A-Za-z一二三四五六七八九十-]{1,8}(?:号楼|单元|栋|幢|座|室|楼|层|号|房)"
    r"|[一-龥]{2,8}(?:小区|花园|大厦|大楼|中心|广场|公寓|家园)(?=[0-9A-Za-z]))){1,6}"
)
ZH_POSTCODE = re.compile(r"[,， ]{0,2}(?:邮编|邮政编码)?[:： ]?[0-8][0-9]{5}(?![0-9])")
ZH_NO_WAYS = re.compile(r"[知报味频通渠轨管车]道|[这那哪家心手店城夜公英海]里|校园")
ZH_REGION = re.compile(r"[一-龥]{2,7}?(?:省|自治区|市|特别行政区)")
ZH_LEAD = re.compile(
    r".*(?:地址|住址|住在|家住|位于|寄到|寄往|寄至|送到|送至|发到|发往|搬到|搬去|收货|来自|前往|去了|在|到|至|往|是|为)"
)
ZH_DISTRICT = re.compile(r"[一-龥]{1,6}(?:区|县|旗|镇|乡|街道)")

_UP = "A-ZÀ-ÖØ-Þ"
_WORD = rf"[{_UP}][\w'’.\-]{{0,30}}"
_LITTLE = r"(?:am|an|auf|aux|bei|de|der|des|du|d'|en|im|in|la|le|les|l'|ob|of|on|sous|sur|the|und|upon|vor|zu|zum)"
_NAME = rf"{_WORD}(?: (?:{_LITTLE} ){{0,2}}{_WORD}){{0,3}}"  # "Frankfurt am Main"
_BREAK = r"(?:, ?\n?|\n) ?"

_WAY = (
    r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Way|Place|Pl|Square|Sq|Terrace|Ter"
    r"|Parkway|Pkwy|Highway|Hwy|Close|Crescent|Gardens|Grove|Hill|Row|Mews|Circle|Cir|Trail|Alley)"
)
_STREET_WORD = r"(?!The\b|On\b|In\b)[A-Z0-9][A-Za-z0-9.'\-]{0,20}"
_ROOM = r"(?:Apt|Apartment|Suite|Ste|Unit|Flat|Studio|Floor|Room|#)\.? ?[A-Za-z0-9\-]{1,6}"
_STATE = (
    r"(?:A[AEKLPRSZ]|C[AOT]|D[CE]|F[LM]|G[AU]|HI|I[ADLN]|K[SY]|LA|M[ADEHINOPST]|N[CDEHJMVY]"
    r"|O[HKR]|P[ARW]|RI|S[CD]|T[NX]|UT|V[AIT]|W[AIVY])"
)
_FR_WAY = r"(?:rue|avenue|av\.|boulevard|bd|chemin|place|allée|impasse|quai|route|cours|square|passage|sentier|faubourg|villa|cité)"
_DE_WAY = r"(?:straße|strasse|str\.|gasse|weg|allee|platz|ring|damm|ufer|steig|chaussee|promenade|markt|stieg|graben|hof|pfad)"
_DE_NUMBER = r"[0-9]{1,4} ?[a-z]?(?:[/\-][0-9]{1,4}[a-z]?)?(?![0-9A-Za-z])"

# What says so by itself.
WAYS = (
    re.compile(
        rf"(?<![0-9A-Za-z])[0-9]{{1,6}}[A-Za-z]?(?:-[0-9]{{1,4}})? (?:[NSEW]{{1,2}}\.? )?(?:{_STREET_WORD} ){{1,4}}?{_WAY}\b\.?"
        rf"(?: [NSEW]{{1,2}}\b)?(?:,? {_ROOM})?"
        r"(?:(?:, [A-Z][A-Za-z.'\-]{1,20}(?: [A-Z][A-Za-z.'\-]{1,20}){0,2}){0,2},? (?:[A-Z]{2} [0-9]{5}(?:-[0-9]{4})?"
        r"|[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}))?"
    ),
    re.compile(r"(?<![A-Za-z])P\.? ?O\.? ?Box [0-9]{1,8}(?![0-9])", re.IGNORECASE),
    re.compile(rf"(?<![\w])(?:[{_UP}][\w\-.]{{0,40}}?(?i:{_DE_WAY})|(?:{_WORD} ){{1,3}}(?i:{_DE_WAY})) {_DE_NUMBER}"),
    re.compile(
        rf"(?<![0-9A-Za-z])[0-9]{{1,4}}(?: ?(?:bis|ter|quater|[A-D]))?,? (?i:{_FR_WAY}) (?:{_LITTLE} ?){{0,2}}{_NAME}"
    ),
)
# The line with the town, and the lines that have to stand before it: they are read backwards from there.
_GB_LINE = rf"(?:{_ROOM}|(?:[0-9]{{1,5}}[A-Za-z]? )?{_NAME})"
_US_LINE = r"[0-9A-Z][\w .'’#\-]{1,60}"
TOWNS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    (
        re.compile(rf"(?<![A-Za-z]){_STATE},? [0-9]{{5}}(?:-[0-9]{{4}})?(?![0-9A-Za-z])"),
        re.compile(
            rf"(?<![0-9A-Za-z.])(?:[0-9]{{1,6}}[A-Za-z]?(?:-[0-9]{{1,4}})? {_NAME}(?: {_ROOM})?|P\.? ?O\.? ?Box [0-9]{{1,8}}"
            rf"|(?:PSC|Unit|CMR) [0-9]{{1,5}},? Box [0-9]{{1,5}}|US[A-Z]{{1,3}} {_NAME})"
            rf"(?:{_BREAK}{_US_LINE}){{0,2}}(?:{_BREAK}| ){_NAME},? \Z"
        ),
    ),
    (
        re.compile(r"(?<![0-9A-Za-z])[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}(?![0-9A-Za-z])"),
        re.compile(
            rf"(?<![0-9A-Za-z.])(?:{_ROOM}|[0-9]{{1,5}}[A-Za-z]? {_NAME})(?:{_BREAK}{_GB_LINE}){{1,4}}(?:{_BREAK}| )\Z"
        ),
    ),
    (
        re.compile(rf"(?<![0-9A-Za-z])(?:D-)?[0-9]{{5}} {_NAME}(?: \([^()\n]{{1,20}}\))?"),
        re.compile(rf"(?<![\w])(?:{_NAME} {_DE_NUMBER})(?:{_BREAK}{_NAME})?{_BREAK}\Z"),
    ),
    (
        re.compile(rf"(?<![0-9A-Za-z])(?:F-)?[0-9]{{5}} {_NAME}"),
        re.compile(
            rf"(?<![0-9A-Za-z])(?:[0-9]{{1,4}}(?: ?(?:bis|ter|quater|[A-D]))?,? )?(?i:{_FR_WAY}) (?:{_LITTLE} ?){{0,2}}{_NAME}"
            rf"(?:{_BREAK}{_NAME})?{_BREAK}\Z"
        ),
    ),
)


def _is_zh(char: str) -> bool:
    return "一" <= char <= "龥" or (char.isascii() and char.isalnum())


def _zh_addresses(text: str) -> Iterator[Span]:
    done = 0
    for match in ZH_ANCHOR.finditer(text):
        if match.start() < done:
            continue
        start = match.start()
        while start > done and match.start() - start < ZH_REACH and _is_zh(text[start - 1]):
            start -= 1
        region = ZH_REGION.search(text, start, match.start()) or ZH_DISTRICT.search(text, start, match.start())
        if region is None and ZH_NO_WAYS.fullmatch(text, match.start() - 1, match.start() + 1):
            continue
        lead = ZH_LEAD.match(text, start, region.end() - 1 if region else match.start() - 1)
        if lead:
            start = lead.end()
        if start == match.start():
            continue  # a way without a name: "路12号"
        more = ZH_MORE.match(text, match.end())
        done = more.end() if more else match.end()
        postcode = ZH_POSTCODE.match(text, done)
        done = postcode.end() if postcode else done
        yield start, done


def _by_towns(text: str) -> Iterator[Span]:
    for town, lines in TOWNS:
        done = 0
        for match in town.finditer(text):
            before = lines.search(text[max(done, match.start() - LOOK_BACK) : match.start()])
            if before is not None:
                yield match.start() - len(before[0]), match.end()
                done = match.end()


def addresses(text: str) -> Iterator[Span]:
    yield from _zh_addresses(text)
    yield from _by_towns(text)
    for pattern in WAYS:
        for match in pattern.finditer(text):
            yield match.span()
