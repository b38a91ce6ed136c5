"""Impact: what publishing a policy draft would change, exactly and for past calls."""
