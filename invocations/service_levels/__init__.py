"""Service levels: objectives, the health of recent calls, and errors nobody had mapped."""
