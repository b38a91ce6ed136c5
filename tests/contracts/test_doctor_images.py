"""Images in doctor: what does `doctor` say of the images that the engine has?"""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from invocations.sandbox.base import SandboxUnavailable
from toolhub.management.commands import doctor


def said() -> str:
    output = StringIO()
    call_command("doctor", stdout=output)
    return output.getvalue()


def test_doctor_names_the_images_that_are_not_there_and_the_command_that_builds_them(settings: Any) -> None:
    settings.TOOLHUB_SANDBOX = "docker"
    whole = doctor.images()
    settings.TOOLHUB_SANDBOX_IMAGES = settings.TOOLHUB_SANDBOX_IMAGES | {"ruby": "ruby-box:no-such-tag"}

    assert whole == "on this host: browser, git, node, python"
    assert doctor.images() == "not on this host: ruby; tools that need one wait for `make sandbox-images`"


@pytest.mark.django_db  # doctor asks first whether anything is set up
def test_an_image_that_is_not_there_is_a_note(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TOOLHUB_SANDBOX = "docker"
    monkeypatch.setattr(doctor, "CHECKS", (doctor.images,))
    whole = said()
    settings.TOOLHUB_SANDBOX_IMAGES = settings.TOOLHUB_SANDBOX_IMAGES | {"ruby": "ruby-box:no-such-tag"}

    assert "ok     images    on this host" in whole
    assert "note   images    not on this host: ruby" in said()


def test_doctor_says_that_no_engine_answers(settings: Any) -> None:
    settings.TOOLHUB_SANDBOX = "docker"
    settings.TOOLHUB_DOCKER_URL = "unix:///nowhere/docker.sock"

    with pytest.raises(SandboxUnavailable, match="make engine"):
        doctor.images()
