"""The entry point of web servers; ``manage.py serve`` is the one that bounds what comes before a body."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

import django
from django.conf import settings
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")

import toolhub.celery  # noqa: F401  the web process sends messages
from kernel.http.body_limits import limit_bodies
from kernel.observability import access_log, exposition, telemetry

if TYPE_CHECKING:
    from kernel.http.body_limits import Application

telemetry.setup_telemetry("web")
django.setup(set_prefix=False)
access_log.install_path_mask()

from invocations.files import body_limits as file_bodies  # noqa: E402  as above
from invocations.mcp.endpoint import McpEndpoint  # noqa: E402  as above
from invocations.model_calls import body_limits as model_bodies  # noqa: E402  models load only after Django is set up
from kernel.http.deferred_responses import Handler  # noqa: E402
from kernel.http.open_requests import keep_open_requests  # noqa: E402
from kernel.http.traffic import measure_requests  # noqa: E402
from toolhub.call_door import CallDoor  # noqa: E402
from toolhub.instruments import make_instruments  # noqa: E402
from toolhub.startup import refuse_foreign_keys, refuse_without_keys, say_unknown_settings  # noqa: E402

refuse_without_keys()
refuse_foreign_keys()
say_unknown_settings()
if exposition.is_wanted():
    make_instruments()
django_application = Handler(settings.TOOLHUB_WEB_THREADS)
bounded_application = limit_bodies(
    McpEndpoint(CallDoor(django_application), django_application.in_thread), (*file_bodies.WIDER, *model_bodies.WIDER)
)
measured_application = measure_requests(keep_open_requests(bounded_application))
# Here and not in a web server's options: whoever starts another one would believe whom that believes.
application = cast("Application", ProxyHeadersMiddleware(cast("Any", measured_application), settings.TOOLHUB_PROXIES))
