"""Logs: what is written to the log, and who else hears of it."""

from __future__ import annotations

from typing import Any


def build_logging(*, ours: str, rest: str, form: str) -> dict[str, Any]:
    """Django's LOGGING, with the least level of the hub's own loggers and of everything else, and ``line`` or ``json`` as form."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "addresses": {"()": "kernel.observability.access_log.PathMaskFilter"},
            "context": {"()": "kernel.observability.log_context.LogContextFilter"},
            "one_line": {"()": "kernel.observability.log_context.OneLineFilter"},
        },
        "formatters": {
            "line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
            "json": {"()": "kernel.observability.log_context.JsonLogFormatter"},
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": form, "filters": ["context"]},
            "unmapped": {"class": "kernel.observability.unmapped_errors.UnmappedErrorHandler", "level": "ERROR"},
        },
        "root": {"handlers": ["stderr"], "level": rest},
        "loggers": {
            "toolhub": {"level": ours, "handlers": ["unmapped"]},
            "django.security.DisallowedHost": {"filters": ["one_line"]},
            "django.request": {"level": "ERROR", "filters": ["addresses"]},
        },
    }
