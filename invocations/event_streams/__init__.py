"""Event streams: a call followed by server-sent events while it waits and runs."""
