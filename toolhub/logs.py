"""What is written to the log, and who else hears of it?"""

from __future__ import annotations

from typing import Any


def logging_of(*, ours: str, rest: str, form: str) -> dict[str, Any]:
    """Django's LOGGING, with the least level of the hub's own loggers and of everything else, and ``line`` or ``json`` as form."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "addresses": {"()": "toolhub.kernel.access_log.OnlyOurWords"},
            "context": {"()": "toolhub.kernel.log_context.Context"},
            "one_line": {"()": "toolhub.kernel.log_context.OneLine"},
        },
        "formatters": {
            "line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
            "json": {"()": "toolhub.kernel.log_context.Json"},
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": form, "filters": ["context"]},
            "unmapped": {"class": "toolhub.kernel.unmapped.TellUnmapped", "level": "ERROR"},
        },
        "root": {"handlers": ["stderr"], "level": rest},
        "loggers": {
            "toolhub": {"level": ours, "handlers": ["unmapped"]},
            "django.security.DisallowedHost": {"filters": ["one_line"]},
            "django.request": {"level": "ERROR", "filters": ["addresses"]},
        },
    }
