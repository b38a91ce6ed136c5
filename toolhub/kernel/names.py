"""Which names do several packages use and therefore nobody may change alone?

Queues, tasks, the fields of spans. GenAI semantic conventions are not stable yet, so they live here only.
"""

RUN_INVOCATION = "invocations.run"
QUEUE_INVOCATIONS = "invocations"

SPAN_TOOL_EXECUTION = "tool_execution:{tool_id}"
ATTR_OPERATION = "gen_ai.operation.name"
ATTR_TOOL_NAME = "gen_ai.tool.name"
ATTR_TOOL_TYPE = "gen_ai.tool.type"
ATTR_CALL_ID = "gen_ai.tool.call.id"
ATTR_TENANT = "toolhub.tenant"
ATTR_OUTCOME = "toolhub.outcome"
ATTR_ISOLATION = "toolhub.sandbox.isolation"
ATTR_QUEUE_MS = "toolhub.queue_ms"  # of a call before its run
ATTR_STEP_MS = "toolhub.sandbox.{step}_ms"  # wait (for a box), load, run, collect
ATTR_ERROR = "error.type"

HEADER_REQUEST_ID = "X-Request-ID"
