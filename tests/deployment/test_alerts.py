"""Alerts: do they fire when they should, name reasons that there are, and lead to a page that says what to do?"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernel.problems import collect_problem_classes
from scripts.provision import peers

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "packaging/chart/observability/alerts.yml"
CASES = Path(__file__).with_name("alerts_test.yml")


def load_rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [peers.ensure_promtool(), *arguments], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.req("OPS-3")
def test_the_alerts_fire_when_they_should_and_not_otherwise() -> None:
    checked, tested = promtool("check", "rules", RULES), promtool("test", "rules", CASES)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.req("OPS-3")
def test_there_is_a_case_in_which_each_alert_fires() -> None:
    fired = set(re.findall(r'alertname="(\w+)"', CASES.read_text()))

    assert fired == {rule["alert"] for rule in load_rules()}
    assert len(fired) == 8


@pytest.mark.req("OPS-3")
@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: str(rule["alert"]))
def test_each_alert_leads_to_a_page_that_says_what_to_do(rule: dict[str, Any]) -> None:
    page = ROOT / rule["annotations"]["runbook"]
    text = page.read_text()

    assert text.startswith(f"# {rule['alert']}\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## What it means", "## What to do"]
    assert f"({page.name})" in (page.parent / "README.md").read_text()


@pytest.mark.req("OPS-3")
def test_the_errors_that_are_counted_as_the_hubs_own_are_reasons_of_problems() -> None:
    [rule] = [rule for rule in load_rules() if rule["alert"] == "ErrorBudgetBurn"]
    patterns = set(re.findall(r'reason=~"([^"]+)"', rule["expr"]))
    reasons = {problem.reason for problem in collect_problem_classes()}

    assert len(patterns) == 1
    [pattern] = patterns
    counted = {reason for reason in reasons if re.fullmatch(pattern, reason)}
    assert counted == {
        *("SANDBOX.START_FAILED", "SANDBOX.WORKER_LOST", "SANDBOX.IMAGE_MISSING", "QUEUE.TIMEOUT", "QUEUE.UNAVAILABLE"),
        *("EVIDENCE.UNAVAILABLE", "EVIDENCE.KEY_UNAVAILABLE", "UNKNOWN.INTERNAL"),
    }
