"""Model meters: what providers report of their models, held against what the hub has counted itself."""
