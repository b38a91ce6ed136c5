"""Server account signals: who hears that an account was connected, widened or ended, in the transaction in which that happens.

Calls that wait for an account are rows of an app that this one does not know.
"""

from django.dispatch import Signal

# Sent with ``account`` (as it is now) and ``by``; and ``replaced``, where it is in the place of one that was connected until now.
account_changed = Signal()
