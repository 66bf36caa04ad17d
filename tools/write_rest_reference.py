"""Write docs/rest.md, the reference of the REST API, from the server's own OpenAPI document."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bitweigh.server.openapi import document

_JSON = "application/json"
TARGET = Path(__file__).parent.parent / "docs" / "rest.md"
_HEAD = """\
# The REST API

Written by `tools/write_rest_reference.py` from the OpenAPI document that a server has at
`/openapi.json`. [server.md](server.md) explains the API by examples, [security.md](security.md)
lists its limits.

Bodies are JSON unless a route says otherwise. A key goes into a header, `Authorization: Bearer
KEY`. With `?ids=string` ids in answers are strings, for languages that round integers above 2^53.
A request that is refused gets a status and an `application/problem+json` body (RFC 9457), whose
`detail` says what was expected and what came.
"""
_OTHER_BODIES = {
    "upsert": "or an Arrow stream, `application/vnd.apache.arrow.stream`, with the columns `id` or "
    "`key`, `vector` or `code`, and perhaps `payload`, a JSON object in each row; other columns "
    "are fields of the payload",
    "restore_snapshot": "or the name of a snapshot that the server keeps, as JSON: "
    '`{"snapshot": "..."}`',
}


def text() -> str:
    """The whole page."""
    given = document()
    schemas = given["components"]["schemas"]
    parts = [_HEAD, "## Routes\n", "| route | scope | does |", "|---|---|---|"]
    operations = [
        (method.upper(), path, operation)
        for path, methods in given["paths"].items()
        for method, operation in methods.items()
    ]
    for method, path, operation in operations:
        scope = operation.get("x-scope", "none")
        parts.append(f"| `{method} {path}` | {scope} | {operation['summary'].rstrip('.')} |")
    parts.append("\n## Bodies and parameters\n")
    for method, path, operation in operations:
        lines = _details(operation)
        if lines:
            parts += [f"### {method} {path}\n", *lines, ""]
    parts.append("## Schemas\n")
    for name in sorted(schemas):
        parts += _schema(name, schemas[name])
    return "\n".join(parts).rstrip() + "\n"


def _details(operation: dict[str, Any]) -> list[str]:
    lines = []
    if "requestBody" in operation:
        (kind, content), *_ = operation["requestBody"]["content"].items()
        told = _type(content["schema"]) if kind == _JSON else f"a file, `{kind}`"
        other = _OTHER_BODIES.get(operation["operationId"])
        lines.append(f"- Body: {told}{', ' + other if other else ''}.")
    done = next(one for status, one in operation["responses"].items() if status.startswith("2"))
    answer = done["content"].get(_JSON, {}).get("schema", {})
    if "$ref" in answer:
        lines.append(f"- Answer: {_type(answer)}.")
    lines += [
        f"- `?{parameter['name']}=`: {parameter['description']}."
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query"
    ]
    return lines


def _schema(name: str, schema: dict[str, Any]) -> list[str]:
    described = " ".join(schema.get("description", "").replace("``", "`").split())
    lines = [f"### {name}\n", described + "\n", "| field | type | meaning |", "|---|---|---|"]
    required = schema.get("required", ())
    for field, told in schema["properties"].items():
        kind = _type(told)
        if field in required:
            kind += ", required"
        elif told.get("default") not in (None, []):
            kind += f", {_default(told['default'])} by default"
        meaning = " ".join(told.get("description", "").split())
        lines.append(f"| `{field}` | {kind} | {meaning} |")
    return [*lines, ""]


def _default(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"`{value}`"


def _type(schema: dict[str, Any]) -> str:
    """A schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"] if one.get("type") != "null")
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"] if one is not None)
    if schema.get("type") == "array":
        if "prefixItems" in schema:
            return "pairs of numbers"
        return f"list of {_type(schema['items'])}"
    return str(schema.get("type", "any"))


def main() -> None:
    """Write the page, into another folder if one is given."""
    target = Path(sys.argv[1]) / TARGET.name if len(sys.argv) > 1 else TARGET
    target.write_text(text())


if __name__ == "__main__":
    main()
