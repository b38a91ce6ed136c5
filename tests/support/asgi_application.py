"""The application as a web server loads it: with everything that stands before Django."""

from __future__ import annotations

import pytest

from kernel.observability import telemetry
from toolhub import startup

with pytest.MonkeyPatch.context() as _patch:
    _patch.setattr(
        telemetry, "setup_telemetry", lambda service: None
    )  # it would trace all other tests of this process too
    _patch.setattr(startup, "refuse_foreign_keys", lambda: None)  # tests are collected before there is a database
    from toolhub.asgi import application

__all__ = ["application"]
