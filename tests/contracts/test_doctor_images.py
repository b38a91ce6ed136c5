"""What does `doctor` say of the images that the engine has?"""

from __future__ import annotations

from typing import Any

import pytest

from invocations.sandbox.base import SandboxUnavailable
from toolhub.management.commands import doctor


def test_doctor_names_the_images_that_are_not_there_and_the_command_that_builds_them(settings: Any) -> None:
    settings.TOOLHUB_SANDBOX = "docker"
    whole = doctor.images()
    settings.TOOLHUB_SANDBOX_IMAGES = settings.TOOLHUB_SANDBOX_IMAGES | {"ruby": "ruby-box:no-such-tag"}

    assert whole == "on this host: browser, node, python"
    assert doctor.images() == "not on this host: ruby; tools that need one wait for `make sandbox-images`"


def test_doctor_says_that_no_engine_answers(settings: Any) -> None:
    settings.TOOLHUB_SANDBOX = "docker"
    settings.TOOLHUB_DOCKER_URL = "unix:///nowhere/docker.sock"

    with pytest.raises(SandboxUnavailable, match="make engine"):
        doctor.images()
