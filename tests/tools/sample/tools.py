"""One function for each way in which a tool can behave."""

from __future__ import annotations

import base64
import json
import os
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

from unitools import runtime


def echo(text: str = "", **rest: Any) -> dict[str, Any]:
    call = runtime.current_call()
    runtime.used_source("ruleset", name="echo-rules", version="7")
    return {"text": text, "dry_run": call.dry_run, "currency": call.currency, **rest}


def strict(**rest: Any) -> dict[str, Any]:
    """Takes whatever a test's input schema names."""
    return rest


def write(text: str = "") -> dict[str, Any]:
    return {"written": text, "key": runtime.current_call().idempotency_key}


def raises(text: str = "") -> dict[str, Any]:
    raise ValueError(f"the secret is {text}")


def sleeps(text: str = "") -> dict[str, Any]:
    time.sleep(60)
    return {"text": text}


def crashes(text: str = "") -> dict[str, Any]:
    os._exit(3)


def wrong_shape(text: str = "") -> dict[str, Any]:
    return {"answer": "not a number"}


def not_json(text: str = "") -> Any:
    return {"object": object()}


def plans(text: str = "") -> dict[str, Any]:
    return {
        "text": text,
        "post_execution_plan": {"steps": [{"id": "repeat", "tool": "sample.tools.echo", "arguments": {"text": text}}]},
    }


def out_of_stock(text: str = "") -> dict[str, Any]:
    raise runtime.OutOfStock("Only 3 are left.", available=3)


def reads_host_file(text: str = "") -> dict[str, Any]:
    with open("/etc/shadow") as file:  # noqa: PTH123
        return {"text": file.read()}


def large(text: str = "") -> dict[str, Any]:
    return {"text": "x" * 2_000_000}


def configured(text: str = "") -> dict[str, Any]:
    """Uses what its tenant has set, and gives none of it away."""
    return {"region": runtime.config().get("region"), "letters": len(runtime.secret("API_TOKEN")), "text": text}


def fetches(text: str = "") -> dict[str, Any]:
    with urllib.request.urlopen(text) as answer:
        return {"text": answer.read().decode()}


def leaks(how: str, text: str = "") -> dict[str, Any]:
    """Gives its secret away."""
    secret = runtime.secret("API_TOKEN")
    match how:
        case "returns":
            return {"deep": [{"token": f"Bearer {secret}"}]}
        case "returns_as_name":
            return {secret: 1}
        case "returns_as_base64":
            return {"basic": base64.b64encode(f"user:{secret}".encode()).decode()}
        case "returns_as_url":
            return {"link": f"https://example.org/?key={quote(secret, safe='')}"}
        case "returns_as_json":
            return {"body": json.dumps({"key": secret})}
        case "prints":
            print(f"token={secret}")
        case "prints_as_hex":
            print(secret.encode().hex())
        case "raises":
            raise RuntimeError(f"401 for {secret}")
        case "refuses":
            raise runtime.NotFound("No such account.", account=secret)
        case "warns":
            runtime.warn(f"The token {secret} will expire.")
        case "reaches":
            Path(f"/nowhere/{secret}").read_text()
    return {"how": how}
