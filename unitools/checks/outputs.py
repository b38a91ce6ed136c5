"""Outputs: what a manifest says wrongly of its answers, or leaves unsaid, such as age, personal data and repairs.

Names are evidence and no proof: what the author says of a tool is held against him, what a name suggests is a warning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from unitools.checks.findings import declare_rule, declare_warning
from unitools.checks.schemas import walk_property_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding
    from unitools.manifest import Manifest

FRESHNESS_WORDS = re.compile(r"\b(price|pricing|quote|stock|inventory|availability|rate|route)s?\b", re.IGNORECASE)
QUOTED = {
    "price": re.compile(r"\b(price|unit price|list price|fare|quote|exchange rate|tariff)s?\b"),
    "stock": re.compile(r"\b(stock|in stock|stock level|inventory|availability|available quantity)\b"),
    "route": re.compile(r"\b(route|eta|estimated arrival|travel time|departure)s?\b"),
}
LONG_TTL_S = 24 * 3600
_SAID = {
    "personal": "email, email address, phone, phone number, full name, first name, last name, given name, family name, surname, "
    "birth date, date of birth, birthday, passport number, id number, national id, ssn, recipient, line1, street, "
    "street address, home address, postal address, 姓名, 收件人, 手机, 手机号, 电话, 邮箱, 身份证, 身份证号, 住址, 地址",
    "payment": "card number, credit card, cvv, cvc, iban, bank account, account number, bic, 银行卡, 银行卡号, 卡号",
    "health": "diagnosis, diagnoses, medication, blood type, patient, patient id, allergies, 病历, 诊断",
    "location": "latitude, longitude, lat, lng, lon, geolocation, gps, coordinates, 经度, 纬度",
}
CLASSES = {kind: frozenset(words.split(", ")) for kind, words in _SAID.items()}

TTL_MISSING = declare_rule(
    "ttl.missing",
    "A tool that quotes prices, stock or routes says how long its answer is fresh.",
    "Add ttl_seconds.",
)
TTL_SUSPECTED = declare_warning(
    "ttl.suspected",
    "A tool whose name, tags or answer look like a price, stock or a route says how long its answer is fresh.",
    "Add ttl_seconds and quotes, if the answer is soon out of date.",
)
TTL_LONG = declare_warning(
    "ttl.too_long",
    "A quoted price, stock or route is not fresh for longer than a day.",
    "Lower ttl_seconds.",
)
CLASS_SUSPECTED = declare_warning(
    "data_classes.suspected",
    "A tool that takes or returns data about people says of which kind.",
    "Add the word to data_classes, so that consents and policies can name it.",
)
REPAIR_IDLE = declare_warning(
    "output_repair.idle",
    "A repair is allowed only where the output schema leaves something to repair.",
    "Leave it out, or close an object of the output schema with additionalProperties: false.",
)


def _words(name: str) -> str:
    """``unitPrice``, ``unit_price`` and ``unit-price`` as ``unit price``."""
    return re.sub(r"[\W_]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)).strip().lower()


def check_freshness(manifest: Manifest) -> Iterator[ManifestFinding]:
    """SPEC-5: prices, stock and routes need a TTL."""
    if manifest.ttl_seconds is not None:
        if manifest.quotes and manifest.ttl_seconds > LONG_TTL_S:
            yield TTL_LONG.at(("ttl_seconds",), f"The answer quotes {', '.join(manifest.quotes)}.")
    elif manifest.quotes:
        yield TTL_MISSING.at(
            ("ttl_seconds",), f"The answer quotes {', '.join(manifest.quotes)}, but has no time to live."
        )
    elif where := _quoted(manifest):
        yield TTL_SUSPECTED.at(("ttl_seconds",), where)


def _quoted(manifest: Manifest) -> str:
    """What looks like a quote. Of the id only the tool's own name counts: that of its package says nothing of a single tool."""
    if found := FRESHNESS_WORDS.search(_words(manifest.id.rpartition(".")[2])):
        return f"The name of the tool looks like a {found[1].lower()}, and its answer has no time to live."
    for path, name in walk_property_names("output_schema", manifest.document["output_schema"]):
        for what, pattern in QUOTED.items():
            if pattern.search(_words(name)):
                return f"The answer's {path[-1]} looks like a {what}, and it has no time to live."
    for tag in manifest.tags:
        for what, pattern in QUOTED.items():
            if pattern.search(_words(tag)):
                return f"The tag {tag} looks like a {what}, and the answer has no time to live."
    return ""


def check_data_classes(manifest: Manifest) -> Iterator[ManifestFinding]:
    seen = set(manifest.data_classes)
    for field in ("input_schema", "output_schema"):
        for path, name in walk_property_names(field, manifest.document[field]):
            for kind, words in CLASSES.items():
                if kind not in seen and _words(name) in words:
                    seen.add(kind)
                    yield CLASS_SUSPECTED.at(path, f"{name} looks like {kind} data, which data_classes does not name.")


def _is_closed(schema: Any) -> bool:
    """Whether the schema forbids unknown properties anywhere."""
    if isinstance(schema, dict):
        if schema.get("additionalProperties") is False or schema.get("unevaluatedProperties") is False:
            return True
        return any(map(_is_closed, schema.values()))
    return isinstance(schema, list) and any(map(_is_closed, schema))


def check_repair(manifest: Manifest) -> Iterator[ManifestFinding]:
    """TOOLS-23: a reviewer should not think about a repair that does nothing."""
    if "drop_unknown" in manifest.output_repair and not _is_closed(manifest.output_schema):
        at = manifest.output_repair.index("drop_unknown")
        yield REPAIR_IDLE.at(("output_repair", at), "No object of the output schema forbids unknown properties.")
