"""Gemini requests: bodies for Google's generateContent and countTokens, read as what the hub asks a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictFloat, StrictInt, StrictStr, model_validator
from pydantic.dataclasses import dataclass

from kernel.problems import SchemaInvalid
from llm.documents import read_document, refuse_field
from llm.served.body_parts import BodyPart
from llm.served.formats import ServedChat
from llm.served.gemini_parts import (
    OF_A_PROVIDER,
    WIRE,
    Content,
    ContentsReader,
    Name,
    TextContent,
    refuse,
    to_wire,
)
from llm.served.gemini_subset import read_subset
from llm.served.openai_chat import NOT_KEPT, OF_THE_HUB, WHERE_TAKEN, read_hub
from llm.served.openai_messages import NO_DETAIL, NOT_STRICT
from llm.served.parameters import Findings, passed, read_parameters, refused, warned
from unitools.calls import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from llm.served.parameters import Parameter

CONTENTS = passed(
    "contents",
    "The conversation. Pictures stand in it as `inlineData`; addresses of files, and other files, are refused.",
)
NO_SUMMARY = "Texts of reasoning are not passed on; what the provider wants back of it is."
USUAL_THRESHOLDS = ("OFF", "BLOCK_NONE", "HARM_BLOCK_THRESHOLD_UNSPECIFIED")
NOT_LOOSER = "Providers are asked with their usual thresholds. It was left out."
NOT_STRICTER = (
    "Providers are asked with their usual thresholds; an answer that one of them stopped has the finishReason SAFETY."
)
PARAMETERS = (
    passed("model", "As in the address."),
    CONTENTS,
    passed("systemInstruction", "What stands before the conversation: texts."),
    passed(
        "tools",
        "Functions by the names that models know tools of the registry by. Tools that a provider runs itself are refused.",
    ),
    passed(
        "toolConfig",
        "A `functionCallingConfig`: `AUTO`, `ANY`, `NONE` or `VALIDATED`. The model is shown no others than `allowedFunctionNames`.",
    ),
    passed("generationConfig", "See below."),
    passed(
        "safetySettings",
        "`OFF` and `BLOCK_NONE` are left out with a warning. A threshold that asks for more is refused.",
    ),
    OF_THE_HUB,
    refused("cachedContent", "The hub keeps no contents. Send all of them."),
    warned("labels", "Kept nowhere.", {}),
    refused("serviceTier", "The provider's usual one is asked for.", "standard", "unspecified"),
    refused("store", NOT_KEPT, False),
    refused("continuationToken", "The hub keeps no conversation. Send all of it in `contents`."),
)
GENERATION = (
    passed("temperature", "0 to 2."),
    passed("topP", "More than 0, up to 1."),
    passed("topK", WHERE_TAKEN),
    passed("maxOutputTokens", "At most so many as the model was connected for."),
    passed("stopSequences", "Texts before which the answer ends. Which of them it was is not said."),
    passed("seed", WHERE_TAKEN),
    passed("presencePenalty", WHERE_TAKEN),
    passed("frequencyPenalty", WHERE_TAKEN),
    passed("responseMimeType", "`text/plain` or `application/json`; `text/x.enum` is refused."),
    passed("responseSchema", "In Google's subset; the answer is held to it."),
    passed("responseJsonSchema", "A JSON Schema; the answer is held to it."),
    passed(
        "thinkingConfig",
        "`thinkingLevel` is `reasoning_effort` of the hub's chat, `thinkingBudget` `reasoning_tokens`; 0 is the effort `none`, "
        f"-1 the effort `auto`. {WHERE_TAKEN} `includeThoughts` is left out with a warning.",
    ),
    refused("candidateCount", "There is one answer to a request.", 1),
    refused("responseLogprobs", "Probabilities of tokens are not passed on.", False),
    refused("logprobs", "Probabilities of tokens are not passed on.", 0),
    refused("responseModalities", "Answers are texts.", ["TEXT"], []),
    refused("speechConfig", "Answers are texts."),
    refused("imageConfig", "Answers are texts."),
    refused("audioTranscriptionConfig", "Not passed on."),
    refused("enableEnhancedCivicAnswers", "Not passed on.", False),
    warned("mediaResolution", NO_DETAIL, "MEDIA_RESOLUTION_UNSPECIFIED"),
)
COUNTED = (
    CONTENTS,
    passed("generateContentRequest", "Instead of `contents`: all that a request would have."),
    OF_THE_HUB,
)
NO_ENUM = "An answer that is one bare word is not asked for here. Use application/json, with the words as the enum of its schema."
ONE_SCHEMA = "This stands beside responseSchema, which is the same."
OTHER_MODEL = "This is another model than the address names."
NO_RESULT_SCHEMA = "What a function answers is not described to models."
RUNS_ITSELF = (
    "codeExecution",
    "computerUse",
    "fileSearch",
    "googleMaps",
    "googleSearch",
    "googleSearchRetrieval",
    "mcpServers",
    "urlContext",
)


def _to_whole(value: object) -> object:
    """Google's SDK writes some whole numbers with a point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_tool_kind(value: object) -> object:
    if isinstance(value, dict):
        for name in value:
            if to_wire(name) in RUNS_ITSELF and value[name] is not None:
                raise refuse_field(OF_A_PROVIDER, at=(name,))
        return {name: each for name, each in value.items() if each is not None}
    return value


def _to_upper(value: object) -> object:
    """Google's pages have words of closed sets in either case."""
    return value.upper() if isinstance(value, str) else value


Whole = Annotated[StrictInt, BeforeValidator(_to_whole)]
Upper = BeforeValidator(_to_upper)


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class FunctionDeclaration(BodyPart):
    name: Name
    description: StrictStr = ""
    parameters: dict[str, Any] | None = None
    parameters_json_schema: dict[str, Any] | None = None
    response: Any = None
    response_json_schema: Any = None
    behavior: Annotated[Any, refuse("Calls are answered before the model goes on.", "BLOCKING", "UNSPECIFIED")] = None

    @model_validator(mode="after")
    def _check_parameters(self) -> Self:
        if self.parameters is not None and self.parameters_json_schema is not None:
            raise refuse_field("This stands beside parameters, which are the same.", at=("parametersJsonSchema",))
        return self


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class DeclaredFunctions(BodyPart):
    function_declarations: tuple[FunctionDeclaration, ...] = ()


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class CallingConfig(BodyPart):
    mode: Annotated[Literal["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"], Upper] = "AUTO"
    allowed_function_names: tuple[Name, ...] = ()
    stream_function_call_arguments: Any = None

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if self.allowed_function_names and self.mode not in ("ANY", "VALIDATED"):
            raise refuse_field("Names go with the modes ANY and VALIDATED.", at=("allowedFunctionNames",))
        return self


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class ToolConfig(BodyPart):
    function_calling_config: CallingConfig = CallingConfig()
    retrieval_config: Annotated[Any, refuse(OF_A_PROVIDER)] = None
    include_server_side_tool_invocations: Annotated[Any, refuse(OF_A_PROVIDER, False)] = None


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class ThinkingConfig(BodyPart):
    include_thoughts: Any = None
    thinking_budget: Annotated[Whole, Field(ge=-1)] | None = None
    thinking_level: Annotated[
        Literal["THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH"] | None, Upper
    ] = None


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class GenerationConfig(BodyPart):
    temperature: StrictFloat | None = None
    top_p: StrictFloat | None = None
    top_k: Whole | None = None
    max_output_tokens: Annotated[Whole, Field(ge=1)] | None = None
    stop_sequences: tuple[StrictStr, ...] = ()
    seed: Whole | None = None
    presence_penalty: StrictFloat | None = None
    frequency_penalty: StrictFloat | None = None
    response_mime_type: StrictStr = ""
    response_schema: dict[str, Any] | None = None
    response_json_schema: dict[str, Any] | None = None
    thinking_config: ThinkingConfig = ThinkingConfig()

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        schemas = [each for each in (self.response_schema, self.response_json_schema) if each is not None]
        if len(schemas) > 1:
            raise refuse_field(ONE_SCHEMA, at=("responseJsonSchema",))
        if self.response_mime_type == "text/x.enum":
            raise refuse_field(NO_ENUM, at=("responseMimeType",))
        if self.response_mime_type not in ("", "text/plain", "application/json"):
            raise refuse_field("This is text/plain or application/json.", at=("responseMimeType",))
        if schemas and self.response_mime_type == "text/plain":
            raise refuse_field("With a schema this is application/json.", at=("responseMimeType",))
        return self


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class SafetySetting(BodyPart):
    category: StrictStr
    threshold: StrictStr
    method: Any = None


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class GenerateBody(BodyPart):
    contents: Annotated[tuple[Content, ...], Field(min_length=1)]
    model: StrictStr | None = None
    system_instruction: TextContent | None = None
    tools: tuple[Annotated[DeclaredFunctions, BeforeValidator(_check_tool_kind)], ...] = ()
    tool_config: ToolConfig = ToolConfig()
    generation_config: GenerationConfig = GenerationConfig()
    safety_settings: tuple[SafetySetting, ...] = ()


# A parameter of the hub's chat, by Google's in the words of Python.
SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_output_tokens": "max_tokens",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}


def read_generation(
    body: Any, *, model: str, wants_stream: bool = False, options: Mapping[str, Any] | None = None
) -> ServedChat:
    """``model``: that the address names. Raises SchemaInvalid, ParameterUnsupported."""
    findings = Findings()
    given, warnings = read_parameters(name_fields(body, PARAMETERS), PARAMETERS, findings)
    of_request, envelope = read_hub(given, findings)
    wanted = name_fields(given.get("generationConfig", {}), GENERATION, "/generationConfig")
    generation, said = read_parameters(wanted, GENERATION, findings, "/generationConfig")
    findings.check()
    read = read_document(GenerateBody, given | {"generationConfig": generation})
    check_model(read.model, model, "/model")
    safe = read_safety(read.safety_settings, findings)
    findings.check()
    reader, config = ContentsReader(), read.generation_config
    if read.system_instruction is not None:
        reader.add_instruction(read.system_instruction)
    specs, choice, of_tools = read_tools(read)
    chosen = {ours: getattr(config, theirs) for theirs, ours in SAMPLING.items()} | read_effort(config.thinking_config)
    arguments: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    if config.stop_sequences:
        arguments["stop"] = list(config.stop_sequences)
    if choice is not None:
        arguments["tool_choice"] = choice
    arguments |= {"messages": reader.read(read.contents)} | read_format(config) | of_request
    if config.thinking_config.include_thoughts:
        said += (f"/generationConfig/thinkingConfig/includeThoughts: {NO_SUMMARY}",)
    return ServedChat(
        model=model,
        arguments=arguments,
        own_tools=specs,
        envelope=envelope,
        wants_stream=wants_stream,
        options=options or {},
        warnings=(*warnings, *said, *safe, *of_tools, *reader.warnings),
        pictures=reader.shelf.pictures,
    )


def read_content_count(body: Any, *, model: str) -> ServedChat:
    """A conversation that is only to be counted. Raises as :func:`read_generation` does."""
    findings = Findings()
    given, _ = read_parameters(name_fields(body, COUNTED), COUNTED, findings)
    findings.check()
    whole = given.pop("generateContentRequest", None)
    if whole is None:
        return read_generation(given, model=model)
    if given:
        raise SchemaInvalid.at(f"/{min(given)}", "This stands beside generateContentRequest, which has it.")
    return read_generation(whole, model=model)


def name_fields(body: Any, table: Iterable[Parameter], at: str = "") -> Any:
    """The body with its fields under the names of the table: Google's clients may write them with underscores."""
    if not isinstance(body, dict):
        return body
    known = {each.name for each in table}
    named: dict[str, Any] = {}
    for name, value in body.items():
        wire = to_wire(name) if to_wire(name) in known else name
        if wire in named:
            raise SchemaInvalid.at(f"{at}/{wire}", "This field stands here twice.")
        named[wire] = value
    return named


def check_model(said: str | None, model: str, pointer: str) -> None:
    """A body may repeat the model that its address names."""
    if said is not None and said.removeprefix("models/") != model:
        raise SchemaInvalid.at(pointer, OTHER_MODEL)


def read_safety(settings: Iterable[SafetySetting], findings: Findings) -> tuple[str, ...]:
    warnings = []
    for at, each in enumerate(settings):
        if each.threshold in USUAL_THRESHOLDS:
            warnings.append(f"/safetySettings/{at}: {NOT_LOOSER}")
        else:
            findings.add_unsupported(f"/safetySettings/{at}/threshold", NOT_STRICTER)
    return tuple(warnings)


def read_tools(read: GenerateBody) -> tuple[tuple[ToolSpec, ...], Any, tuple[str, ...]]:
    """(What the model is shown, whether it has to call one, what is left out).

    What is named and not declared is chosen, so that the decision refuses it as a choice of no tool.
    """
    specs: list[ToolSpec] = []
    warnings = []
    for place, tool in enumerate(read.tools):
        for at, each in enumerate(tool.function_declarations):
            pointer = f"/tools/{place}/functionDeclarations/{at}"
            specs.append(ToolSpec(each.name, each.description, read_declared(each, pointer)))
            described = [name for name in ("response", "response_json_schema") if getattr(each, name) is not None]
            warnings += [f"{pointer}/{to_wire(name)}: {NO_RESULT_SCHEMA}" for name in described]
    config, pointer = read.tool_config.function_calling_config, "/toolConfig/functionCallingConfig"
    if config.mode == "VALIDATED":
        warnings.append(f"{pointer}/mode: {NOT_STRICT}")
    if config.stream_function_call_arguments:
        warnings.append(f"{pointer}/streamFunctionCallArguments: A call comes when its arguments are whole.")
    allowed = config.allowed_function_names
    shown = [each for each in specs if config.mode != "NONE" and (not allowed or each.name in allowed)]
    declared = {each.name for each in specs}
    choice: Any = next(({"name": name} for name in allowed if name not in declared), None)
    if choice is None and config.mode == "ANY":
        choice = {"name": allowed[0]} if len(allowed) == 1 else "required"
    return tuple(shown), choice, tuple(warnings)


def read_declared(declared: FunctionDeclaration, pointer: str) -> dict[str, Any]:
    """The JSON Schema of its arguments."""
    if declared.parameters is not None:
        return read_subset(declared.parameters, f"{pointer}/parameters")
    return declared.parameters_json_schema or {"type": "object", "properties": {}}


def read_effort(thinking: ThinkingConfig) -> dict[str, Any]:
    """How much the model reasons, in the parameters of the hub's chat."""
    level, budget = thinking.thinking_level, thinking.thinking_budget
    effort = None if level in (None, "THINKING_LEVEL_UNSPECIFIED") else str(level).lower()
    if budget is not None and budget < 1:
        if effort is not None:
            raise SchemaInvalid.at(
                "/generationConfig/thinkingConfig/thinkingBudget", "This stands beside a level, which says otherwise."
            )
        return {"reasoning_effort": "none" if budget == 0 else "auto"}
    return {"reasoning_effort": effort, "reasoning_tokens": budget}


def read_format(config: GenerationConfig) -> dict[str, Any]:
    schema = config.response_json_schema
    if config.response_schema is not None:
        schema = read_subset(config.response_schema, "/generationConfig/responseSchema")
    if schema is not None:
        return {"response_format": {"type": "schema", "json_schema": schema}}
    return {"response_format": {"type": "json"}} if config.response_mime_type == "application/json" else {}
