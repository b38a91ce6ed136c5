from unitools import Universe

u = Universe("acme.quotes", version="1.0.0")


@u.tool(tags=["finance"], side_effect="Read", ttl_seconds=60)
def get_quote(symbol: str, currency: str = "EUR") -> dict[str, str]:
    """The latest price of a share."""
    return {"symbol": symbol, "price": "12.50", "currency": currency}
