"""Problems: what can be wrong with evidence.

`InvalidEvidence` and its kinds. Each is raised with a sentence that says what is wrong and where::

    Refused
    ├── Malformed        the bytes are not what the format says
    ├── InvalidProof     hashes do not lead to the root
    ├── InvalidSignature a known key did not sign this
    └── UnknownSigner    no key that the verifier trusts signed this

`CannotTell` is none of them: nothing is wrong, but the question cannot be answered with what is there.
"""

from __future__ import annotations


class InvalidEvidence(ValueError):
    """The evidence does not show what it claims."""


class MalformedEvidence(InvalidEvidence):
    """The bytes are not what their format says."""


class InvalidProof(InvalidEvidence):
    """The hashes of a proof do not lead to the root."""


class InvalidSignature(InvalidEvidence):
    """A signature by a known key does not fit the text."""


class UnknownSigner(InvalidEvidence):
    """Nobody whom the verifier trusts has signed."""


class CannotTell(Exception):
    """What was asked cannot be answered with this evidence."""
