"""Probe: which walls stand around a process in a box, by their effect.

This package is shipped into a box as a tool's package is, and uses the standard library only. ``box`` looks at what the
engine's container keeps from its first process, before any wall of the runner; ``tool`` is run as a tool and looks at what
is kept from one. Each look tries the thing and says what came of it: ``(holds, detail)``, where None is "cannot be told".
"""
