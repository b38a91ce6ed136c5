"""Finder of people: members of the tenant, by a part of the name or by their id, usr_7."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy

from kernel.http.finders import Finder, FoundThing, match_words

if TYPE_CHECKING:
    from kernel.principal import Principal


def match_person(text: str, by: Principal) -> Q:
    pasted = re.fullmatch(r"usr_(\d{1,9})", text)
    return Q(pk=int(pasted[1])) if pasted else match_words("username", "first_name", "last_name", "email")(text, by)


def show_person(user: Any) -> FoundThing:
    return FoundThing(
        user.get_full_name() or user.get_username(), reverse("person", args=[user.pk]), user.get_username()
    )


FINDER = Finder(
    noun=gettext_lazy("People"),
    icon="user",
    permission="members.view",
    order=50,
    rows=lambda by: get_user_model()._default_manager.filter(memberships__tenant_id=by.tenant_id).distinct(),
    match=match_person,
    sort=("username",),
    show=show_person,
)
