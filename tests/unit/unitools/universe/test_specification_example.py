"""The specification's example: does the usage example of the source specification (§5) run as it is written?"""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest

from tests.support.sdk_calls import asked, run
from unitools import Injected, Prefix, Status, Tag, ToolResult, Universe

checked: list[str] = []
printed: list[str] = []


def print(text: str) -> None:
    printed.append(text)


async def double_check_mw(call: Any, next_h: Any) -> Any:
    checked.append(call.name)
    return await next_h(call)


u = Universe()


# 全局中间件：非核心，挂了不影响业务
async def metrics_mw(call: Any, next_h: Any) -> Any:
    print(f"Start: {call.name}")
    res = await next_h(call)
    print(f"End: {call.name}")
    return res


u.use(metrics_mw, critical=False)


# 规则中间件：仅针对 Finance 标签，核心
async def audit_mw(call: Any, next_h: Any) -> Any:
    if "user_id" not in call.context:
        return ToolResult.error("Unauthorized")  # 阻断执行
    return await next_h(call)


u.use(audit_mw, scope=Tag("finance"), critical=True)


@u.bind(prefix="Bank__", tags=["finance"])
class BankService:
    def __init__(self) -> None:
        self.db = {"u1": 1000}

    # user 参数对 LLM 不可见，运行时自动从 context['uid'] 获取
    async def get_balance(self, user: Annotated[str, Injected("uid")]):  # type: ignore[no-untyped-def]
        """查询余额"""
        return self.db.get(user, 0)

    # 局部中间件：特定工具的特殊逻辑
    @u.tool(middlewares=[double_check_mw])
    async def transfer(self, to: str, amount: float):  # type: ignore[no-untyped-def]
        """转账"""
        return "ok"


scope = Tag("finance") & ~Tag("internal")
RESPONSE = asked(("Bank__get_balance", {}), ("Bank__transfer", {"to": "u2", "amount": 5}))


@pytest.mark.req("UNI-4")
def test_the_tools_are_rendered_for_the_model() -> None:
    tools_schema = u[scope].render("gpt-4o")

    assert [each["function"]["name"] for each in tools_schema.payload] == ["Bank__get_balance", "Bank__transfer"]
    assert [each["function"]["description"] for each in tools_schema.payload] == ["查询余额", "转账"]
    assert "user" not in json.dumps(tools_schema.payload)
    assert u[Prefix("Bank__")] == u["finance"] == u[scope]


@pytest.mark.req("UNI-5")
def test_without_a_user_the_critical_layer_stops_both_calls() -> None:
    checked.clear()
    results = run(lambda: u.dispatch(RESPONSE, context={"uid": "u1"}, tool_filter=scope))

    assert [(each.message, each.executed) for each in results] == [("Unauthorized", False)] * 2
    assert checked == []


@pytest.mark.req("UNI-1")
@pytest.mark.req("UNI-5")
@pytest.mark.req("UNI-6")
def test_with_a_user_both_calls_run_through_their_layers() -> None:
    checked.clear()
    printed.clear()
    context_data = {"uid": "u1", "user_id": "u1"}

    results = run(lambda: u.dispatch(RESPONSE, context=context_data, tool_filter=scope))

    assert isinstance(results, list)
    assert [(each.status, each.value) for each in results] == [(Status.OK, 1000), (Status.OK, "ok")]
    assert checked == ["Bank__transfer"]
    assert sorted(printed) == [
        f"{word}: Bank__{name}" for word in ("End", "Start") for name in ("get_balance", "transfer")
    ]


@pytest.mark.req("UNI-5")
def test_the_filter_is_a_second_wall() -> None:
    results = run(lambda: u.dispatch(RESPONSE, context={"user_id": "u1"}, tool_filter=Tag("internal")))

    assert [(each.status, each.message) for each in results] == [(Status.DENIED, "Permission Denied")] * 2
