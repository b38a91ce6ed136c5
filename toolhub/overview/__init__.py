"""Overview: the first page of the console, what needs a person, how calls go, what is stopped."""
