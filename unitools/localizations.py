"""Localizations: what a manifest says of its tool to people in further languages, and which of them somebody reads.

Models read the text that stands in the manifest itself, whatever the language of a conversation: it is the one that was reviewed as
what they go by. A localization is for people: lists, pages and searches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unitools.manifest import Manifest

# What regions stand for where a manifest names the script: the two ways to write Chinese.
_SCRIPTS = {
    "zh-cn": "zh-hans",
    "zh-sg": "zh-hans",
    "zh-my": "zh-hans",
    "zh-tw": "zh-hant",
    "zh-hk": "zh-hant",
    "zh-mo": "zh-hant",
}


@dataclass(frozen=True, slots=True)
class LocalizedTexts:
    """``language``: the tag of the localization; empty: nothing is said in the language, and these are the manifest's own."""

    language: str
    display_name: str
    description: str
    examples: tuple[str, ...] = ()


def choose_tag(tags: Iterable[str], language: str) -> str:
    """The tag that fits a language best, by lookup of RFC 4647: the same one, else a more general one; empty: none fits."""
    known = {tag.lower(): tag for tag in tags}
    wanted = language.replace("_", "-").lower()
    while wanted:
        for each in (wanted, _SCRIPTS.get(wanted, "")):
            if each in known:
                return known[each]
        wanted = wanted.rpartition("-")[0]
    # Of Chinese alone nobody knows the script; of other languages a region is better than another language.
    first = language.replace("_", "-").lower().partition("-")[0]
    return (
        ""
        if first in ("", "zh")
        else next((tag for tag in sorted(known.values()) if tag.partition("-")[0] == first), "")
    )


def localize_texts(manifest: Manifest, language: str) -> LocalizedTexts:
    """What a person of this language reads. What a localization leaves out is said as the manifest says it."""
    tag = choose_tag(manifest.localizations, language)
    said = manifest.localizations.get(tag, {})
    return LocalizedTexts(
        tag,
        said.get("display_name", manifest.display_name),
        said.get("description", manifest.description),
        tuple(said.get("examples", manifest.examples)),
    )
