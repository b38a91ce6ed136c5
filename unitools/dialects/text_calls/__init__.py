"""Text calls: calls that a model of open weights wrote into its text, in the form that it was trained on. One module per form.

A server with the model's parser makes calls of them; where it has none, they are text like any other, and nothing in it proves that
the model did not quote them from a page or a result. So they are read only where the caller says which form it trusts
(``trust_text="hermes"``), and then only at the end of the answer, outside of code fences. Without that a diagnostic says what the
text looks like.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from unitools.calls import to_json
from unitools.dialects.base import AS_USUAL
from unitools.dialects.errors import NotJson, ResponseTooLarge, UnknownDialect
from unitools.dialects.model_json import MAX_BYTES
from unitools.dialects.parsers import xml
from unitools.dialects.parsers.proposals import build_calls, get_answered_call, get_wire_id
from unitools.dialects.parsers.responses import WEAK, UnfoldedResponse, check_readable
from unitools.dialects.text_calls import deepseek, hermes, llama, mistral
from unitools.dialects.text_calls.base import build_proposals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult, ToolSpec
    from unitools.dialects.base import ReadOptions, Rendered, RenderOptions
    from unitools.dialects.model_profiles import ModelProfile
    from unitools.dialects.text_calls.base import TextForm

FORMS: dict[str, TextForm] = {
    "hermes": hermes,
    "qwen": hermes,
    "llama": llama,
    "mistral": mistral,
    "deepseek": deepseek,
}
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')  # of JSON; brackets outside of them are its own
LOOKS_LIKE = (
    "The text looks like a call as {form} models write it, and nothing was run: whoever wrote what the model has read could have "
    "written it too. If this model calls tools so, say trust_text={form!r}."
)


def unfold_text(response: object) -> UnfoldedResponse | None:
    """What the model said, and whether it was cut; with ``calls`` where it made some in its provider's own form. None for a response
    that holds no text."""
    try:
        answer = xml.unfold_response(response)
    except NotJson:  # several objects one after the other, as Llama writes them
        answer = None
    if answer is None and isinstance(response, str):
        return UnfoldedResponse(WEAK, text=response)
    return answer


def describe_untrusted_text(response: object) -> str:
    """What a text without calls looks like, and how its calls would be read; empty where it looks like none."""
    answer = UnfoldedResponse(WEAK, text=response) if isinstance(response, str) else unfold_text(response)
    text = answer.text[:MAX_BYTES] if answer else ""
    found = next((name for name, form in FORMS.items() if form.looks_alike(text)), "")
    return LOOKS_LIKE.format(form=found) if found else ""


class TextDriver:
    """What reads the text calls of one form. Tools are told to such models by their server: in the dialect ``openai``."""

    dialect: ClassVar[str] = "text"

    def __init__(self, form: str) -> None:
        """Raises UnknownDialect."""
        if form not in FORMS:
            raise UnknownDialect(f"There is no form {form!r} of calls in text; there are {', '.join(FORMS)}.")
        self._form = FORMS[form]

    def can_handle(self, profile: ModelProfile) -> int:
        return 0

    def render(self, tools: Sequence[ToolSpec], options: RenderOptions = AS_USUAL) -> Rendered:
        raise UnknownDialect("Calls in text are only read. Tell the tools in the dialect openai.")

    def detect(self, response: object) -> int:
        return 0

    def parse(self, response: object, reading: ReadOptions) -> list[ToolCall]:
        """The calls in their order. Raises UnknownResponse, UnreadableResponse, ResponseTooLarge."""
        answer = check_readable(unfold_text(response), "text")
        if len(answer.text) > MAX_BYTES or len(answer.text.encode(errors="replace")) > MAX_BYTES:
            raise ResponseTooLarge(f"The response cannot be read: its text is larger than {MAX_BYTES} bytes.")
        found = self._form.scan(answer.text)
        return build_calls(build_proposals(answer.text, found, reading, cut=answer.cut), reading)

    def reply(self, results: Sequence[ToolResult]) -> str:
        """Text for the next message: an object for each result, in order, as the form frames it. No result can write a frame: ``<``
        and ``[`` of its texts stand as escapes."""
        return "\n".join(self._form.frame_result(_say(result)) for result in results)


def _say(result: ToolResult) -> str:
    call = get_answered_call(result)
    content: Any = result.to_content() if result.is_error else result.value
    said = to_json({"name": call.provider_name, "tool_call_id": get_wire_id(call), "content": content})
    return _STRING.sub(lambda string: string[0].replace("<", "\\u003c").replace("[", "\\u005b"), said)
