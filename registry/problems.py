"""Problems of the registry: what can go wrong with the catalogue."""

from kernel.problems import PlatformCode, Problem, Retryable


class ManifestInvalid(Problem):
    """The manifest cannot be registered as it is."""

    reason, code, status = "MANIFEST.INVALID", PlatformCode.INVALID_ARGUMENT, 422
    cause = (
        "The manifest breaks a rule: a schema that is not valid, parts that contradict each other, or a field "
        "that is missing or unknown."
    )
    cure = "Correct what the findings name, and submit it again. Nothing was registered."


class VersionExists(Problem):
    """This version exists already and never changes."""

    reason, code, status = "TOOL.VERSION_EXISTS", PlatformCode.CONFLICT, 409
    cause = "This version number was registered before, and what was registered stays as it is."
    cure = "Raise the version number and submit again."


class CapsuleInvalid(Problem):
    """The capsule cannot be taken as it is."""

    reason, code, status = "CAPSULE.INVALID", PlatformCode.INVALID_ARGUMENT, 422
    cause = (
        "It is no capsule, or one that could be understood in more than one way: the answer names the problem. "
        "Changed bytes, links, names that lead out of it and compressed files are refused."
    )
    cure = "Make it with `unitools pack`, and send the file as it is. Nothing was registered."


class CapsuleUnsigned(Problem):
    """Nobody has signed the capsule, and this tenant takes only signed ones."""

    reason, code, status = "CAPSULE.UNSIGNED", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "The tenant has said that capsules need the signature of one of its publisher keys."
    cure = "Sign it with `unitools pack --key`, and send the signature with it."


class CapsuleSignerUnknown(Problem):
    """No publisher key that is in force here signed the capsule."""

    reason, code, status = "CAPSULE.SIGNER_UNKNOWN", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "The signature names a key that the tenant does not know, or has revoked."
    cure = "Sign it with a key of the tenant, or have an owner add the key."


class CapsuleSignatureInvalid(Problem):
    """The signature does not fit the capsule."""

    reason, code, status = "CAPSULE.SIGNATURE_INVALID", PlatformCode.INVALID_ARGUMENT, 422
    cause = "The envelope is no DSSE envelope, is about another capsule, or was not made by the key that it names."
    cure = "Sign exactly the file that you send, and send its signature unchanged."


class CapsuleDamaged(Problem):
    """The stored capsule is not the one that was uploaded."""

    reason, code, status = "CAPSULE.DAMAGED", PlatformCode.INTERNAL, 500
    cause = (
        "Its bytes do not have its digest any more: somebody changed the row past the hub, or the database is damaged."
    )
    cure = "Operators: restore the row from a backup, or yank its versions and upload the capsule again as new ones."


class CapsulesFull(Problem):
    """There is no room for another capsule."""

    reason, code, status = "CAPSULE.NO_ROOM", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "The capsules of the tenant take all the room that the operator gave them; they are kept as long as their versions."
    cure = "Leave large data out of packages, or ask the operator of the hub for more room (TOOLHUB_CAPSULES_MAX_MB)."


class UnknownTool(Problem):
    """There is no tool with this id here."""

    reason, code, status = "TOOL.UNKNOWN", PlatformCode.NOT_FOUND, 404
    cause = "No tool of this tenant, own or installed, has this id."
    cure = "List the tools and use an id from there, or ask an operator to install the tool."


class ToolNotEnabled(Problem):
    """This tool has not been enabled yet."""

    reason, code, status = "TOOL.NOT_ENABLED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "The tool is registered, but nobody has reviewed and enabled a version yet."
    cure = "Ask a reviewer to approve a version and an operator to enable it."


class ToolPaused(Problem):
    """This tool is paused."""

    reason, code, status = "TOOL.PAUSED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "An operator of the publisher or of this tenant has paused the tool; the answer says since when and why."
    cure = "Wait until it is resumed, or use another tool."


class ToolRetired(Problem):
    """This tool is withdrawn."""

    reason, code, status = "TOOL.RETIRED", PlatformCode.NOT_FOUND, 410
    cause = "The tool was deprecated, and the day of its sunset is over."
    cure = "Use the successor that the answer names, or another tool."


class ModelUnsupported(Problem):
    """This tool is not meant for this model."""

    reason, code, status = "TOOL.MODEL_UNSUPPORTED", PlatformCode.CONFLICT, 409
    cause = "The tool's manifest lists the models that it is meant for, and the one that the caller names is not among them."
    cure = "Use another tool with this model, or call the tool with one of the models that the answer lists."


class ToolIsModel(Problem):
    """This is a model, and no tool."""

    reason, code, status = "TOOL.IS_A_MODEL", PlatformCode.NOT_FOUND, 404
    cause = "Models are connected under their providers. They are not listed, installed or operated as tools are."
    cure = "List the models, and ask it as a model; operators change it under its provider."


class UnknownModel(Problem):
    """There is no model with this name here."""

    reason, code, status = "MODEL.UNKNOWN", PlatformCode.NOT_FOUND, 404
    cause = "The tenant has connected no model of this name, or has removed it."
    cure = "List the models and use a name from there, or ask an operator to connect the model."


class UnknownModelProvider(Problem):
    """There is no model provider with this name here."""

    reason, code, status = "PROVIDER.UNKNOWN", PlatformCode.NOT_FOUND, 404
    cause = "The tenant has connected no provider of this name, or has removed it."
    cure = "List the model providers and use a name from there, or connect the provider first."


class OwnSubmission(Problem):
    """Nobody reviews their own submission."""

    reason, code, status = "REVIEW.OWN_SUBMISSION", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "Who submits a version must not be the one who lets it into use."
    cure = "Ask another reviewer."


class NotReviewed(Problem):
    """This version has not been approved."""

    reason, code, status = "REVIEW.NOT_APPROVED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "The version waits for its reviews, or was refused."
    cure = "Have it reviewed, or choose a version that was approved."


class WrongBump(Problem):
    """The version number does not say what changed."""

    reason, code, status = "MANIFEST.WRONG_BUMP", PlatformCode.INVALID_ARGUMENT, 422
    cause = "What changed since the last version needs a higher part of the version number than was raised."
    cure = "Raise the part of the version number that the answer names, or take the breaking changes back."


class NotAcknowledged(Problem):
    """A risky change of this version has not been acknowledged."""

    reason, code, status = "REVIEW.NOT_ACKNOWLEDGED", PlatformCode.INVALID_ARGUMENT, 422
    retryable = Retryable.AFTER_ACTION
    cause = "The version has changes of high risk, and the review does not confirm each of them."
    cure = "Look at each risky change and confirm it, or refuse the version."


class VersionYanked(Problem):
    """This version was withdrawn."""

    reason, code, status = "TOOL.YANKED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "The publisher took this version back after its release; the answer has the reason."
    cure = "Ask an operator to move the installation to another version."


class DependenciesNotReady(Problem):
    """The packages that this tool needs are not installed yet, so it did not run."""

    reason, code, status = "SANDBOX.DEPENDENCIES_NOT_READY", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 5
    cause = "The packages of this version are being installed, or their installation failed."
    cure = "Try again after `retry_after_s` seconds. Operators: the page of the version says what is missing."


class NotTrustable(Problem):
    """This version may not run without a sandbox."""

    reason, code, status = "TOOL.NOT_TRUSTABLE", PlatformCode.CONFLICT, 409
    cause = "Only tools without side effects whose manifest asks for no sandbox may run without one."
    cure = "Leave the tool in its sandbox, or have its author submit a version that needs none."


class NotInstalled(Problem):
    """This tool is not installed here."""

    reason, code, status = "TOOL.NOT_INSTALLED", PlatformCode.NOT_FOUND, 404
    retryable = Retryable.AFTER_ACTION
    cause = "The tool is shared by another tenant, and this one has not installed it."
    cure = "Ask an operator to install it."


class NotConfigured(Problem):
    """This installation lacks configuration or secrets that the tool needs."""

    reason, code, status = "TOOL.NOT_CONFIGURED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "The tool needs settings or secrets that its installation in this tenant does not have."
    cure = "Ask an operator to set what the answer names."


class UnknownSecret(Problem):
    """There is no secret with this name here."""

    reason, code, status = "SECRET.UNKNOWN", PlatformCode.NOT_FOUND, 404
    cause = "The tenant has no secret of this name."
    cure = "Check the name, or store the secret first."


class SecretInUse(Problem):
    """An installation uses this secret."""

    reason, code, status = "SECRET.IN_USE", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "Installations name this secret and would no longer work without it."
    cure = "Point those installations at another secret first."


class UnknownDialect(Problem):
    """No driver serves this dialect or model."""

    reason, code, status = "DIALECT.UNKNOWN", PlatformCode.INVALID_ARGUMENT, 422
    cause = "The dialect is none that the hub speaks, or nothing is known of the model, so that its dialect is not known either."
    cure = "Name one of the dialects that the answer lists; for a model that only reads and writes text, that is xml."
