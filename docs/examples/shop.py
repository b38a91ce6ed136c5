import os
from dataclasses import dataclass

from unitools.hub import HubClient


@dataclass
class Quote:
    name: str
    total: str
    currency: str


with HubClient("http://127.0.0.1:8000", os.environ["KEY"], agent="shopping-assistant") as hub:
    wanted = {"sku": "LAPTOP-14", "quantity": 2, "currency": "EUR"}
    quote = hub.invoke("commerce.pricing.get_realtime_quote", wanted, into=Quote)
    print(quote.data.total, quote.data.currency, quote.sources)
