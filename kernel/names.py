"""Names: those that several packages use and that nobody may change alone.

Queues, tasks, the fields of spans, metrics. GenAI semantic conventions are not stable yet, so they live here only.
"""

RUN_INVOCATION = "invocations.run"
RUN_REPLAYS = "invocations.replay"
QUEUE_INVOCATIONS = "invocations"
QUEUES = {"quick": QUEUE_INVOCATIONS, "long": "invocations.long"}  # by class of work

SPAN_TOOL_EXECUTION = "tool_execution:{tool_id}"
ATTR_OPERATION = "gen_ai.operation.name"
ATTR_TOOL_NAME = "gen_ai.tool.name"
ATTR_TOOL_TYPE = "gen_ai.tool.type"
ATTR_AGENT_ID = "gen_ai.agent.id"
ATTR_CALL_ID = "gen_ai.tool.call.id"
ATTR_TENANT = "toolhub.tenant"
ATTR_OUTCOME = "toolhub.outcome"
ATTR_ISOLATION = "toolhub.sandbox.isolation"
ATTR_QUEUE_MS = "toolhub.queue_ms"  # of a call before its run
ATTR_STEP_MS = "toolhub.sandbox.{step}_ms"  # wait (for a box), load, run, collect
ATTR_ERROR = "error.type"
ATTR_PROVIDER = "gen_ai.provider.name"
ATTR_REQUEST_MODEL = "gen_ai.request.model"
ATTR_INPUT_TOKENS = "gen_ai.usage.input_tokens"
ATTR_OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
ATTR_FINISH_REASONS = "gen_ai.response.finish_reasons"
ATTR_TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105  no secret
MODEL_OPERATIONS = {"chat": "chat", "embed": "embeddings", "rerank": "rerank"}  # by the operation of a model's manifest

METRIC_METER_DIFFERENCES = "toolhub.models.meter_differences"
METRIC_BOXES = "toolhub.sandbox.boxes"
METRIC_WAITING = "toolhub.sandbox.waiting"
METRIC_CALLS = "toolhub.sandbox.calls"
METRIC_WAITED = "toolhub.sandbox.waited"
METRIC_MADE = "toolhub.sandbox.made"
METRIC_KILLS = "toolhub.sandbox.kills"
METRIC_RETIRED = "toolhub.sandbox.retired"
METRIC_ENDED = "toolhub.calls"
METRIC_DENIED = "toolhub.calls.denied"
METRIC_ERRORS = "toolhub.calls.errors"
METRIC_DURATION = "toolhub.calls.duration"
METRIC_SPENT = "toolhub.budget.spent"
METRIC_VALIDATED = "toolhub.schema.validations"
METRIC_UNMAPPED = "toolhub.unmapped"
METRIC_UNKNOWN_SHARE = "toolhub.results.unknown_share"
METRIC_ALARMS = "toolhub.alarms"
METRIC_PENDING = "toolhub.evidence.pending"
METRIC_PENDING_AGE = "toolhub.evidence.pending_age"
METRIC_SEALED = "toolhub.evidence.sealed"
METRIC_LOG_AGE = "toolhub.evidence.checkpoint_age"
METRIC_BAD_LOGS = "toolhub.evidence.verification_failures"
METRIC_SINK_LAG = "toolhub.evidence.sink_lag"
METRIC_ANCHOR_AGE = "toolhub.evidence.anchor_age"
METRIC_ANCHOR_REFUSED = "toolhub.evidence.anchor_refused"
METRIC_QUEUED = "toolhub.queue.length"
METRIC_QUEUE_AGE = "toolhub.queue.age"
METRIC_LEASES = "toolhub.leases"
METRIC_OPEN = "toolhub.calls.open"
METRIC_PREFLIGHT = "toolhub.preflight.duration"
METRIC_QUEUE_WAIT = "toolhub.queue.wait"
METRIC_SIDE_EFFECTS = "toolhub.calls.side_effects"
METRIC_PLACES = "toolhub.worker.places"
METRIC_MODEL_TOKENS = "gen_ai.client.token.usage"
METRIC_MODEL_DURATION = "gen_ai.client.operation.duration"
METRIC_MODEL_FIRST_TOKEN = "gen_ai.client.operation.time_to_first_chunk"  # noqa: S105  no secret
METRIC_CIRCUITS = "toolhub.models.circuits"
METRIC_LEVEL = "toolhub.service_level"
METRIC_OBJECTIVE = "toolhub.service_level.objective"

ATTR_METHOD = "http.request.method"
ATTR_ROUTE = "http.route"
ATTR_STATUS = "http.response.status_code"
METRIC_REQUESTS = "http.server.request.duration"
METRIC_REQUESTS_ACTIVE = "http.server.active_requests"
UNKNOWN_TOOL = "(unknown)"  # instead of a name that no tool of the hub has

HEADER_REQUEST_ID = "X-Request-ID"
