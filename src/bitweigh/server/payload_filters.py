"""Payload filters: JSON conditions on payloads, translated to SQL.

    {"lang": "de", "year": {"gte": 2020}}             all of these
    {"or": [{"lang": {"in": ["de", "fr"]}}, {"not": {"year": {"lt": 2020}}}]}

A name with dots is a path, "author.name". A value is equal only to a value of the same JSON type
(integers and other numbers are one type), and null is equal to a field that is null or missing.
Comparisons are between numbers, or between strings by code point.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import orjson

from bitweigh.server.problems import Problem
from bitweigh.server.settings import Limits

__all__ = ["Condition", "condition_of", "has_nul", "json_path", "literal"]

_COMPARISONS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_OPERATORS = ("eq", "in", *_COMPARISONS)
_GROUPS = ("and", "or", "not")
_MAX_PATH = 256
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class Condition(NamedTuple):
    """An SQL expression over the columns of `items`, and the values for its question marks."""

    sql: str
    given: tuple[object, ...]


def condition_of(filter_: object, limits: Limits) -> Condition:
    """Translate a filter; raises Problem 422 that says what is wrong with it."""
    return _Translation(limits).all_of(filter_, "filter", 1)


def json_path(field: str) -> str:
    """The JSON path of a field, "a.b" -> `$."a"."b"`."""
    parts = field.split(".")
    if not all(parts) or len(field) > _MAX_PATH or any('"' in part for part in parts):
        raise _wrong(
            f"filter fields must be names without quotes joined by dots, got {field!r:.100}"
        )
    # Escaped as payloads are: SQLite compares names as they are written.
    return "$" + "".join(f".{orjson.dumps(part).decode()}" for part in parts)


def has_nul(payload: str) -> bool:
    """Whether a string of a payload, as JSON, has U+0000, where SQLite ends strings."""
    return "\\u0000" in payload and _NUL.search(payload) is not None


class _Translation:
    """One translation, which counts conditions."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.conditions = 0

    def all_of(self, filter_: object, where: str, depth: int) -> Condition:
        if not isinstance(filter_, dict):
            raise _wrong(f"{where} must be an object, got {_kind(filter_)}")
        if depth > self.limits.filter_depth:
            raise _wrong(f"{where} must be nested at most {self.limits.filter_depth} deep")
        parts = [
            self.group(name, value, f"{where}.{name}", depth)
            if name in _GROUPS
            else self.field(name, value, f"{where}.{name}")
            for name, value in filter_.items()
        ]
        if not parts:
            self.count()
        return _joined(parts, " AND ", "1")

    def group(self, name: str, value: object, where: str, depth: int) -> Condition:
        if name == "not":
            inner = self.all_of(value, where, depth + 1)
            # IS NOT TRUE: a comparison with a missing field is neither true nor false.
            return Condition(f"(({inner.sql}) IS NOT TRUE)", inner.given)
        if not isinstance(value, list):
            raise _wrong(f"{where} must be a list of filters, got {_kind(value)}")
        parts = [
            self.all_of(part, f"{where}[{place}]", depth + 1) for place, part in enumerate(value)
        ]
        if not parts:
            self.count()
        return _joined(parts, " AND ", "1") if name == "and" else _joined(parts, " OR ", "0")

    def field(self, name: str, value: object, where: str) -> Condition:
        path = json_path(name)
        if not isinstance(value, dict):
            return self.equal(path, value, where)
        if not value:
            raise _wrong(f"{where} must have one of {', '.join(_OPERATORS)}")
        parts = []
        for operator, operand in value.items():
            inner = f"{where}.{operator}"
            if operator == "eq":
                parts.append(self.equal(path, operand, inner))
            elif operator == "in":
                if not isinstance(operand, list):
                    raise _wrong(f"{inner} must be a list, got {_kind(operand)}")
                if not operand:
                    self.count()
                choices = [self.equal(path, one, inner) for one in operand]
                parts.append(_joined(choices, " OR ", "0"))
            elif operator in _COMPARISONS:
                parts.append(self.compared(path, _COMPARISONS[operator], operand, inner))
            else:
                raise _wrong(f"{where} must have one of {', '.join(_OPERATORS)}, got {operator!r}")
        return _joined(parts, " AND ", "1")

    def equal(self, path: str, value: object, where: str) -> Condition:
        self.count()
        field = f"json_extract(payload, {literal(path)})"
        if value is None:
            return Condition(f"({field} IS NULL)", ())
        kind = f"json_type(payload, {literal(path)})"
        if isinstance(value, bool):
            return Condition(f"({kind} = ?)", ("true" if value else "false",))
        if isinstance(value, str):
            _text(value, where)
            return Condition(f"({field} = ? AND {kind} = 'text')", (value,))
        _number(value, where)
        return Condition(f"({field} = ? AND {kind} IN ('integer', 'real'))", (value,))

    def compared(self, path: str, sign: str, value: object, where: str) -> Condition:
        self.count()
        field = f"json_extract(payload, {literal(path)})"
        kind = f"json_type(payload, {literal(path)})"
        if isinstance(value, str):
            _text(value, where)
            return Condition(f"({field} {sign} ? AND {kind} = 'text')", (value,))
        _number(value, where)
        return Condition(f"({field} {sign} ? AND {kind} IN ('integer', 'real'))", (value,))

    def count(self) -> None:
        """Count a condition, or a group without any: SQLite bounds how deep SQL may be."""
        self.conditions += 1
        if self.conditions > self.limits.filter_conditions:
            raise _wrong(f"filter must have at most {self.limits.filter_conditions} conditions")


def _joined(parts: list[Condition], word: str, empty: str) -> Condition:
    if not parts:
        return Condition(empty, ())
    given = tuple(value for part in parts for value in part.given)
    return Condition("(" + word.join(part.sql for part in parts) + ")", given)


def _text(value: str, where: str) -> None:
    if "\0" in value:
        raise _wrong(f"{where} must not have the character U+0000")


def _number(value: object, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(f"{where} must be a string or a number, got {_kind(value)}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise _wrong(f"{where} must fit in 64 bits, got {value!r:.40}")


def _kind(value: Any) -> str:  # noqa: ANN401
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    names |= {int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def literal(text: str) -> str:
    """A string in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _wrong(detail: str) -> Problem:
    return Problem(422, "invalid-filter", detail)
