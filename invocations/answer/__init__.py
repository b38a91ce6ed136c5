"""Answer, the last stage of a call: what its caller gets, and how a caller who waits learns of it."""
