"""Call tokens: the token of the person whom a call is for, where a server elsewhere is asked as that person.

It is fetched by the worker right before the run, given to the gate and to nobody else, and named in evidence by its account.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.db import InterfaceError, OperationalError

from access.server_accounts.renewals import fetch_access_token, note_token_refused
from invocations.end.egress_report import find_exchange
from invocations.run.lease_heartbeat import keep_lease
from invocations.sandbox.problems import ServiceDenied
from kernel.problems import Internal
from unitools.openapi.account_security import CREDENTIAL, NAME

if TYPE_CHECKING:
    from invocations.end.endings import Ending
    from invocations.models import Invocation
    from unitools.manifest import Manifest

log = logging.getLogger(__name__)
NOT_TAKEN = 401


def fetch_call_token(invocation: Invocation, manifest: Manifest) -> dict[str, str]:
    """By the name under which the gate looks for it; empty where the server is asked as the tenant, or as nobody."""
    if manifest.account is None:
        return {}
    if invocation.account_id is None:  # the call was accepted for a version that asks for none
        raise Internal("The call has no account to go out with.")
    with keep_lease(invocation) as watch:  # whoever gives newer tokens may take longer to answer than a lease lasts
        token = fetch_access_token(invocation.account_id, check_wanted=watch.check_wanted)
        watch.check_wanted()
    return {NAME: token}


def add_credential(asked: dict[str, Any] | None, manifest: Manifest) -> dict[str, Any] | None:
    """The server or the operation (``asked``) as the gate is told of it."""
    return asked if asked is None or manifest.account is None else asked | {"credentials": [CREDENTIAL]}


def follow_token(invocation: Invocation, ending: Ending) -> None:
    """After the call's end: a token that the server did not take is not used again. The call has its End in any case."""
    problem, since = ending.problem, invocation.started_at
    if invocation.account_id is None or since is None or not isinstance(problem, ServiceDenied):
        return
    if problem.details.get("status") != NOT_TAKEN:
        return
    try:
        note_token_refused(invocation.account_id, since=since, is_certain=_is_token_refused(invocation, ending))
    except (OperationalError, InterfaceError) as error:
        log.warning("That the server of %s did not take a token was not noted: %s", invocation.tool, error)
    except Exception:  # the call has its End, and the worker goes on
        log.exception("That the server of %s did not take a token was not noted", invocation.tool)


def _is_token_refused(invocation: Invocation, ending: Ending) -> bool:
    """A server of MCP answers 401 to a token that is not good, and to nothing else; any other service has to say so."""
    if invocation.version is not None and invocation.version.view.remote is not None:
        return True
    exchange = find_exchange(ending.outcome) if ending.outcome is not None else None
    return exchange is not None and exchange.service is not None and exchange.service.refused_token
