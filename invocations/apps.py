"""Invocations app: what is registered when it is loaded."""

from django.apps import AppConfig


class InvocationsConfig(AppConfig):
    name = "invocations"

    def ready(self) -> None:
        import invocations.agent_runs.orchestration  # noqa: PLC0415  hears of ends
        import invocations.approvals.failed_dry_runs  # noqa: PLC0415  says what has failed before it is approved
        import invocations.approvals.held_calls  # noqa: PLC0415  hears of decisions; models load only after the apps
        import invocations.call_costs.services  # noqa: PLC0415  hears of ends
        import invocations.callbacks.services  # noqa: PLC0415  hears of ends
        import invocations.chains.orchestration  # noqa: PLC0415  hears of ends
        import invocations.dispatch.problems  # noqa: PLC0415  a stored reason is read by any process
        import invocations.evidence_pairs.open_calls  # noqa: PLC0415  answers the verifier
        import invocations.model_calls.served.shapes  # noqa: PLC0415  says how problems read there
        import invocations.model_meters.alarms  # noqa: PLC0415  says what else is to be looked into
        import invocations.playground.erasure  # noqa: PLC0415  says whose conversations they were
        import invocations.retention.classes  # noqa: PLC0415  says what is kept of calls, and how it goes
        import invocations.service_levels.unmapped_errors  # noqa: F401, PLC0415  hears of what nobody had thought of
