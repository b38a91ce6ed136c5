"""Session set-up: operators who are signed in. Run with the environment of a measured hub; prints their session keys as JSON."""

from __future__ import annotations

import json
import os
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()  # models can be imported only from here on

from django.conf import settings  # noqa: E402
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402

from access.members.services import give_membership  # noqa: E402
from access.models import Tenant  # noqa: E402
from access.roles import Role  # noqa: E402
from kernel.principal import Principal  # noqa: E402

BACKEND = settings.AUTHENTICATION_BACKENDS[0]


def main(count: int) -> None:
    tenant = Tenant.objects.get(slug="demo")
    setup = Principal.system("setup", tenant_id=tenant.pk)
    keys = []
    for number in range(count):
        user = get_user_model().objects.create_user(f"watcher-{time.time_ns()}-{number:04}")
        give_membership(tenant=tenant, user=user, role=Role.OPERATOR, by=setup, invited=True)
        session = SessionStore()
        session[SESSION_KEY], session[BACKEND_SESSION_KEY] = str(user.pk), BACKEND
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.create()
        keys.append(session.session_key)
    print(json.dumps(keys))


if __name__ == "__main__":
    main(int(sys.argv[1]))
