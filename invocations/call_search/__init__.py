"""Call search: the list of calls, by the language in which facts are searched."""
