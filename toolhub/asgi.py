"""The entry point of web servers: ``uvicorn toolhub.asgi:application``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")

import toolhub.celery  # noqa: F401  the web process sends messages
from toolhub.kernel import telemetry
from toolhub.kernel.bodies import limited

if TYPE_CHECKING:
    from toolhub.kernel.bodies import Application

telemetry.setup("web")
_django = get_asgi_application()

from invocations.file_bodies import WIDER  # noqa: E402  models load only after Django is set up
from toolhub.startup import refuse_without_keys  # noqa: E402

refuse_without_keys()
application: Application = limited(_django, WIDER)
