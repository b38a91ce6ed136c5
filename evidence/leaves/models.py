"""Leaves of models: the providers that a tenant connects, and their models."""

from __future__ import annotations

from typing import Annotated

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, Written, leaf_data


@leaf_data(Kind.MODEL_PROVIDER_CONNECTED, Kind.MODEL_PROVIDER_CHANGED)
class ConnectedProvider(LeafData):
    """How a provider is reached, after it."""

    kind: Annotated[str, "which kind of provider"]
    host: Annotated[str, "of its address; empty: it has none"]
    secret: Annotated[str, "name of the secret that holds its key; empty: it needs none"]
    data_classes: Annotated[list[str], "which classes of data it may be sent"]
    settings: Annotated[str, "digest of times, retries and options"]
    reason: Written


@leaf_data(Kind.MODEL_PROVIDER_PAUSED, Kind.MODEL_PROVIDER_ENABLED, Kind.MODEL_PROVIDER_REMOVED)
class MovedProvider(LeafData):
    """That the calls of all its models are stopped, go on, or end."""

    models: Annotated[list[str], "models that it is about, by name"]
    reason: Written


@leaf_data(Kind.MODEL_PREFIX_SET)
class ModelPrefixSet(LeafData):
    """What is said to every model before all else, from now on."""

    version: Annotated[int, "counted from 1; the Begin of each call of a model has the one that it was sent"]
    digest: Annotated[str, "of its text"]
    characters: Annotated[int, "how long it is; 0: there is none"]
    reason: Written


@leaf_data(Kind.MODEL_CONNECTED, Kind.MODEL_CHANGED)
class ConnectedModel(LeafData):
    """Which model of a provider a name means from now on; nobody reviews it but the person who says so."""

    version: Annotated[str, "number of its manifest"]
    id: Annotated[str, "of that version"]
    provider: Annotated[str, "the tenant's name of the provider"]
    model: Annotated[str, "the provider's own name of the model"]
    operation: Annotated[str, "`chat`, `embed` or `rerank`"]
    manifest_digest: Annotated[str, "of the manifest"]
    reason: Written


@leaf_data(Kind.MODEL_REMOVED)
class RemovedModel(LeafData):
    """That a name means no model any more."""

    reason: Written


@leaf_data(Kind.MODEL_PRICES_SET)
class SetModelPrices(LeafData):
    """What models cost from now on, whole."""

    number: Annotated[int, "of this version of the tenant's prices"]
    version: Annotated[
        str, "what calls say that they were priced by: the prices, the rates and the package behind them"
    ]
    document: Annotated[str, "digest of prices and rates"]
    prices: Annotated[int, "how many prices"]
    currency: Annotated[str, "of budgets"]
    reason: Written


@leaf_data(Kind.MODEL_METER_DIFFERED)
class DifferentMeter(LeafData):
    """That a provider reports more or less of a model than was to be expected from what the hub counts."""

    provider: Annotated[str, "its name in the tenant"]
    name: Annotated[str, "the provider's own name of the model"]
    figure: Annotated[str, "`input` or `output`: tokens; `money`: what it says that it charges"]
    difference_per_mille: Annotated[int, "of what was to be expected; below 0: less is reported"]
    calls: Annotated[int, "how many were compared with earlier ones"]
    reported: Annotated[int, "the sum of what was reported for them"]
    counted: Annotated[int, "the sum of what the hub counted"]
