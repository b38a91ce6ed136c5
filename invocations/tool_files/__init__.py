"""Tool files: what the tools of a group keep from call to call."""
