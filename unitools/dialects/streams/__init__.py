"""Streams: the pieces of a model's answer, put together to the response that would have come at once. One module per dialect.

:class:`StreamCollector` takes what a provider streams: text of server-sent events, cut anywhere, or the chunks of an SDK.
What it builds is read like any response. A stream that ends before its last event is refused, for what it proposed may be cut.
"""

from unitools.dialects.streams.collector import StreamCollector, collect_response, is_chunk

__all__ = ["StreamCollector", "collect_response", "is_chunk"]
