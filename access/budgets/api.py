"""Budgets over REST: read, set, raised once and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.budgets import services
from access.budgets.selectors import STATES, BudgetStatus, filter_by_state, load_budget_statuses
from access.models import Budget, BudgetScope, Dimension
from kernel.database.connections import database_time
from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import decode, encode
from kernel.problems import NotFound

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

    from access.models import BudgetWindow

SETTABLE = [each for each in BudgetScope.values if each != BudgetScope.MANIFEST]
SCOPE = {"GET": "budgets:read", "POST": "budgets:manage"}


class CurrentSerializer(serializers.Serializer[Any]):
    """The window that runs now."""

    limit = serializers.IntegerField(help_text="With what was added to this window once.")
    used = serializers.IntegerField(help_text="By calls that have ended.")
    reserved = serializers.IntegerField(help_text="Reserved by waiting and running calls.")
    remaining = serializers.IntegerField()
    resets_at = serializers.DateTimeField(allow_null=True)
    forecast = serializers.IntegerField(allow_null=True, help_text="What the window will have used at its end.")
    full_at = serializers.DateTimeField(allow_null=True, help_text="When nothing is left, if it goes on like this.")


class BudgetSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    scope = serializers.ChoiceField(BudgetScope.choices)
    agent = serializers.CharField(allow_null=True)
    tool = serializers.CharField(allow_null=True)
    grant = serializers.CharField(allow_null=True)
    dimension = serializers.ChoiceField(Dimension.choices)
    amount = serializers.IntegerField(help_text="Calls, bytes, milliseconds, tokens, or millionths of the currency.")
    window_s = serializers.IntegerField(help_text="0: calls at the same time have no window.")
    reason = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(["in_force", "ended"])
    set_by = serializers.CharField()
    set_at = serializers.DateTimeField()
    current = CurrentSerializer(allow_null=True, help_text="Null for rates, which no window counts, and when it ended.")


_SCOPED = ("agent", "tool", "grant")
_WINDOWS = [each for each in Dimension.values if each != Dimension.CONCURRENCY]


def _when(needed: str, **properties: Any) -> dict[str, Any]:
    return {"required": needed.split(), "properties": properties}


class SetSerializer(StrictSerializer):
    never = (
        *(_when("scope", scope={"enum": [each]}, **{each: {"pattern": r"^\s*$"}}) for each in _SCOPED),
        *(
            _when(
                f"scope {each}",
                scope={"enum": [other for other in SETTABLE if other != each]},
                **{each: {"pattern": r"\S"}},
            )
            for each in _SCOPED
        ),
        _when("window_s", dimension={"enum": [str(Dimension.CONCURRENCY)]}, window_s={"type": "integer", "minimum": 1}),
        _when("window_s", dimension={"enum": _WINDOWS}, window_s={"enum": [0]}),
        _when("amount", dimension={"enum": [str(Dimension.RATE)]}, amount={"enum": [0]}),
        _when("amount", dimension={"enum": [str(Dimension.RATE)]}, amount={"minimum": services.MAX_RATE + 1}),
    )
    scope = serializers.ChoiceField(SETTABLE, help_text="For whom it is; name it in the field of the same name.")
    agent = serializers.CharField(max_length=40, required=False, default="", allow_blank=True, help_text="agt_…")
    tool = serializers.CharField(
        max_length=services.MAX_TOOL, required=False, default="", allow_blank=True, help_text="A tool's id."
    )
    grant = serializers.CharField(max_length=40, required=False, default="", allow_blank=True, help_text="grt_…")
    dimension = serializers.ChoiceField(Dimension.choices)
    amount = serializers.IntegerField(
        min_value=0,
        max_value=services.MAX_AMOUNT,
        help_text="Calls, bytes, milliseconds, tokens, or millionths of the currency.",
    )
    window_s = serializers.IntegerField(
        required=False,
        default=None,
        allow_null=True,
        min_value=0,
        max_value=services.MAX_WINDOW_S,
        help_text="Seconds; a day unless given, and none for concurrency.",
    )
    reason = serializers.CharField(max_length=500, required=False, default="", allow_blank=True)


class RaiseSerializer(StrictSerializer):
    by_amount = serializers.IntegerField(min_value=1, max_value=services.MAX_AMOUNT)
    reason = serializers.CharField(max_length=500)


ONE, MANY = (
    build_envelope_serializer("BudgetEnvelope", BudgetSerializer()),
    build_page_serializer("BudgetPage", "budgets", BudgetSerializer),
)


def budget_json(budget_status: BudgetStatus) -> dict[str, Any]:
    budget, line, ahead = budget_status.budget, budget_status.line, budget_status.forecast
    current = None
    if not (budget.ended_at or line.is_rate):
        current = {
            "limit": line.amount,
            "used": line.used,
            "reserved": line.reserved,
            "remaining": line.remaining,
            "resets_at": line.resets_at.isoformat() if line.resets_at else None,
            "forecast": ahead.by_end if ahead else None,
            "full_at": ahead.full_at.isoformat() if ahead and ahead.full_at else None,
        }
    return {
        "id": budget.wire_id,
        "scope": budget.scope,
        "agent": encode("agt", budget.agent_id) if budget.agent_id else None,
        "tool": budget.tool or None,
        "grant": encode("grt", budget.grant_id) if budget.grant_id else None,
        "dimension": budget.dimension,
        "amount": budget.amount,
        "window_s": budget.window_s,
        "reason": budget.reason,
        "state": "ended" if budget.ended_at else "in_force",
        "set_by": budget.set_by,
        "set_at": budget.set_at.isoformat(),
        "current": current,
    }


def show_budget(budget: Budget) -> dict[str, Any]:
    [budget_status] = load_budget_statuses([budget], database_time())
    return budget_json(budget_status)


def _answer(budget: Budget, *, status: int = 200) -> Response:
    return Response(ResponseEnvelope(data=show_budget(budget)).to_json(), status=status)


def _id(prefix: str, text: str, what: str) -> UUID | None:
    try:
        return decode(prefix, text) if text else None
    except ValueError as error:
        raise NotFound(f"There is no {what} with this id.") from error


class BudgetQuerySerializer(PageSerializer):
    state = serializers.ChoiceField(list(STATES), required=False, help_text="Without: all that are in force.")
    scope = serializers.ChoiceField(BudgetScope.values, required=False)
    dimension = serializers.ChoiceField(Dimension.values, required=False)


class BudgetListView(Endpoint):
    """The tenant's budgets with what is used of them; setting one."""

    required_scope = SCOPE
    query = BudgetQuerySerializer
    cursor = "bud"

    @extend_schema(
        operation_id="list_budgets",
        responses={200: MANY},
    )
    def get(self, request: Request) -> Response:
        now = database_time()
        rows = filter_by_state(Budget.objects.visible_to(get_caller(request)), self.asked.get("state", ""), now)
        rows = rows.filter(**{name: self.asked[name] for name in ("scope", "dimension") if name in self.asked})
        page = self.page_of(rows.select_related("agent"))
        data = {
            "budgets": [budget_json(each) for each in load_budget_statuses(page.rows, now)],
            "next": page.next or None,
        }
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(
        operation_id="set_budget",
        description="Setting what is set already changes its amount; what was used stays used.",
        request=SetSerializer,
        responses={201: ONE},
    )
    def post(self, request: Request) -> Response:
        data = read_body(request, SetSerializer)
        agent_id = _id("agt", data.pop("agent"), "agent")
        grant_id = _id("grt", data.pop("grant"), "grant")
        if data["window_s"] is None:
            data["window_s"] = 0 if data["dimension"] == Dimension.CONCURRENCY else services.DAY_S
        budget = services.set_budget(agent_id=agent_id, grant_id=grant_id, by=get_caller(request), **data)
        return _answer(budget, status=201)


class BudgetView(Endpoint):
    """One budget, with what is used of it."""

    required_scope = "budgets:read"

    @extend_schema(operation_id="read_budget", responses={200: ONE})
    def get(self, request: Request, budget_id: UUID) -> Response:
        return _answer(Budget.objects.visible_to(get_caller(request)).select_related("agent").get(pk=budget_id))


def show_raised(window: BudgetWindow) -> dict[str, Any]:
    return show_budget(window.budget)


BudgetRaiseView = ActionTable(__name__, "budgets:manage", ONE, show_raised).build_view(
    "raise_budget_once",
    services.raise_budget_once,
    "Allow more in the window that runs now, and in no other.",
    body=RaiseSerializer,
)
BudgetEndView = ActionTable(__name__, "budgets:manage", ONE, show_budget).build_view(
    "end_budget", services.end_budget, "Limit nothing by it any more."
)
