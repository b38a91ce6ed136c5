"""Disclosure: what a person may see of values that are somebody else's, to decide about them.

Everything that a detector finds is masked, and so is whatever stands under a name that speaks of something sensitive, or that the
schema marks with ``"x-sensitive": true`` or ``"format": "password"``. What remains is enough to recognise a call by.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from access.redaction.detectors import KINDS
from access.redaction.masks import changed_text, digit_text, masked_hit, masked_whole, number_duplicates

if TYPE_CHECKING:
    from collections.abc import Iterator

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SENSITIVE = re.compile(
    r"(?:^|_)(?:pass(?:word|wd|phrase|code|port(?:_(?:no|number))?)|pwd|secrets?|tokens?|api_?keys?|private_?keys?|access_?keys?"
    r"|credentials?|authori[sz]ation|cookies?|session_id|pin|otp|cvv2?|cvc2?|card_?(?:no|number)|pan|iban|bic|account_?(?:no|number)"
    r"|bank_account|routing_number|ssn|social_security(?:_number)?|tax_id|id_?(?:no|number|card)|national_id|identity_number"
    r"|phones?|phone_?(?:no|number)|mobiles?|telephone|tel|fax|e?_?mails?|email_address|address(?:es|_line_?[0-9])?|street"
    r"|line_?[1-4]|house_?(?:no|number)|post(?:al)?_?code|zip(?:_?code)?|birth(?:day|_?date)|date_of_birth|dob|(?:first|last|full|given|family|middle|maiden)_?name"
    r"|surname|recipient(?:_name)?|salary|income|diagnosis|medical|religion|ethnicity|biometric|fingerprint)(?:_[0-9]+)?$"
    r"|密码|口令|姓名|身份证|证件|手机|电话|地址|住址|银行卡|卡号|邮箱|生日|出生|工资|病历",
)
MAX_REFS = 32


def is_sensitive_name(name: str) -> bool:
    plain = _HUMP.sub("_", name).replace("-", "_").replace(" ", "_").lower()
    return _SENSITIVE.search(plain) is not None


def _schemas(schema: Any, root: Any, left: int = MAX_REFS) -> Iterator[dict[str, Any]]:
    """The schema and all that it refers to or is composed of: whichever of them marks a value, it is marked."""
    if not isinstance(schema, dict) or left <= 0:
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target = root
        for part in reference.removeprefix("#").split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            target = target.get(part) if isinstance(target, dict) else None
        yield from _schemas(target, root, left - 1)
    for word in ("allOf", "anyOf", "oneOf"):
        for each in schema.get(word, []) if isinstance(schema.get(word), list) else []:
            yield from _schemas(each, root, left - 1)
    for word in ("then", "else"):
        yield from _schemas(schema.get(word), root, left - 1)


def _of_property(schemas: list[dict[str, Any]], name: str) -> Iterator[Any]:
    for schema in schemas:
        named = schema.get("properties")
        if isinstance(named, dict) and name in named:
            yield named[name]
        else:
            yield schema.get("additionalProperties")


def _of_entry(schemas: list[dict[str, Any]], index: int) -> Iterator[Any]:
    for schema in schemas:
        first = schema.get("prefixItems")
        yield first[index] if isinstance(first, list) and index < len(first) else schema.get("items")


def _all(schemas: Iterator[Any], root: Any) -> list[dict[str, Any]]:
    return [found for schema in schemas for found in _schemas(schema, root)]


def _is_marked(schemas: list[dict[str, Any]]) -> bool:
    return any(schema.get("x-sensitive") is True or schema.get("format") == "password" for schema in schemas)


def _viewed(value: Any, schemas: list[dict[str, Any]], root: Any, name: str = "") -> Any:
    if _is_marked(schemas) or is_sensitive_name(name):
        return masked_whole(value)
    if isinstance(value, dict):
        names = number_duplicates([changed_text(each, KINDS, masked_hit)[0] for each in value])
        below = (_viewed(each, _all(_of_property(schemas, own), root), root, own) for own, each in value.items())
        return dict(zip(names, below, strict=True))
    if isinstance(value, list):
        return [_viewed(each, _all(_of_entry(schemas, place), root), root, name) for place, each in enumerate(value)]
    text = value if isinstance(value, str) else digit_text(value)
    if text is None:
        return value
    masked = changed_text(text, KINDS, masked_hit, name=name)[0]
    return value if masked == text else masked


def masked_view(value: Any, schema: dict[str, Any] | None = None) -> Any:
    """The value with whatever is personal or secret in it masked."""
    return _viewed(value, list(_schemas(schema, schema)), schema)
