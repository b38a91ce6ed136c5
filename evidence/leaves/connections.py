"""Leaves of connections: which programs act as agents, who has let them, and how that ended."""

from __future__ import annotations

from typing import Annotated

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, SearchTerm, Written, leaf_data


@leaf_data(Kind.CLIENT_MET)
class MetClient(LeafData):
    """A program that nobody of the tenant has let in before, or that says something else of itself now."""

    client: Annotated[str, "its id"]
    how: Annotated[str, "`document` (at the address that is its id), `registered` (by itself) or `entered` (by hand)"]
    host: Annotated[str, "that vouches for it; empty: nobody does"]
    digest: Annotated[str, "of all that it says of itself"]


@leaf_data(Kind.CLIENT_ENTERED)
class EnteredClientTerms(LeafData):
    """A program that somebody of the tenant has entered by hand; never its secret."""

    client: Annotated[str, "its id"]
    name: Annotated[str, "as people of the tenant know it"]
    redirect_uris: Annotated[list[str], "where answers to it may go"]
    confidential: Annotated[bool, "whether it has a secret"]


@leaf_data(Kind.CLIENT_REMOVED)
class RemovedClient(LeafData):
    """That a program which was entered by hand is known no more."""

    client: Annotated[str, "its id"]
    connections: Annotated[int, "how many ended with it"]
    reason: Written


@leaf_data(Kind.CONNECTION_OPENED)
class OpenedConnection(LeafData):
    """That a person has let a program act as an agent, and how far."""

    agent: Annotated[str, "as which it acts", SearchTerm("agent")]
    member: Annotated[str, "who has let it"]
    client: Annotated[str, "id of the program"]
    redirect_host: Annotated[str, "where the answer went; empty: no browser was sent"]
    resource: Annotated[str, "what its tokens are for"]
    scopes: Annotated[list[str], "what it may do"]
    tools: Annotated[list[str] | None, "with these tools only"] = None
    until: Annotated[str, "when it ends at the latest"]
    once: Annotated[bool, "whether it ends with its first token"]
    issuer: Annotated[str | None, "id of the identity provider that has vouched for the member, who was not asked"] = (
        None
    )


@leaf_data(Kind.ASSERTION_RULE_SET, Kind.ASSERTION_RULE_ENDED)
class AssertionRuleTerms(LeafData):
    """What an identity provider may vouch for without a page, or no longer may."""

    agent: Annotated[str, "as which programs then act", SearchTerm("agent")]
    scopes: Annotated[list[str], "at most these"]
    tools: Annotated[list[str] | None, "with these tools only"] = None
    token_minutes: Annotated[int, "so long a token is good"]
    connections: Annotated[int, "how many ended with what was in force before"]


@leaf_data(Kind.CONNECTION_STEPPED_UP)
class SteppedUpConnection(LeafData):
    """That a person has let a program do more than in a connection of theirs that it has already."""

    agent: Annotated[str, "as which it acts", SearchTerm("agent")]
    client: Annotated[str, "id of the program"]
    before: Annotated[list[str], "scopes that it had"]
    added: Annotated[list[str], "scopes that came to them"]


@leaf_data(Kind.CONNECTION_RULE_SET)
class ConnectionRuleTerms(LeafData):
    """How far the people of the tenant may go who let programs act as agents; where it says nothing, as far as the hub."""

    days: Annotated[int | None, "a connection ends after so many"] = None
    idle_days: Annotated[int | None, "and after so many in which nothing was fetched for it"] = None
    token_minutes: Annotated[int | None, "so long an access token is good"] = None
    sign_in_minutes: Annotated[
        int | None, "so long ago, at most, has a person signed in who lets programs use what changes things"
    ] = None


@leaf_data(Kind.CONNECTION_REFUSED)
class RefusedConnection(LeafData):
    """That a person has not let a program act as an agent."""

    member: Annotated[str, "who was asked"]
    client: Annotated[str, "id of the program"]
    redirect_host: Annotated[str, "where the answer went"]
    why: Annotated[str, "`declined` by the person, or `asked` somebody who may"]


@leaf_data(Kind.CONNECTION_REUSE_DETECTED)
class DetectedReuse(LeafData):
    """That something was shown a second time that is good for once: somebody else has it."""

    agent: Annotated[str, "as which the program acted", SearchTerm("agent")]
    what: Annotated[str, "`code` or `refresh_token`"]


@leaf_data(Kind.CONNECTION_ENDED)
class EndedConnection(LeafData):
    """That a program may not act as an agent any more."""

    agent: Annotated[str, "as which it acted", SearchTerm("agent")]
    client: Annotated[str, "id of the program"]
    why: Annotated[
        str,
        "`revoked` by a person, `client` (it gave its token back), `reuse`, `left` (its member has left the tenant), `removed` (its "
        "program was entered by hand, and is known no more) or `unvouched` (its "
        "identity provider may not vouch any more, or not so far)",
    ]
