"""Identities: which person of the hub somebody is whom an identity provider names.

The provider is the one with which people sign in here, and the person has done so: only then is it known whom its subject means. An
e-mail address decides nothing: providers let people change theirs.
"""

from __future__ import annotations

from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings

DISCOVERY = "/.well-known/openid-configuration"


def _normalize(issuer: str) -> str:
    """As a setting names it: with the address of its document, or without a slash at the end."""
    return issuer.removesuffix(DISCOVERY).rstrip("/")


def find_sign_in_providers(issuer: str) -> list[str]:
    """The names under which people sign in here with this provider; empty: they do not."""
    apps = settings.SOCIALACCOUNT_PROVIDERS.get("openid_connect", {}).get("APPS", [])
    wanted = _normalize(issuer)
    return [each["provider_id"] for each in apps if _normalize(each["settings"]["server_url"]) == wanted]


def find_person(issuer: str, subject: str) -> Any:
    """None where nobody has signed in as this subject."""
    accounts = SocialAccount.objects.select_related("user").filter(
        provider__in=find_sign_in_providers(issuer), uid=subject
    )
    account = accounts.first()
    return account.user if account else None
