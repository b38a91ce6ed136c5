"""Sinks: how other systems of an organisation get what happened, as it happens, in a form that they know.

Each fact in a tenant's log becomes one CloudEvents 1.0 event (:mod:`~evidence.sinks.cloud_events`). A sink reads the log in the order
of its leaves and remembers one number, so nothing is left out, and what is sent again after a failure is known by its id.
"""
