"""Call sentences of calls: what a person reads of one before deciding on it, masked as everything that they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from access.redaction import masked_view
from unitools.call_sentences import format_plain, render_sentence

if TYPE_CHECKING:
    from unitools.manifest import Manifest


def format_call_sentence(manifest: Manifest, arguments: Any) -> str:
    """As one line of text; empty where the manifest has no sentence."""
    if not manifest.call_sentence:
        return ""
    return format_plain(render_sentence(manifest.call_sentence, masked_view(arguments, manifest.input_schema)))
