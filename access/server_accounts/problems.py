"""Problems of server accounts: why a call for a person does not go out as that person."""

from kernel.problems import PlatformCode, Problem, Retryable


class AccountRequired(Problem):
    """A person must connect their account at the server first."""

    reason, code, status = "ACCOUNT.REQUIRED", PlatformCode.NEEDS_USER_CONFIRMATION, 403
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The server is asked as the person whom the call is for, and they have not connected their account there, have disconnected "
        "it, or have not let this agent use it."
    )
    cure = "Show the person the address in `details.url`, where they connect it, and call again once they have."


class AccountPersonMissing(Problem):
    """The server is asked as a person, and this call is for nobody whom the hub knows."""

    reason, code, status = "ACCOUNT.PERSON_MISSING", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "The tool uses the account of the person whom a call is for. The call names nobody, or nobody who belongs to the tenant."
    cure = "Connect the program as the person, or say in the call for which person of the tenant it is (usr_…)."


class AccountOfAnother(Problem):
    """A program of one person may not call for another."""

    reason, code, status = "ACCOUNT.OF_ANOTHER", PlatformCode.FORBIDDEN, 403
    cause = "A person has let the program act as the agent, and the call, or the answer that it asks for again, is for somebody else."
    cure = "Call for the person who has connected the program, or have the other person connect theirs."


class AccountDeclined(Problem):
    """The person does not connect their account."""

    reason, code, status = "ACCOUNT.DECLINED", PlatformCode.FORBIDDEN, 403
    cause = "The call waited for the person's account at the server, and they said no."
    cure = "Do not send the same call again, unless the person asks for it."


class AccountUnavailable(Problem):
    """The authorization server of the person's account does not answer."""

    reason, code, status = "ACCOUNT.UNAVAILABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 30
    cause = "The tokens of the account have run out, and whoever gives newer ones could not be asked. Nothing was sent to the server."
    cure = "Try again after `retry_after_s` seconds. Operators: check that the hub reaches the authorization server."


class AccountServerUnfit(Problem):
    """The hub cannot connect accounts at this server."""

    reason, code, status = "ACCOUNT.SERVER_UNFIT", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.AFTER_ACTION
    cause = (
        "What the server or its authorization server says of itself is missing or contradicts itself, it offers no PKCE with S256, or "
        "the hub does not follow it there."
    )
    cure = "Operators: the detail says what is missing; ask who runs the server."


class AccountClientMissing(Problem):
    """The hub is nobody at this authorization server."""

    reason, code, status = "ACCOUNT.CLIENT_MISSING", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "The authorization server takes neither the hub's document as its client nor registrations of clients."
    cure = "Operators: register the hub there by hand, and enter the client's id and secret under Account servers."


class AuthorizationRefused(Problem):
    """The authorization did not lead to a connected account."""

    reason, code, status = "ACCOUNT.AUTHORIZATION_REFUSED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The answer of the authorization server says no, belongs to nothing that this browser has begun, was used already, comes from "
        "another server than the one that was asked, or its code was not taken."
    )
    cure = "Begin again from the page of the account."
