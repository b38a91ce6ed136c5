"""Decision, the first stage of a call: whether it may be made, and within what."""
