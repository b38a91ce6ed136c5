"""Which sandbox does this process use?"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from invocations.sandbox.docker import DockerSandbox
from invocations.sandbox.fake import FakeSandbox
from sandbox.image import image_name

if TYPE_CHECKING:
    from invocations.sandbox.base import Sandbox


@lru_cache(maxsize=1)
def current_sandbox() -> Sandbox:
    """By ``TOOLHUB_SANDBOX``: ``docker``, or ``fake`` for tests that need no walls."""
    match settings.TOOLHUB_SANDBOX:
        case "docker":
            return DockerSandbox(
                image=settings.TOOLHUB_SANDBOX_IMAGE or image_name(),
                instance=settings.TOOLHUB_INSTANCE,
                engine_url=settings.TOOLHUB_DOCKER_URL or None,
            )
        case "fake":
            return FakeSandbox()
        case other:
            raise ImproperlyConfigured(f"TOOLHUB_SANDBOX is {other!r}; it must be 'docker' or 'fake'.")
