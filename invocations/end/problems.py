"""Problems of ends: what a tool may say "no" with."""

from kernel.problems import PlatformCode, Problem, Retryable
from unitools import runtime


class ToolSaysInvalidArgument(Problem):
    """The tool cannot work with these arguments."""

    reason, code, status = "DOMAIN.INVALID_ARGUMENT", PlatformCode.INVALID_ARGUMENT, 422
    refusal_of_tool = True
    cause = "The arguments match the schema, but the tool cannot do anything with their values."
    cure = "Change the arguments as the tool's message says."


class ToolSaysNotFound(Problem):
    """The tool does not know what the arguments name."""

    reason, code, status = "DOMAIN.NOT_FOUND", PlatformCode.NOT_FOUND, 404
    refusal_of_tool = True
    cause = "The arguments name something, for instance an order or a product, that the tool does not find."
    cure = "Check the ids in the arguments."


class ToolSaysConflict(Problem):
    """The tool found a conflict with what is there."""

    reason, code, status = "DOMAIN.CONFLICT", PlatformCode.CONFLICT, 409
    refusal_of_tool = True
    retryable = Retryable.AFTER_ACTION
    cause = "What the tool would change is in a state that does not allow it."
    cure = "Look at the present state with a tool that reads it, then decide again."


class ToolSaysUpstreamError(Problem):
    """Something that the tool depends on failed."""

    reason, code, status = "DOMAIN.UPSTREAM_ERROR", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.YES
    cause = "A service behind the tool did not answer, or answered with an error."
    cure = "Try again later, under the same key if the call had one and the tool honours it."


class ServerSaysError(Problem):
    """The server that has the tool calls this an error."""

    reason, code, status = "DOMAIN.SERVER_ERROR", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The tool is one of an MCP server, which said no: its result is an error (`isError`), or it refused the request in MCP or in "
        "HTTP. The tool may change something and no key reaches it, so the same call again might do a part of that twice."
    )
    cure = (
        "Have the model read the server's message: it corrects the arguments, or looks at the present state with a tool that reads "
        "it, and then decides again."
    )


class ToolSaysNeedsConfirmation(Problem):
    """The tool asks for a person's confirmation first."""

    reason, code, status = "DOMAIN.NEEDS_USER_CONFIRMATION", PlatformCode.NEEDS_USER_CONFIRMATION, 403
    refusal_of_tool = True
    retryable = Retryable.AFTER_ACTION
    cause = "The tool itself wants a person to confirm before it goes on."
    cure = "Show the tool's message to the person for whom the call is made, and call again with what they confirm."


class ToolSaysComplianceBlocked(Problem):
    """A compliance rule forbids this."""

    reason, code, status = "DOMAIN.COMPLIANCE_BLOCKED", PlatformCode.COMPLIANCE_BLOCKED, 403
    refusal_of_tool = True
    cause = "The tool's own rules forbid what the arguments ask for."
    cure = "Do not send the same call again; the message says which rule stands against it."


class PriceChanged(Problem):
    """The price has changed."""

    reason, code, status = "DOMAIN.PRICE_CHANGED", PlatformCode.PRICE_CHANGED, 409
    refusal_of_tool = True
    retryable = Retryable.AFTER_ACTION
    cause = "The price that the call was made with is not the present one any more."
    cure = "Get a new quote, show the new price to the person who pays, and call again with it."


class OutOfStock(Problem):
    """There is not enough stock."""

    reason, code, status = "DOMAIN.OUT_OF_STOCK", PlatformCode.OUT_OF_STOCK, 409
    refusal_of_tool = True
    cause = "Fewer are there than the call asks for."
    cure = "Ask for fewer, for another article, or again when there is stock."


class AddressInvalid(Problem):
    """The address is not valid."""

    reason, code, status = "DOMAIN.ADDRESS_INVALID", PlatformCode.ADDRESS_INVALID, 422
    refusal_of_tool = True
    cause = "The tool cannot deliver to this address as it is written."
    cure = "Have the person correct the address, then call again."


class ToolSaysModelRetry(Problem):
    """The tool wants to be called again, otherwise."""

    reason, code, status = "DOMAIN.MODEL_RETRY", PlatformCode.INVALID_ARGUMENT, 422
    refusal_of_tool = True
    retryable = Retryable.AFTER_ACTION
    cause = "The tool did nothing with these arguments, and says what it needs instead: what is missing, or which of two was meant."
    cure = "Have the model read the message and make a new call with what it asks for."


# What a tool may say "no" with (SPEC-6): the closed set of unitools.runtime, and nothing of its own. All but MODEL_RETRY are platform
# codes as well; that one is INVALID_ARGUMENT to a client, with a reason of its own.
DOMAIN_PROBLEMS: dict[str, type[Problem]] = {
    runtime.InvalidArgument.code: ToolSaysInvalidArgument,
    runtime.NotFound.code: ToolSaysNotFound,
    runtime.Conflict.code: ToolSaysConflict,
    runtime.UpstreamError.code: ToolSaysUpstreamError,
    runtime.NeedsConfirmation.code: ToolSaysNeedsConfirmation,
    runtime.ComplianceBlocked.code: ToolSaysComplianceBlocked,
    runtime.PriceChanged.code: PriceChanged,
    runtime.OutOfStock.code: OutOfStock,
    runtime.AddressInvalid.code: AddressInvalid,
    runtime.ModelRetry.code: ToolSaysModelRetry,
}
