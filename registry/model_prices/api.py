"""Model prices over REST: what the tenant's models cost, and in which currency its budgets are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.authentication.bearer import ApiKeyAuthentication
from access.authentication.sessions import PersonAuthentication
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PatternField,
    QuerySerializer,
    StatedReasonSerializer,
    StrictSerializer,
    build_envelope_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from llm.prices import MAX_PRICES, MAX_RATES, PriceDocument
from registry.model_prices.price_tables import get_price_table
from registry.model_prices.services import find_prices_in_force, find_prices_version, set_model_prices
from registry.model_providers.rows import SEGMENT

if TYPE_CHECKING:
    from rest_framework.request import Request

    from registry.models import ModelPrices

PRICE = "In US dollars, as a text."
AMOUNT = r"^[0-9]{1,12}(\.[0-9]{1,12})?$"
RATE = r"^[1-9][0-9]{0,11}(\.[0-9]{1,12})?$|^0\.[0-9]{0,11}[1-9]$"
OTHER_CURRENCY = "^([A-TV-Z][A-Z]{2}|U[A-RT-Z][A-Z]|US[A-CE-Z])$"
EXAMPLE = OpenApiExample(
    "A price of one's own, and budgets in euros",
    value={
        "currency": "EUR",
        "rates": [{"effective_from": "2026-12-01", "rate": "0.92"}],
        "prices": [
            {
                "provider": "openai",
                "model": "gpt-4o",
                "effective_from": "2026-12-01",
                "input": "2.10",
                "cached": "1.05",
                "output": "8.40",
            }
        ],
        "reason": "the contract of December",
    },
    request_only=True,
)


class PriceSerializer(serializers.Serializer[Any]):
    """What one model costs from a day on: tokens by the million, all else by the piece."""

    provider = serializers.CharField(help_text="The tenant's name of the provider.")
    model = serializers.CharField(help_text="The provider's own name.")
    effective_from = serializers.DateField()
    input = serializers.CharField(help_text=PRICE)
    output = serializers.CharField(required=False, help_text=PRICE)
    cached = serializers.CharField(
        required=False, help_text=f"Of input that the provider had read before. {PRICE} Left out: as other input."
    )
    image = serializers.CharField(required=False, help_text=PRICE)
    audio_second = serializers.CharField(required=False, help_text=PRICE)
    request = serializers.CharField(required=False, help_text=PRICE)


class ExchangeRateSerializer(serializers.Serializer[Any]):
    effective_from = serializers.DateField()
    rate = serializers.CharField(help_text="What one US dollar costs in the currency, as a text.")


class ModelPricesSerializer(serializers.Serializer[Any]):
    """One version of the tenant's prices."""

    number = serializers.IntegerField(help_text="1, and one more with each change; 0: nobody has set any.")
    version = serializers.CharField(help_text="What answers and facts name: exactly these prices, rates and package.")
    currency = serializers.CharField(help_text="Of budgets.")
    rates = ExchangeRateSerializer(many=True)
    prices = PriceSerializer(many=True)
    reason = serializers.CharField(allow_null=True)
    set_by = serializers.CharField(allow_null=True)
    set_at = serializers.DateTimeField(allow_null=True)


class SetPricesSerializer(StatedReasonSerializer):
    """What is left out is no longer set."""

    currency = serializers.CharField(max_length=3, required=False, help_text="Of budgets: three letters.")
    rates = serializers.ListField(
        child=serializers.DictField(), required=False, help_text="What one US dollar costs in it, from which day on."
    )
    prices = serializers.ListField(
        child=serializers.DictField(), required=False, help_text="Of models, each from a day on, in US dollars."
    )


class NewPriceSerializer(StrictSerializer):
    """What one model costs from a day on."""

    provider = PatternField(f"^{SEGMENT.pattern}$", wanted="the tenant's name of a provider")
    model = serializers.CharField(max_length=200, help_text="The provider's own name.")
    effective_from = serializers.DateField()
    input = PatternField(AMOUNT, wanted=PRICE, help_text=PRICE)
    output = PatternField(AMOUNT, wanted=PRICE, required=False)
    cached = PatternField(AMOUNT, wanted=PRICE, required=False, help_text="Left out: as other input.")
    image = PatternField(AMOUNT, wanted=PRICE, required=False)
    audio_second = PatternField(AMOUNT, wanted=PRICE, required=False)
    request = PatternField(AMOUNT, wanted=PRICE, required=False)


class NewRateSerializer(StrictSerializer):
    effective_from = serializers.DateField()
    rate = PatternField(RATE, wanted="a number greater than 0, as a text")


class SetPriceRowsSerializer(SetPricesSerializer):
    """What is left out is no longer set."""

    never = (
        {"required": ["rates"], "properties": {"currency": {"enum": ["USD"]}, "rates": {"minItems": 1}}},
        {"required": ["currency"], "properties": {"currency": {"pattern": OTHER_CURRENCY}, "rates": {"maxItems": 0}}},
    )
    currency = PatternField("^[A-Z]{3}$", wanted="three capital letters, such as EUR", required=False)
    rates = NewRateSerializer(many=True, required=False, max_length=MAX_RATES)  # type: ignore[call-arg, assignment]
    prices = NewPriceSerializer(many=True, required=False, max_length=MAX_PRICES)  # type: ignore[call-arg, assignment]


class PricesQuerySerializer(QuerySerializer):
    number = serializers.IntegerField(required=False, min_value=1, help_text="An earlier version.")


ONE = build_envelope_serializer("ModelPricesEnvelope", ModelPricesSerializer())


def show_prices(row: ModelPrices | None) -> dict[str, Any]:
    document = row.document if row is not None else PriceDocument().to_json()
    return {
        "number": row.number if row else 0,
        "version": get_price_table(row).version,
        **document,
        "reason": row.reason if row else None,
        "set_by": row.set_by if row else None,
        "set_at": row.set_at.isoformat() if row else None,
    }


class ModelPricesView(Endpoint):
    """What the tenant says its models cost. Where it says nothing, the prices of the package genai-prices count."""

    authentication_classes = [PersonAuthentication, ApiKeyAuthentication]
    required_scope = "models:manage"
    required_permission = "models.manage"
    query = PricesQuerySerializer
    conditional = True

    @extend_schema(operation_id="read_model_prices", responses={200: ONE})
    def get(self, request: Request) -> Response:
        tenant_id, number = get_caller(request).tenant_id, self.asked.get("number")
        row = find_prices_in_force(tenant_id) if number is None else find_prices_version(number, tenant_id=tenant_id)
        return Response(ResponseEnvelope(data=show_prices(row)).to_json())

    @extend_schema(
        operation_id="set_model_prices", request=SetPriceRowsSerializer, responses={200: ONE}, examples=[EXAMPLE]
    )
    def put(self, request: Request) -> Response:
        said = read_body(request, SetPricesSerializer)
        reason = said.pop("reason")
        row = set_model_prices(document=said, reason=reason, by=get_caller(request))
        return Response(ResponseEnvelope(data=show_prices(row)).to_json())
