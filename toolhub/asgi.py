"""The entry point of web servers: ``uvicorn toolhub.asgi:application``."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")

import toolhub.celery  # noqa: F401  the web process sends messages
from toolhub.kernel import telemetry

telemetry.setup("web")
application = get_asgi_application()
