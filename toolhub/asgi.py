"""The entry point of web servers; ``manage.py serve`` is the one that bounds what comes before a body."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import django
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")

import toolhub.celery  # noqa: F401  the web process sends messages
from toolhub.kernel import access_log, exposition, telemetry
from toolhub.kernel.bodies import limited

if TYPE_CHECKING:
    from toolhub.kernel.bodies import Application

telemetry.setup("web")
django.setup(set_prefix=False)
access_log.leave_out_words_of_callers()

from invocations import gauges  # noqa: E402  models load only after Django is set up
from invocations.file_bodies import WIDER  # noqa: E402  as above
from invocations.mcp.door import Door  # noqa: E402  as above
from toolhub.kernel.traffic import measured  # noqa: E402
from toolhub.kernel.waiting import Handler  # noqa: E402
from toolhub.startup import refuse_foreign_keys, refuse_without_keys, say_unknown_settings  # noqa: E402

refuse_without_keys()
refuse_foreign_keys()
say_unknown_settings()
if exposition.is_wanted():
    gauges.make_instruments()
django_application = Handler(settings.TOOLHUB_WEB_THREADS)
application: Application = measured(limited(Door(django_application, django_application.in_thread), WIDER))
