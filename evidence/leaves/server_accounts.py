"""Leaves of server accounts: by whose account which server elsewhere is asked, and how that ended."""

from __future__ import annotations

from typing import Annotated

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, leaf_data


@leaf_data(Kind.ACCOUNT_SERVER_MET, Kind.ACCOUNT_SERVER_ENTERED)
class AccountServerTerms(LeafData):
    """Which authorization server gives tokens for a server elsewhere, and as which client the hub asks it; never its secret."""

    resource: Annotated[str, "address of the server"]
    issuer: Annotated[str, "of the tokens; empty: not known yet"]
    client: Annotated[str, "id of the hub there; empty: none yet"]
    how: Annotated[str, "`document` (at the address that is the id), `registered` (by the hub) or `entered` (by hand)"]


@leaf_data(Kind.SERVER_ACCOUNT_REQUESTED, Kind.SERVER_ACCOUNT_ALLOWED)
class ServerAccountUse(LeafData):
    """That a person is asked for their account, or lets an agent use it on its own word that a call is for them."""

    member: Annotated[str, "whose account it is"]
    resource: Annotated[str, "address of the server"]
    agents: Annotated[list[str], "that ask, or are let"]


@leaf_data(Kind.SERVER_ACCOUNT_CONNECTED)
class ConnectedServerAccount(LeafData):
    """That the hub holds tokens of a person's account; never a token."""

    member: Annotated[str, "whose account it is"]
    resource: Annotated[str, "address of the server"]
    issuer: Annotated[str, "that has given the tokens"]
    client: Annotated[str, "id of the hub there"]
    scopes: Annotated[list[str], "what they are good for"]
    agents: Annotated[list[str], "that may use it on their own word that a call is for the person"]
    refreshable: Annotated[bool, "whether newer tokens can be had without the person"]


@leaf_data(Kind.SERVER_ACCOUNT_REFRESHED)
class RefreshedServerAccount(LeafData):
    """That newer tokens were had."""

    number: Annotated[int, "of the tokens, from 1"]
    rotated: Annotated[bool, "whether the refresh token is another, too"]


@leaf_data(Kind.SERVER_ACCOUNT_ENDED)
class EndedServerAccount(LeafData):
    """That the hub holds no tokens of the account any more, or that the person does not connect it."""

    member: Annotated[str, "whose account it is"]
    resource: Annotated[str, "address of the server"]
    why: Annotated[
        str,
        "`disconnected` or `declined` by the person, `refused` (the authorization server gives no newer tokens), `ran_out` (it never "
        "gave any to fetch newer ones with), `replaced` (connected anew), `revoked` (by an operator), `left` (the person has left the "
        "tenant) or `erased`",
    ]
