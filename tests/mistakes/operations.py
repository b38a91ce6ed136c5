"""Operations: mistakes in the request that a call of a service becomes."""

from __future__ import annotations

from typing import Any

from tests.mistakes.base import KEY, Changes, Mistake
from tests.mistakes.origins import DIGEST

DOCUMENT = {"title": "Shop", "version": "3", "openapi": "3.1.0", "digest": DIGEST}
READ_FROM = {"document": DOCUMENT, "operation": "getItem", "operation_digest": DIGEST}
ITEM = {"argument": "item", "in": "path", "name": "item"}
PAGE = {"argument": "page", "in": "query", "name": "page"}
KIND = {"argument": "kind", "in": "body", "name": "kind"}
KIND_HEADER = {"argument": "about", "in": "body", "name": "kind", "header": "X-About"}
BEARER = {"secret": "API_KEY", "in": "header", "name": "Authorization", "scheme": "bearer"}
ACCOUNT = {"authorization_url": "https://auth.example.org/authorize", "token_url": "https://auth.example.org/token"}
JSON, PARTS = {"media_type": "application/json"}, {"media_type": "multipart/form-data"}
HOST = "api.example.org"
RESULT: dict[str, Any] = {
    "type": "object",
    "required": ["status", "body"],
    "properties": {"status": {"type": "integer"}, "body": {}},
}
AT = "/implementation/operation"


def served(*more: dict[str, Any], **changes: Any) -> Changes:
    """A manifest of ``GET https://api.example.org/v1/items/{item}``. ``more``: arguments beside it; ``changes``: of the operation."""
    arguments = [ITEM, *more]
    operation: dict[str, Any] = {
        "server": f"https://{HOST}/v1",
        "method": "GET",
        "path": "/items/{item}",
        "arguments": arguments,
    }
    operation |= changes
    names = [each["argument"] for each in arguments]
    names += [operation["body"]["argument"]] if "argument" in operation.get("body", {}) else []
    return {
        "implementation": {"kind": "openapi", "operation": operation},
        "origin": READ_FROM,
        "input_schema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["item"],
            "properties": {name: {"type": "string"} for name in names},
        },
        "output_schema": RESULT,
        "side_effect": "Write",
        "safety_class": "Medium",
        "capabilities": {"net": [{"host": HOST, "methods": [operation["method"]]}]},
    }


def taking(**changes: Any) -> Changes:
    return served() | {"input_schema": served()["input_schema"] | changes}


OPERATIONS: dict[str, list[Mistake]] = {
    "operation.outside_sandbox": [
        Mistake("a plain process", served() | {"requires_sandbox": False}, "/requires_sandbox", served()),
        Mistake("packages", served() | {"dependencies": ["idna==3.10"]}, "/dependencies", served()),
    ],
    "operation.server": [
        Mistake("an address", served(server="https://10.0.0.1"), f"{AT}/server", served()),
        Mistake("an address in disguise", served(server="https://0x7f.1"), f"{AT}/server", served()),
        Mistake("a way out", served(server=f"https://{HOST}/v1/.."), f"{AT}/server", served()),
    ],
    "operation.host_missing": [
        Mistake(
            "not named", served() | {"capabilities": {"net": [{"host": "example.org"}]}}, "/capabilities/net", served()
        ),
        Mistake("another port", served(server=f"https://{HOST}:8443"), "/capabilities/net", served()),
        Mistake(
            "another method",
            served() | {"capabilities": {"net": [{"host": HOST, "methods": ["POST"]}]}},
            "/capabilities/net",
            served(),
        ),
    ],
    "operation.beyond": [
        Mistake(
            "another host",
            served() | {"capabilities": {"net": [{"host": HOST}, {"host": "example.com"}]}},
            "/capabilities/net/1/host",
            served(),
        ),
        Mistake(
            "a folder",
            served() | {"capabilities": {"net": [{"host": HOST}], "fs": [{"path": "/data", "actions": ["read"]}]}},
            "/capabilities/fs",
            served(),
        ),
    ],
    "operation.path": [
        Mistake("no argument", served(path="/items/{item}/{part}"), f"{AT}/path", served()),
        Mistake("not in the path", served(path="/items"), f"{AT}/arguments/0/name", served()),
        Mistake("a way out", served(path="/items/../{item}"), f"{AT}/path", served()),
        Mistake("a way out in disguise", served(path="/items/..;/{item}"), f"{AT}/path", served()),
        Mistake("twice", served(path="/{item}/{item}"), f"{AT}/path", served()),
    ],
    "operation.path_optional": [Mistake("left out", taking(required=[]), "/input_schema/required", taking())],
    "operation.arguments": [
        Mistake(
            "a property without a place",
            taking(properties={"item": {}, "more": {}}),
            "/input_schema/properties/more",
            taking(),
        ),
        Mistake("a place without a property", taking(properties={}), f"{AT}/arguments/0/argument", taking()),
        Mistake("twice", served(PAGE, PAGE), f"{AT}/arguments/2/argument", served(PAGE)),
    ],
    "operation.open_input": [
        Mistake("open", taking(additionalProperties=True), "/input_schema/additionalProperties", taking())
    ],
    "operation.reserved_header": [
        *(
            Mistake(
                name,
                served({"argument": "h", "in": "header", "name": name}),
                f"{AT}/arguments/1/name",
                served({"argument": "h", "in": "header", "name": "X-Page"}),
            )
            for name in (
                "Host",
                "content-length",
                "Transfer-Encoding",
                "Connection",
                "Cookie",
                "Authorization",
                "X-Forwarded-For",
            )
        ),
        *(
            Mistake(
                f"{name} of a part",
                served(KIND, KIND_HEADER | {"header": name}, method="POST", body=PARTS),
                f"{AT}/arguments/2/header",
                served(KIND, KIND_HEADER, method="POST", body=PARTS),
            )
            for name in ("Content-Disposition", "content-type", "Host", "Authorization")
        ),
    ],
    "operation.form": [
        Mistake(
            "a line end",
            served({"argument": "h", "in": "header", "name": "X-Page: 1"}),
            f"{AT}/arguments/1/name",
            served({"argument": "h", "in": "header", "name": "X-Page"}),
        ),
        Mistake(
            "a style", served(PAGE | {"style": "matrix"}), f"{AT}/arguments/1/style", served(PAGE | {"style": "form"})
        ),
    ],
    "operation.body": [
        Mistake("of a GET", served(body=JSON), f"{AT}/body", served()),
        Mistake("none", served(KIND, method="POST"), f"{AT}/arguments/1/in", served(KIND, method="POST", body=JSON)),
        Mistake(
            "twice",
            served(KIND, method="POST", body=JSON | {"argument": "whole"}),
            f"{AT}/body/argument",
            served(method="POST", body=JSON | {"argument": "whole"}),
        ),
        Mistake(
            "a text taken apart",
            served(KIND, method="POST", body={"media_type": "text/csv"}),
            f"{AT}/body",
            served(KIND, method="POST", body=JSON),
        ),
    ],
    "operation.files": [
        Mistake(
            "in a query",
            served(PAGE | {"file": True}),
            f"{AT}/arguments/1/argument",
            served(PAGE),
        ),
        Mistake(
            "in JSON",
            served(KIND | {"file": True}, method="POST", body=JSON),
            f"{AT}/arguments/1/argument",
            served(KIND | {"file": True}, method="POST", body=PARTS),
        ),
        Mistake(
            "a form as one file",
            served(method="POST", body=PARTS | {"argument": "whole", "file": True}),
            f"{AT}/body",
            served(method="POST", body={"media_type": "image/*", "argument": "whole", "file": True}),
        ),
        Mistake(
            "a header of JSON",
            served(KIND, KIND_HEADER, method="POST", body=JSON),
            f"{AT}/arguments/2/header",
            served(KIND, KIND_HEADER, method="POST", body=PARTS),
        ),
        Mistake(
            "a header of no part",
            served(KIND_HEADER, method="POST", body=PARTS),
            f"{AT}/arguments/1/header",
            served(KIND, KIND_HEADER, method="POST", body=PARTS),
        ),
        Mistake(
            "JSON that is required",
            served(KIND, method="POST", body=JSON | {"required": True}),
            f"{AT}/body/required",
            served(KIND, method="POST", body=PARTS | {"required": True}),
        ),
        Mistake(
            "types of no file",
            served(method="POST", body={"media_type": "text/csv", "argument": "whole", "media_types": ["text/csv"]}),
            f"{AT}/body/media_types",
            served(method="POST", body={"media_type": "text/csv", "argument": "whole"}),
        ),
    ],
    "operation.mixed_credentials": [
        Mistake(
            "both",
            served(account=ACCOUNT, credentials=[BEARER]) | {"secrets": [KEY]},
            f"{AT}/credentials",
            served(account=ACCOUNT),
        ),
    ],
    "operation.credentials": [
        Mistake(
            "unknown",
            served(credentials=[BEARER]),
            f"{AT}/credentials/0/secret",
            served(credentials=[BEARER]) | {"secrets": [KEY]},
        ),
        Mistake(
            "unused",
            served() | {"secrets": [KEY]},
            "/secrets/0/name",
            served(credentials=[BEARER]) | {"secrets": [KEY]},
        ),
        Mistake(
            "an argument's place",
            served(PAGE, credentials=[BEARER | {"in": "query", "name": "page", "scheme": "plain"}])
            | {"secrets": [KEY]},
            f"{AT}/credentials/0/name",
            served(PAGE, credentials=[BEARER]) | {"secrets": [KEY]},
        ),
        Mistake(
            "an argument's place, in other letters",
            served(PAGE, credentials=[BEARER | {"in": "query", "name": "Page", "scheme": "plain"}])
            | {"secrets": [KEY]},
            f"{AT}/credentials/0/name",
            served(PAGE, credentials=[BEARER]) | {"secrets": [KEY]},
        ),
        Mistake(
            "the gate's",
            served(credentials=[BEARER | {"name": "Host"}]) | {"secrets": [KEY]},
            f"{AT}/credentials/0/name",
            served(credentials=[BEARER]) | {"secrets": [KEY]},
        ),
    ],
    "operation.idempotency": [
        Mistake(
            "no header",
            served(method="POST") | {"idempotency": "keyed"},
            "/idempotency",
            served(method="POST", idempotency_header="Idempotency-Key") | {"idempotency": "keyed"},
        )
    ],
    "operation.result": [Mistake("any", served() | {"output_schema": {"type": "object"}}, "/output_schema", served())],
}
