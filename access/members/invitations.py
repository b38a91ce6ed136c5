"""Invitations: how somebody who is new gets to sign in.

By a link that works once and for three days: with it they choose a password. It goes by mail where the hub can send mail, and
is otherwise shown once to whoever invited them. Nobody's password is ever chosen, or seen, by somebody else.

Until then the account carries roles of one tenant only, the one whose links open it (:func:`access.members.services.check_is_known`).
Whoever takes their roles back ends the links for good; then another tenant may invite under the same name.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.mail import send_mail
from django.db import transaction
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode
from django.utils.translation import gettext
from guardian.shortcuts import get_user_perms

from access.members import services as members
from access.members.services import RESET, find_tenant_ids
from access.models import Membership, Tenant
from access.object_permissions.rules import user_object_permissions
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.people import Invitation
from kernel.database.tenancy import hub_wide
from kernel.ids import encode_user
from kernel.principal import ActorKind, Principal
from kernel.problems import Conflict, Problem, SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

log = logging.getLogger("toolhub.invitations")
NAME = re.compile(r"[\w.@+-]{1,150}")


class _Tokens(PasswordResetTokenGenerator):
    key_salt = "access.invitations"


class _MailedTokens(PasswordResetTokenGenerator):
    """Of links that nobody but the reader of the mail saw: using one proves the address."""

    key_salt = "access.invitations.mailed"


tokens, mailed_tokens = _Tokens(), _MailedTokens()


def link_for(user: Any, *, by_mail: bool = False) -> str:
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    token = (mailed_tokens if by_mail else tokens).make_token(user)
    return settings.TOOLHUB_PUBLIC_URL + reverse("invitation", args=[uid, token])


def find_invited_person(uid: str, token: str) -> Any:
    """Who was invited with this link; None for a link that is wrong, used or too old."""
    try:
        user = get_user_model().objects.get(pk=int(urlsafe_base64_decode(uid).decode()))
    except (ValueError, OverflowError, UnicodeDecodeError, get_user_model().DoesNotExist):
        return None
    return user if is_valid_link(user, token) else None


def is_valid_link(user: Any, token: str) -> bool:
    right = tokens.check_token(user, token) or mailed_tokens.check_token(user, token)
    return right and may_be_linked(user)


def may_be_linked(user: Any) -> bool:
    """Only somebody who could never sign in: a link to anybody else would be a way into their account.

    And only into one tenant, unless whoever runs the hub's host made the link.
    """
    if not members.has_never_come(user):
        return False
    return user.password.startswith(RESET) or len(find_tenant_ids(user)) == 1


def may_invite_again(user: Any, *, by: Principal) -> bool:
    """Whether ``by`` may make another link to one of the people of their tenant."""
    try:
        check_may_hold_link(user, by=by)
    except Problem:
        return False
    return members.has_never_come(user) and _is_only_here(user, by)


def check_may_hold_link(user: Any, *, by: Principal) -> None:
    """Who holds the link can be that person, so it is for whom could give them all that they hold here."""
    tenant = Tenant.objects.get(pk=by.tenant_id)
    for role in Membership.objects.filter(tenant=tenant, user=user).values_list("role", flat=True):
        members.check_can_change(user, role=role, by=by)
    if get_user_perms(user, tenant) or user_object_permissions(user, tenant_id=tenant.pk):
        members.check_can_change(user, by=by)


@transaction.atomic
def invite_person(*, username: str, name: str, email: str, roles: set[str], by: Principal) -> tuple[Any, str | None]:
    """A person with these roles in the tenant.

    The link is empty if it was mailed; None for somebody whom the hub knows already. Whom another tenant has invited, and who
    has not come yet, is refused; whose invitation was taken back is invited like somebody new.
    """
    by.check("members.manage")
    tenant, username = Tenant.objects.get(pk=by.tenant_id), username.strip()
    email = email.strip().lower()  # as it is looked up when somebody signs in with it
    user = get_user_model().objects.select_for_update().filter(username=username).first()
    if user is not None and Membership.objects.filter(tenant=tenant, user=user).exists():
        raise Conflict("This person belongs to the tenant already.", remedy="Change their roles on their own page.")
    left = user is not None and members.has_never_come(user) and not find_tenant_ids(user) and _has_no_way_in(user)
    known = user is not None and not left
    if user is None or left:
        _check_new(username, email, but=user)
        user = user or get_user_model().objects.create_user(username)
        user.first_name, _, user.last_name = name.strip().partition(" ")
        user.email = email
        user.set_unusable_password()  # one that nothing matches, and a fresh one: links are bound to the one before
        user.save(update_fields=["first_name", "last_name", "email", "password"])
    members.set_roles(tenant=tenant, user=user, roles=roles, by=by, invited=not known)
    evidence.record(
        kind=Kind.PERSON_INVITED, subject=encode_user(user.pk), actor=by, data=Invitation(roles=sorted(roles))
    )
    return user, None if known else _send_or_show(user)


def _has_no_way_in(user: Any) -> bool:
    """Not reset by whoever runs the hub's host, nor an owner of the hub, nor known to an identity provider."""
    reset, elsewhere = user.password.startswith(RESET), SocialAccount.objects.filter(user=user).exists()
    return not (reset or elsewhere or user.groups.exists())


def _check_new(username: str, email: str, *, but: Any) -> None:
    if not NAME.fullmatch(username):
        message = gettext("A user name has letters, digits and any of @ . + - _ and no spaces.")
        raise SchemaInvalid(message, details={"findings": [{"pointer": "/username", "message": message}]})
    others = get_user_model().objects.exclude(pk=but.pk if but else 0)
    if email and others.filter(email__iexact=email).exists():
        message = gettext("This address belongs to an existing user. Enter their user name.")
        raise SchemaInvalid(message, details={"findings": [{"pointer": "/email", "message": message}]})


@transaction.atomic
def invite_again(*, user_id: int, by: Principal) -> str:
    """Another link for somebody who has not come yet."""
    by.check("members.manage")
    membership = Membership.objects.filter(tenant_id=by.tenant_id, user_id=user_id).select_related("user")[:1].get()
    if not members.has_never_come(membership.user):
        raise Conflict("This person has a password and needs no link.")
    check_may_hold_link(membership.user, by=by)
    _check_only_here(membership.user, by)
    evidence.record(
        kind=Kind.PERSON_INVITED, subject=encode_user(membership.user.pk), actor=by, data=Invitation(again=True)
    )
    return _send_or_show(membership.user)


@transaction.atomic
def withdraw_invitation(*, user_id: int, reason: str, by: Principal) -> None:
    """Somebody who has not come yet belongs to the tenant no more, and every link to them ends."""
    by.check("members.manage")
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=by.tenant_id)  # before the person, as everywhere
    membership = Membership.objects.filter(tenant=tenant, user_id=user_id).select_related("user")[:1].get()
    user = get_user_model().objects.select_for_update().get(pk=membership.user_id)
    if not members.has_never_come(user):
        raise Conflict("This person has come already.", remedy="Take their roles back instead.")
    members.set_roles(tenant=tenant, user=user, roles=set(), reason=reason, by=by)  # which ends their links
    said = Invitation(withdrawn=True, reason=reason.strip())
    evidence.record(kind=Kind.PERSON_INVITED, subject=encode_user(user.pk), actor=by, data=said)


def find_pending_invitees(tenant_id: UUID) -> Any:
    """The people of a tenant who were invited and have not come yet: those of whom
    :func:`access.members.services.has_never_come` is true.
    """
    return members.find_members(tenant_id).filter(
        is_active=True, last_login=None, password__startswith=UNUSABLE_PASSWORD_PREFIX
    )


def _is_only_here(user: Any, by: Principal) -> bool:
    return not find_tenant_ids(user) - {by.tenant_id} and not user.password.startswith(RESET)


def _check_only_here(user: Any, by: Principal) -> None:
    """A link is a way into everything that somebody is, so one tenant makes none to a person of another."""
    if not _is_only_here(user, by):
        raise Conflict(
            "A link to this person is not yours to make: they belong to another tenant too, or their sign-in was reset.",
            remedy="Ask whoever runs the hub's host for a link: manage.py reset_sign_in makes one.",
        )


def _send_or_show(user: Any) -> str:
    if not (settings.TOOLHUB_EMAIL_URL and user.email):
        return link_for(user)
    link = link_for(user, by_mail=True)
    transaction.on_commit(lambda: _mail(user.email, link))
    return ""


def _mail(address: str, link: str) -> None:
    try:
        send_mail(
            gettext("[toolhub] You are invited"),
            gettext("Choose a password with this link. It works once, and for three days:") + f"\n\n{link}\n",
            None,
            [address],
        )
    except OSError as error:
        log.warning("An invitation could not be mailed and must be sent again: %s", error)


@transaction.atomic
def accept_invitation(*, user: Any, password: str, token: str) -> None:
    """The invited person chooses a password, which ends the link. A link that was mailed proves their address."""
    fresh = get_user_model().objects.select_for_update().get(pk=user.pk)
    if not is_valid_link(fresh, token):  # again: it may have ended since the page asked
        raise Conflict(gettext("This link does not work: it was already used, or it has expired."))
    if fresh.email and mailed_tokens.check_token(fresh, token):
        EmailAddress.objects.update_or_create(
            user=fresh, email=fresh.email, defaults={"verified": True, "primary": True}
        )
    fresh.set_password(password)
    fresh.save(update_fields=["password"])
    username = fresh.get_username()
    with hub_wide():  # nobody is signed in yet
        for tenant_id in set(Membership.objects.filter(user=fresh).values_list("tenant_id", flat=True)):
            by = Principal(kind=ActorKind.USER, id=encode_user(fresh.pk), name=username, tenant_id=tenant_id)
            evidence.record(kind=Kind.PERSON_INVITED, subject=by.id, actor=by, data=Invitation(accepted=True))


@transaction.atomic
def reset_sign_in(*, username: str) -> str:
    """Take every way in from somebody who lost theirs, end their sessions, and return a link for a new password.

    Done by whoever runs the hub's host, at its command line.
    """
    user = get_user_model().objects.select_for_update().get(username=username, is_active=True)
    Authenticator.objects.filter(user=user).delete()
    user.password = RESET + get_random_string(40)
    user.last_login = None
    user.save(update_fields=["password", "last_login"])
    for tenant_id in set(Membership.objects.filter(user=user).values_list("tenant_id", flat=True)):
        evidence.record(
            kind=Kind.PERSON_INVITED,
            subject=encode_user(user.pk),
            actor=Principal.system("operator", tenant_id=tenant_id),
            data=Invitation(reset=True),
        )
    return link_for(user)
