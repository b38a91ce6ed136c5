"""Data classes: which kinds of data may be sent to whom that answers models.

A provider, and each model of it, names the classes that it may be sent; what is of no class may be sent to all. A class is a word of
manifests: personal, payment, health, location, credentials, or one of the tenant's own. What a detector finds is of one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PERSONAL, PAYMENT, CREDENTIALS = "personal", "payment", "credentials"
# Of what a detector finds; of one that is not named here: personal.
_CLASSES = {"secret": CREDENTIALS, "iban": PAYMENT, "card": PAYMENT}


class Recipient(Protocol):
    """A provider's row, or the manifest of one of its models."""

    @property
    def data_classes(self) -> Sequence[str]: ...


def find_data_class(detector: str) -> str:
    """The class of what a detector of access.redaction finds."""
    return _CLASSES.get(detector, PERSONAL)


def list_unsendable(classes: Iterable[str], provider: Recipient) -> list[str]:
    """Those of the classes that the provider may not be sent, by name."""
    return sorted(set(classes) - set(provider.data_classes))
