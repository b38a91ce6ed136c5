"""Consent signals: who hears of a decision in the transaction in which it is made.

Calls that wait for a consent are rows of an app that this one does not know. Its receiver runs inside the decision: what it
writes commits with it, and what it raises undoes it.
"""

from django.dispatch import Signal

# Sent with ``consent`` (as it is now) and ``by``, when it was approved or denied, or ended without a decision.
consent_decided = Signal()

# Sent with ``consent`` before it is approved; a receiver answers with the id of the dry run that has failed, if there is one.
consent_approving = Signal()
