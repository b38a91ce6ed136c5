"""Playground world: which models do people of a tested hub talk with? ``python -m tests.e2e.playground_world URL``, with the hub's
environment.

The provider at that address is called ``house``, has two of them, and may have personal data.
"""

from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()  # models can be imported only from here on

from django.contrib.auth import get_user_model  # noqa: E402

from access.middleware import principal_of_user  # noqa: E402
from access.models import Tenant  # noqa: E402
from llm.model_features import CHAT_PARAMETERS  # noqa: E402
from registry.model_providers.connected_models import connect_model  # noqa: E402
from registry.model_providers.services import connect_provider  # noqa: E402

FEATURES = dict.fromkeys((*CHAT_PARAMETERS, "tools"), "passed")


def main(url: str) -> None:
    tenant = Tenant.objects.get(slug="demo")
    olivia = principal_of_user(get_user_model().objects.get(username="olivia"), tenant)
    said = {"name": "house", "kind": "openai_compatible", "address": f"{url}/v1"}
    connect_provider(**said, settings={}, data_classes=["personal"], reason="For a test.", by=olivia)
    for alias in ("talks", "second"):
        terms = {"operation": "chat", "features": FEATURES, "unpriced": "count"}
        connect_model(provider="house", alias=alias, model=alias, **terms, reason="For a test.", by=olivia)


if __name__ == "__main__":
    main(sys.argv[1])
