"""Denial reasons: why an attempt to reach a host came to nothing."""

from __future__ import annotations

from enum import StrEnum


class DenialReason(StrEnum):
    """Never renamed: they are in evidence."""

    # The capabilities do not hold it. These are refusals in the sense of SANDBOX.CAPABILITY_BLOCKED.
    NOT_GRANTED = "not_granted"  # no rule names this host or address, with this scheme and port
    METHOD = "method_not_granted"
    METHODS_UNSEEN = "methods_unseen"  # the rule holds some methods of https only, which nobody can see from outside
    PRIVATE_ADDRESS = "private_address"  # the name or address leads into a network that nobody admitted
    OTHER_NAME = "other_server_name"  # TLS for another host than the one that was asked for
    NOT_TLS = "not_tls"
    NOT_THE_OPERATION = "not_the_operation"  # another request than the one operation of the service that was reviewed

    # How it was asked.
    BAD_TARGET = "bad_target"  # not a plain name or address: what could be read in two ways is not read at all
    MALFORMED = "malformed_request"
    TOO_LARGE = "header_too_large"
    TOO_SLOW = "too_slow"
    TOO_MANY = "too_many_connections"
    TOO_OFTEN = "too_many_attempts"

    # It was granted, and came to nothing or ended early.
    UNRESOLVED = "not_resolved"
    UNREACHABLE = "not_reachable"
    UNTRUSTED = "certificate_not_trusted"  # nobody vouches for who answers there; only the gate's own TLS sees it
    CUT_OFF = "answer_cut_off"  # the service hung up before its answer was whole
    BAD_ANSWER = "answer_not_understood"
    TOO_MUCH = "too_many_bytes"
    CALL_ENDED = "call_ended"  # before anything was decided


NOT_HELD = frozenset(
    {
        DenialReason.NOT_GRANTED,
        DenialReason.METHOD,
        DenialReason.METHODS_UNSEEN,
        DenialReason.PRIVATE_ADDRESS,
        DenialReason.OTHER_NAME,
        DenialReason.NOT_TLS,
        DenialReason.NOT_THE_OPERATION,
        DenialReason.BAD_TARGET,
    }
)
NOBODY_THERE = frozenset(  # the rules said yes
    {DenialReason.UNRESOLVED, DenialReason.UNREACHABLE, DenialReason.UNTRUSTED}
)


class EgressDenied(Exception):
    """This connection goes no further. ``asked``: what it asked for, where that could not be read."""

    def __init__(self, why: DenialReason, *, asked: str = "") -> None:
        super().__init__(why)
        self.why, self.asked = why, asked
