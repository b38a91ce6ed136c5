"""Tool texts: what a manifest says of its tool, in the language of who reads the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import template
from django.conf import settings
from django.utils.translation import get_language

from unitools.localizations import localize_texts

if TYPE_CHECKING:
    from unitools.localizations import LocalizedTexts
    from unitools.manifest import Manifest

register = template.Library()


@register.filter
def for_reader(manifest: Manifest) -> LocalizedTexts:
    """Its name, description and examples. What models read is the manifest's own."""
    return localize_texts(manifest, get_language() or settings.LANGUAGE_CODE)


@register.filter
def name_for_reader(manifest: Manifest) -> str:
    return for_reader(manifest).display_name
