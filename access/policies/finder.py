"""Finder of policies: by the label of a version, "tenant@7", or a part of its note."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy

from access.models import PolicyVersion
from kernel.http.finders import Finder, FoundThing, match_words

if TYPE_CHECKING:
    from kernel.principal import Principal


def match_policy(text: str, by: Principal) -> Q:
    label = re.fullmatch(r"(hub|tenant)[@ -]?(\d{1,9})?", text.lower())
    if not label:
        return match_words("note")(text, by)
    owned = Q(tenant=None) if label[1] == "hub" else Q(tenant_id=by.tenant_id)
    return owned & Q(number=int(label[2])) if label[2] else owned


FINDER = Finder(
    noun=gettext_lazy("Policies"),
    icon="scale",
    permission="policies.view",
    order=80,
    prefix="pol",
    rows=lambda by: PolicyVersion.objects.visible_to(by).defer("document"),
    match=match_policy,
    show=lambda policy: FoundThing(policy.label, reverse("policy", args=[policy.pk]), policy.note[:80]),
)
