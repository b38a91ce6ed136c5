"""What does the web server write down of a request?

The address without its query, which may hold what stands for a key: the signature of a link.
"""

from __future__ import annotations

import logging

OF_UVICORN = "uvicorn.access"
_PATH = 2  # client, method, path with query, version, status


class WithoutQuery(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple) and len(record.args) > _PATH:
            path = str(record.args[_PATH]).partition("?")[0]
            record.args = (*record.args[:_PATH], path, *record.args[_PATH + 1 :])
        return True


def leave_out_queries() -> None:
    logging.getLogger(OF_UVICORN).addFilter(WithoutQuery())
