"""Postal addresses: the part of a text that leads to somebody's door.

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

_DIGIT = "[0-9０-９]"
_NUM = rf"(?:{_DIGIT}{{1,6}}|[〇零一二三四五六七八九十百千廿卅]{{1,7}})"  # "86", "８６", "八十六"
_DASH = "-－–—"
_DOOR = rf"[甲乙丙丁附]?{_NUM}(?: ?[{_DASH}~之] ?{_NUM}){{0,2}}[甲乙丙丁]?"  # "甲12", "12-3", "12之3"
_HOUSE = r"(?:[号號][楼樓院]|[号號]|弄|[栋棟]|幢|座)"
# What lies between a way and a door: 四段, 23巷, 4弄, 3组, 3社; and of an estate: 四区, 北一区, 东区.
_WITHIN = rf"(?:{_NUM} ?(?:段|巷|弄|衖|[组組]|[邻鄰]|[队隊]|社) ?){{0,3}}"
_AREA = rf"(?:[东東南西北中]{_NUM}?|{_NUM}|[A-Za-z])[区區]"
ZH_ANCHOR = re.compile(
    r"(?:路|街|巷|大道|道|弄|胡同|里|村|[庄莊]|[园園]|苑|小[区區]|社[区區]|大[厦廈]|[广廣][场場]|[条條坊屯寨邨])"
    rf"(?:{_AREA}|[东東南西北中]段|[东東南西北中])? ?{_WITHIN}"
    rf"(?:{_DOOR} ?{_HOUSE}(?![线線])|[A-Za-z] ?{_DIGIT}{{0,3}} ?(?:[号號][楼樓]|[栋棟]|幢|座))"
    # A group of a village is an address by itself; of anything else it is a number of things.
    rf"|[村庄莊屯寨邨] ?(?:{_NUM} ?(?:[组組]|[队隊]|社) ?){{1,3}}(?<=[组組社])(?![组組数數])"
)
ZH_MORE = re.compile(
    rf"(?:[,， ]{{0,2}}(?:[甲乙丙丁]?[0-9０-９A-Za-z一二三四五六七八九十百{_DASH}]{{1,8}}"
    rf"(?:[号號][楼樓]|[单單]元|[栋棟]|幢|座|室|[楼樓]|[层層]|[号號]|房|[户戶]|[门門](?= ?{_DIGIT}{{3}})|[Ff](?![A-Za-z]))"
    rf"|[之附] ?{_NUM}(?: ?[{_DASH}] ?{_NUM})?[号號]?|地下(?:室|{_NUM}[层層楼樓])|B[0-9](?![0-9A-Za-z])"
    rf"|(?<=[栋棟幢座元楼樓门門]) ?(?:{_DIGIT}{{1,3}}-)?{_DIGIT}{{3,4}}(?![0-9-])"
    r"|[一-龥]{2,8}(?:小[区區]|花[园園]|大[厦廈]|大[楼樓]|中心|[广廣][场場]|公寓|家[园園])(?=[0-9０-９A-Za-z])))"
    r"{1,6}"
)
ZH_POSTCODE = re.compile(r"[,， ]{0,2}(?:邮编|邮政编码|郵遞區號)?[:： ]?[0-8][0-9]{5}(?![0-9])")
ZH_POSTCODE_BEFORE = re.compile(r"(?<![0-9A-Za-z.\-])[0-9]{3}(?:[0-9]{2,3})? ?\Z")
ZH_NO_WAYS = re.compile(r"[知报報味频頻通渠轨軌管车車街]道|[这這那哪家心手店城夜公英海]里|校[园園]|公[园園]")
ZH_NEEDS_REGION = frozenset("条條坊屯寨邨庄莊")  # they mean much else
ZH_REGION = re.compile(r"[一-龥]{2,7}?(?:省|自治[区區]|市|特[别別]行政[区區])")
ZH_LEAD = re.compile(
    r".*(?:地址|住址|住在|家住|位[于於]|寄到|寄往|寄至|送到|送至|[发發]到|[发發]往|搬到|搬去|收[货貨]|[来來]自|前往|去了"
    r"|在|到|至|往|是|[为為])"
)
ZH_DISTRICT = re.compile(r"[一-龥]{1,6}(?:[区區]|[县縣]|旗|[镇鎮]|[乡鄉]|街道)")
ZH_JOINTS = frozenset("省市区區县縣旗镇鎮乡鄉里邻鄰道")  # after these an address may go on behind a blank or a comma

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
    return "一" <= char <= "龥" or "０" <= char <= "９" or (char.isascii() and char.isalnum())


def _zh_start(text: str, anchor: int, done: int) -> int:
    """How far what stands before a way may belong to it."""
    start = anchor
    while start > done and anchor - start < ZH_REACH:
        before = text[start - 1]
        if not _is_zh(before) and not (before in " ,，" and start - 2 >= done and text[start - 2] in ZH_JOINTS):
            break
        start -= 1
    return start


def _zh_addresses(text: str) -> Iterator[Span]:
    done = 0
    for match in ZH_ANCHOR.finditer(text):
        if match.start() < done:
            continue
        start = _zh_start(text, match.start(), done)
        region = ZH_REGION.search(text, start, match.start()) or ZH_DISTRICT.search(text, start, match.start())
        if region is None and (
            text[match.start()] in ZH_NEEDS_REGION or ZH_NO_WAYS.fullmatch(text, match.start() - 1, match.start() + 1)
        ):
            continue
        lead = ZH_LEAD.match(text, start, region.end() - 1 if region else match.start() - 1)
        if lead:
            start = lead.end()
        if start == match.start():
            continue  # a way without a name: "路12号"
        before = ZH_POSTCODE_BEFORE.search(text, max(done, start - 8), start)
        start = before.start() if before else start
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


def find_addresses(text: str) -> Iterator[Span]:
    yield from _zh_addresses(text)
    yield from _by_towns(text)
    for pattern in WAYS:
        for match in pattern.finditer(text):
            yield match.span()
