"""Addresses of Google's generateContent. Its SDKs ask below either version; the document has them once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.urls import path

from invocations.model_calls.served.gemini import api, verbs

if TYPE_CHECKING:
    from django.urls import URLPattern

VIEWS = {
    verbs.GENERATE: (api.GenerateContentView, "served_content"),
    verbs.STREAM: (api.StreamContentView, "served_content_stream"),
    verbs.COUNT: (api.ContentCountView, "served_content_count"),
    verbs.EMBED: (api.EmbedContentView, "served_content_vector"),
    verbs.EMBED_BATCH: (api.EmbedContentsView, "served_content_vectors"),
}


def build_addresses(version: str, suffix: str = "", **options: Any) -> list[URLPattern]:
    """Those of a version, under names with that suffix."""
    return [
        path(f"{version}/models/<path:model_id>:{verb}", view.as_view(**options), name=name + suffix)
        for verb, (view, name) in VIEWS.items()
    ]


PAGES = [*build_addresses("v1beta"), *build_addresses("v1", "_v1", schema=None)]

ACCESS = """
[api]

POST   served_content             models:call
POST   served_content_stream      models:call
POST   served_content_count       models:call
POST   served_content_vector      models:call
POST   served_content_vectors     models:call
POST   served_content_v1          models:call
POST   served_content_stream_v1   models:call
POST   served_content_count_v1    models:call
POST   served_content_vector_v1   models:call
POST   served_content_vectors_v1  models:call
"""
