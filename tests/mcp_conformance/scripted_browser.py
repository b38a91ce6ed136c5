"""Scripted browser: a person who signs in at the console and lets a program act as the agent, without a picture.

As a program, for clients that open a browser themselves: AGENT PASSWORD ADDRESS. It goes back to the client, or prints where
it was sent when nobody listens there.
"""

from __future__ import annotations

import re
import sys
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

OPERATOR = "conformance-operator"


def _hidden(page: str, name: str) -> str:
    """Of the form in the page's content; the frame around it has forms of its own."""
    found = re.search(rf'name="{name}"[^>]* value="([^"]+)"', page.partition("<main")[2])
    assert found, page[-3000:]
    return unescape(found[1])


def _send(browser: httpx2.Client, address: str, page: httpx2.Response, said: dict[str, Any]) -> httpx2.Response:
    hidden = {name: _hidden(page.text, name) for name in ("csrfmiddlewaretoken", "request")}
    return browser.post(address.partition("?")[0], data=hidden | said, headers={"Referer": address})


def let_in(address: str, *, agent: str, password: str, **form: str) -> dict[str, str]:
    """Goes where the program sends the browser, as a stranger first; what the answer says that would go back to the program."""
    found = parse_qs(urlsplit(find_answer(address, agent=agent, password=password, **form)).query)
    return {name: values[0] for name, values in found.items()}


def find_answer(address: str, *, agent: str, password: str, **form: str) -> str:
    """The address of the program to which the browser is sent in the end."""
    with httpx2.Client(follow_redirects=False, trust_env=False, timeout=60) as browser:
        at = browser.get(address)
        hub = "{0.scheme}://{0.netloc}".format(urlsplit(address))
        assert at.status_code == 302, at.text
        sign_in = browser.get(hub + at.headers["location"])
        said: dict[str, Any] = {
            "csrfmiddlewaretoken": _hidden(sign_in.text, "csrfmiddlewaretoken"),
            "next": _hidden(sign_in.text, "next"),
            "username": OPERATOR,
            "password": password,
        }
        signed_in = browser.post(f"{hub}/sign-in", data=said, headers={"Referer": f"{hub}/sign-in"})
        assert signed_in.status_code == 302, signed_in.text[-3000:]
        page = browser.get(hub + signed_in.headers["location"])
        assert page.status_code == 200, (page.status_code, page.headers, page.text[-3000:])
        chosen: dict[str, Any] = {
            "agent": agent,
            "reach": "all",
            "scopes": re.findall(r'name="scopes" value="([^"]+)"', page.text),
            "days": "1",
        }
        page = _send(browser, address, page, chosen | {"decision": "look"})  # at what the agent may do
        assert page.status_code == 200, page.text[-3000:]
        shown = _hidden(page.text, "shown")
        answer = _send(browser, address, page, chosen | {"shown": shown, "decision": "allow"} | form)
    assert answer.status_code == 303, answer.text[-3000:]
    return str(answer.headers["location"])


def main(agent: str, password: str, address: str) -> None:
    answer = find_answer(address, agent=agent, password=password)
    transport = httpx2.HTTPTransport(retries=5)  # a client may begin to listen when it has opened the browser
    try:
        with httpx2.Client(transport=transport, trust_env=False, timeout=60) as browser:
            browser.get(answer)
    except httpx2.ConnectError:
        print(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
