"""Object permissions: what a person may do with a single tool or agent."""
