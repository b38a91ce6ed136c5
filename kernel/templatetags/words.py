"""Word tags: what the values of the product are called in the reader's language, without an icon or a colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import template

from kernel.components import capability_words, labels, limits, manifest_words, visualizations
from kernel.components.sentences import translate_sentence

if TYPE_CHECKING:
    from collections.abc import Iterable

register = template.Library()


@register.simple_tag
def state_word(status: str) -> str:
    """The word of a state alone, for the options of a filter."""
    return str(labels.STATUS[status][2]) if status in labels.STATUS else status


@register.simple_tag
def risk_word(level: str) -> str:
    return str(manifest_words.RISK[level.lower()][2])


@register.simple_tag
def effect(word: str) -> str:
    """The side effect that a manifest names."""
    return str(manifest_words.EFFECT.get(word, word))


@register.simple_tag
def operation(word: str) -> str:
    """What a model is there for."""
    return str(manifest_words.OPERATION.get(word, word))


@register.filter
def data_classes(words: Iterable[str]) -> list[str]:
    """Kinds of data that a manifest, a consent or a provider of models names, as people read them."""
    return [str(manifest_words.DATA_CLASS.get(word, word)) for word in words]


@register.simple_tag
def place_word(place: str) -> str:
    """Where a request carries a value."""
    return str(manifest_words.PLACE.get(place, place))


@register.simple_tag
def origin_word(origin: str) -> str:
    """By which way a call came in."""
    return str(labels.ORIGIN.get(origin, origin))


@register.simple_tag
def snapshot_word(kind: str) -> str:
    return str(labels.SNAPSHOT.get(kind, kind))


@register.simple_tag
def mark(name: str) -> str:
    """What stands between two parts of a sentence that a page puts together, as the reader's language writes it."""
    return str(labels.MARKS[name])


@register.filter
def listed(words: Iterable[object]) -> str:
    """Words one after another, as the reader's language parts them."""
    return str(labels.MARKS["comma"]).join(map(str, words))


@register.simple_tag
def bump_word(bump: str) -> str:
    """What a change asks of the version number."""
    return str(labels.BUMP[bump])


@register.filter
def sentence(text: str) -> str:
    """What a service says, in the language of the page."""
    return translate_sentence(str(text))


register.filter(capability_words.capability_text)
register.filter(capability_words.kept_text)
register.filter(capability_words.capability_lines)


@register.simple_tag
def capability_domain(domain: str) -> str:
    """A kind of capabilities, for the options of a filter."""
    return str(capability_words.DOMAIN[domain])


@register.filter
def capability_bound(side: str) -> str:
    return str(labels.CAPABILITY_BOUND.get(side, side))


@register.filter
def in_units(text: str, pointer: str) -> str:
    """The amount of a limit in people's units, where ``pointer`` names one; anything else as it is."""
    name = pointer.rpartition("/")[2]
    is_amount = name.endswith(visualizations.UNITS) and text.isdecimal()
    return limits.limit_amount(name, int(text)) if is_amount else text
