"""Call hours: how many calls of each hour ended in which way, so that a page need not count a million of them."""
