"""Log: how facts get into a log that nobody can rewrite unseen.

A fact's pending row is written in its own transaction. The sealer (:mod:`~evidence.log.sealer`) takes what is pending, appends it to
the RFC 6962 tree of its tenant, and publishes a signed checkpoint; :mod:`~evidence.log.reader` is how everybody else reads.
"""
