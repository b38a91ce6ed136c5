"""Sent forms: what a browser without scripts sends of the controls in a piece of a page."""

from __future__ import annotations

from html.parser import HTMLParser


class SentForm(HTMLParser):
    """``values``: by name; of a button only what ``press`` names. ``buttons``: the value of each button, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.buttons: list[str] = []
        self.ids: list[str] = []
        self._text: str | None = None
        self._select = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if "id" in said:
            self.ids.append(said["id"])
        if (
            tag == "input"
            and said.get("type") != "file"
            and (said.get("type") not in ("checkbox", "radio") or "checked" in said)
        ):
            self.values[said["name"]] = said.get("value", "on").replace("\n", "")
        elif tag == "button":
            self.buttons.append(said.get("value", ""))
        elif tag == "textarea":
            self._text, self._name = "", said["name"]
        elif tag == "select":
            self._select = said["name"]
        elif tag == "option" and ("selected" in said or self._select not in self.values):
            self.values[self._select] = said.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._text is not None:
            # The first line end is the page's; of those that are sent each is two characters.
            self.values[self._name] = self._text.removeprefix("\n").replace("\n", "\r\n")
            self._text = None
