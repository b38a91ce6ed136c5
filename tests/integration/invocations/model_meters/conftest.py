"""A provider in the process, as for calls of models."""

from __future__ import annotations

from tests.integration.invocations.model_calls.conftest import bench

__all__ = ["bench"]
