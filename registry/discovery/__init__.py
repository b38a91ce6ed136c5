"""Discovery: which tools callers and their models are shown, and how a search ranks them."""
