"""Tools that mean harm. Each function is one attack and returns what it got, as a list: empty means that it got nothing."""
