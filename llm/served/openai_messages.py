"""OpenAI messages: a conversation and tools in the words of Chat Completions, as the hub's own.

Places of mistakes are those of the body. Content that would have to be fetched, or that no model here is given, is refused. Pictures
may stand in the body as data URLs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llm.pictures import PictureShelf, is_data_url, read_data_url
from llm.served.parameters import escape, passed, read_parameters, refused, warned
from unitools.calls import ToolSpec
from unitools.dialects.arguments import read_arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from llm.served.parameters import Findings, Parameter

ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
OWN_SEGMENTS = ("image_ref", "audio_ref", "attachment_ref")
NOT_FETCHED = "Addresses are not fetched. Upload the file to the hub, and name it by a part of the type {kind}."
NO_DETAIL = "The provider decides how closely it looks at a picture."
NOT_INLINE = "Files do not stand in a request. Upload it to the hub, and name it by a part of the type {kind}."
PARTS = {"image_url": "image_ref", "input_audio": "audio_ref", "file": "attachment_ref"}
EMPTY = " "  # the least that a message of a tool can say; providers and the hub refuse nothing at all
NOT_STRICT = "Arguments are held to the schema when the tool is called, whatever the model wrote."
NO_NAMES = "Names of speakers are not passed on; say in the content who speaks."

OF_ALL = (passed("role", "`developer` is read as `system`."), passed("content", "A text, or a list of parts."))
# What answers have, and programs send back as they got it.
ECHOED = (
    passed("refusal", "Read as text."),
    warned("annotations", "Annotations of an answer are not sent to a model.", []),
    refused("audio", "Answers in sound are not made here."),
    refused("function_call", "Use `tool_calls`."),
    passed("parsed", "The content again, as OpenAI's SDK has read it for its user; the content counts."),
)
FIELDS: dict[str, tuple[Parameter, ...]] = {
    "developer": (*OF_ALL, refused("name", NO_NAMES)),
    "system": (*OF_ALL, refused("name", NO_NAMES)),
    "user": (*OF_ALL, refused("name", NO_NAMES)),
    "assistant": (
        *OF_ALL,
        *ECHOED,
        refused("name", NO_NAMES),
        passed("tool_calls", "Calls that the model proposed, each answered by a message of a tool."),
        passed("provider_state", "As an answer had it; only the same provider gets it."),
    ),
    "tool": (
        *OF_ALL,
        passed("tool_call_id", "Of the call that is answered."),
        warned("name", "The call says which tool it was."),
    ),
}
OF_A_PICTURE = (
    passed("url", "A data URL: data:image/png;base64,…"),
    warned("detail", NO_DETAIL, "auto"),
)
OF_A_TOOL = (
    passed("name", "Of a tool of the hub, as its list of tools has it for this format; or the caller's own."),
    passed("description", "Of a tool of the hub the registry's own is shown."),
    passed("parameters", "Of a tool of the hub the registry's own are shown."),
    warned("strict", NOT_STRICT, False),
)


class ConversationReader:
    """Reads the messages of one body. Mistakes go to ``findings``, what is left out to ``warnings``, pictures to ``shelf``."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.shelf = PictureShelf()
        self.warnings: list[str] = []

    def read_messages(self, messages: Any) -> list[dict[str, Any]]:
        if not isinstance(messages, list):
            self._findings.add_wrong("/messages", "This is a list.")
            return []
        read = [self._read_message(each, f"/messages/{place}") for place, each in enumerate(messages)]
        return [each for each in read if each is not None]

    def _read_message(self, message: Any, at: str) -> dict[str, Any] | None:
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or role not in ROLES:
            self._findings.add_wrong(f"{at}/role", f"This is one of {', '.join(ROLES)}.")
            return None
        given, warnings = read_parameters(message, FIELDS[role], self._findings, at)
        self.warnings += warnings
        read: dict[str, Any] = {
            "role": ROLES[role],
            "segments": self._read_content(given.get("content"), f"{at}/content"),
        }
        if given.get("refusal"):
            read["segments"] += self._read_content(given["refusal"], f"{at}/refusal")
        if role == "tool":
            read["segments"] = read["segments"] or [{"type": "text", "text": EMPTY}]
            read["call_id"] = given.get("tool_call_id")
        if given.get("tool_calls"):
            read["proposals"] = self._read_calls(given["tool_calls"], f"{at}/tool_calls")
        if "provider_state" in given:
            read["provider_state"] = given["provider_state"]
        return read

    def _read_content(self, content: Any, at: str) -> list[dict[str, Any]]:
        if content is None or content == "":
            return []
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        if not isinstance(content, list):
            self._findings.add_wrong(at, "This is a text, or a list of parts.")
            return []
        read = [self._read_part(part, f"{at}/{place}") for place, part in enumerate(content)]
        return [each for each in read if each is not None]

    def _read_part(self, part: Any, at: str) -> dict[str, Any] | None:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in OWN_SEGMENTS:
            return dict(part)
        if kind in ("text", "refusal"):
            said, _ = read_parameters(part, (passed("type", ""), passed(kind, "")), self._findings, at)
            text = said.get(kind)
            if not isinstance(text, str):
                self._findings.add_wrong(f"{at}/{kind}", "This is a text.")
            return {"type": "text", "text": text} if isinstance(text, str) and text else None
        if kind == "image_url":
            return self._read_picture(part.get("image_url"), at)
        if isinstance(kind, str) and kind in PARTS:
            self._findings.add_unsupported(at, NOT_INLINE.format(kind=PARTS[kind]))
        else:
            self._findings.add_wrong(at, f"This needs a `type`: text, {', '.join(OWN_SEGMENTS)}.")
        return None

    def _read_picture(self, image: Any, at: str) -> dict[str, Any] | None:
        image = {"url": image} if isinstance(image, str) else image
        given, warnings = read_parameters(image, OF_A_PICTURE, self._findings, f"{at}/image_url")
        self.warnings += warnings
        if not is_data_url(given.get("url")):
            self._findings.add_unsupported(at, NOT_FETCHED.format(kind=PARTS["image_url"]))
            return None
        return self.shelf.add(read_data_url(given["url"], f"{at}/image_url/url"))

    def _read_calls(self, calls: Any, at: str) -> list[dict[str, Any]]:
        if not isinstance(calls, list):
            self._findings.add_wrong(at, "This is a list.")
            return []
        read = [self._read_call(call, f"{at}/{place}") for place, call in enumerate(calls)]
        return [each for each in read if each is not None]

    def _read_call(self, call: Any, at: str) -> dict[str, Any] | None:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or call.get("type", "function") != "function":
            self._findings.add_wrong(at, "This is a call of a function, with `id` and `function`.")
            return None
        read = read_arguments(function.get("arguments") or {})
        # What a model wrote wrongly goes back as nothing: the answer of the tool behind it says what was wrong.
        arguments = read.value if isinstance(read.value, dict) else {}
        return {"call_id": call.get("id"), "name": function.get("name"), "arguments": arguments}


def read_tools(tools: Any, findings: Findings) -> tuple[list[str], tuple[ToolSpec, ...], list[str]]:
    """(Names and expressions of tools of the hub, bodies that the caller wrote, warnings)."""
    if not isinstance(tools, list):
        findings.add_wrong("/tools", "This is a list.")
        return [], (), []
    names: list[str] = []
    own: list[ToolSpec] = []
    warnings: list[str] = []
    for place, tool in enumerate(tools):
        at = f"/tools/{place}"
        if isinstance(tool, str):
            names.append(tool)
        elif not isinstance(tool, dict) or tool.get("type") != "function" or not isinstance(tool.get("function"), dict):
            findings.add_unsupported(at, "Only tools of the type function are shown to models here.")
        else:
            for unknown in sorted(name for name in set(tool) - {"type", "function"} if tool[name] is not None):
                findings.add_wrong(f"{at}/{escape(unknown)}", "There is no such parameter.")
            given, said = read_parameters(tool["function"], OF_A_TOOL, findings, f"{at}/function")
            warnings += said
            own += _read_tool(given, f"{at}/function", findings)
    return names, tuple(own), warnings


def _read_tool(given: dict[str, Any], at: str, findings: Findings) -> Iterable[ToolSpec]:
    name, description = given.get("name"), given.get("description", "")
    parameters = given.get("parameters", {"type": "object", "properties": {}})
    if not isinstance(name, str) or not name:
        findings.add_wrong(f"{at}/name", "This is the name of a tool.")
    elif not isinstance(description, str):
        findings.add_wrong(f"{at}/description", "This is a text.")
    elif not isinstance(parameters, dict):
        findings.add_wrong(f"{at}/parameters", "This is a JSON Schema of an object.")
    else:
        return [ToolSpec(name, description, parameters)]
    return []
