"""Model calls: calls of models, which go the way of every call, and which no worker and no sandbox runs."""
