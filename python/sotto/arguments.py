"""What callers pass, as the engine takes it: whatever it could not take is an Error of one line that names it."""

from __future__ import annotations

import json
import math
import operator
import os
from typing import Any, Mapping, Union

from . import _engine

PathLike = Union[str, "os.PathLike[str]"]


def _refuse(name: str, needed: str, value: Any) -> _engine.Error:
    shown = " ".join(repr(value).split())
    return _engine.Error(f"{name} must be {needed}, not {shown if len(shown) <= 60 else type(value).__name__}")


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _refuse(name, "text", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _refuse(name, "Unicode text", value) from None
    return value


def path(name: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise _refuse(name, "a path", value)
    place = text(name, os.fspath(value))
    if not place or "\0" in place:
        raise _refuse(name, "a path", value)
    return place


def number(name: str, value: Any) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise _refuse(name, "a number", value)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise _refuse(name, "a number", value) from None


def whole(name: str, value: Any) -> int:
    try:
        if isinstance(value, bool) or not 0 <= operator.index(value) < 2**31:
            raise TypeError
    except TypeError:
        raise _refuse(name, "a whole number of 0 or more", value) from None
    return operator.index(value)


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _refuse(name, "True or False", value)
    return value


def mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _refuse(name, "a dictionary", value)
    return {text(f"a word of {name}", key): entry for key, entry in value.items()}


def as_json(name: str, value: Any) -> str:
    """Of a setting: text, a number, a truth, or lists and dictionaries of these; numpy's among them."""

    def plain(part: Any) -> Any:
        if hasattr(part, "tolist"):
            part = part.tolist()
        if isinstance(part, float) and not math.isfinite(part):
            raise _refuse(name, "a finite number", part)
        if isinstance(part, (list, tuple)):
            return [plain(entry) for entry in part]
        if isinstance(part, Mapping):
            return {key: plain(entry) for key, entry in mapping(name, part).items()}
        if isinstance(part, str):
            return text(name, part)
        if isinstance(part, (bool, int, float)):
            return part
        raise _refuse(name, "text, a number, True, False, or a list of these", part)

    return json.dumps(plain(value))
