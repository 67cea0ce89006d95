"""Values to JSON, and back by an annotation.

Dataclasses, pydantic models, enums, dates, UUIDs and decimals have one JSON form each. An annotation rebuilds them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

_NUMBER_BITS_MAX = 1300  # the ledger takes numbers up to 400 digits


class NotJson(Exception):
    """Says what is no JSON."""


class Codec(Protocol):
    """Makes a reply JSON and rebuilds it."""

    def dump(self, value: Any) -> Any: ...

    def load(self, data: Any) -> Any: ...


def dump(value: Any) -> Any:
    try:
        return _dump(value)
    except RecursionError:
        raise NotJson("it contains itself, or is nested too deeply") from None


def _dump(value: Any) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        if value.bit_length() > _NUMBER_BITS_MAX:
            raise NotJson("a number of more than 400 digits")
        return value
    if kind is float:
        if value - value != 0:
            raise NotJson(f"{value} is no number in JSON")
        return value
    if kind is list or kind is tuple:
        return [_dump(item) for item in value]
    if kind is dict:
        for name in value:
            if type(name) is not str:
                raise NotJson(f"the name {name!r} in a dict is no string")
        return {name: _dump(item) for name, item in value.items()}
    return _dump_object(value, kind)


def _dump_object(value: Any, kind: type[Any]) -> Any:
    import dataclasses
    import enum

    if isinstance(value, enum.Enum):
        return _dump(value.value)
    if _is_model(kind):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(kind):
        return {f.name: _dump(getattr(value, f.name)) for f in dataclasses.fields(kind) if f.init}
    write = _scalars().get(kind)
    if write is not None:
        return write[0](value)
    plain: Any
    for plain in (str, int, float, list, tuple, dict):
        if isinstance(value, plain):  # a TypedDict is a dict; a NamedTuple or a str of your own is read as its base
            return _dump(plain(value))
    raise NotJson(f"a {kind.__qualname__}")


def _is_model(kind: Any) -> bool:
    return "pydantic" in sys.modules and isinstance(kind, type) and issubclass(kind, sys.modules["pydantic"].BaseModel)


def _scalars() -> dict[Any, tuple[Callable[[Any], str], Callable[[Any], Any]]]:
    import datetime
    import decimal
    import uuid

    return {
        datetime.datetime: (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
        datetime.date: (datetime.date.isoformat, datetime.date.fromisoformat),
        datetime.time: (datetime.time.isoformat, datetime.time.fromisoformat),
        uuid.UUID: (str, uuid.UUID),
        decimal.Decimal: (str, decimal.Decimal),
    }


def checked_text(data: Any) -> Any:
    """What a codec made, if it can be written as JSON."""
    import json

    json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
    return data


class Plain:
    """Replies without an annotation: JSON as it is."""

    def dump(self, value: Any) -> Any:
        return checked(value, dump(value), self.load)

    def load(self, data: Any) -> Any:
        return data


class Annotated:
    """Replies rebuilt from the return annotation of a function."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        self._hint: Any = _UNREAD

    def dump(self, value: Any) -> Any:
        return checked(value, dump(value), self.load)

    def load(self, data: Any) -> Any:
        return build(self.hint(), data)

    def hint(self) -> Any:
        # Read at the first reply: at import, names in the annotation may not be there yet.
        if self._hint is _UNREAD:
            import inspect
            import typing
            from types import SimpleNamespace

            try:
                inner = inspect.unwrap(self._fn)
                only = SimpleNamespace(__annotations__={"return": inner.__annotations__.get("return", Any)})
                self._hint = typing.get_type_hints(only, getattr(inner, "__globals__", {}))["return"]
            except Exception:
                self._hint = _UNKNOWN  # a reply that is more than JSON is then reported, not guessed
        return self._hint


_UNREAD, _UNKNOWN = object(), object()


def gives_only_none(codec: Codec) -> bool:
    """Whether the annotation leaves no other reply to know."""
    return isinstance(codec, Annotated) and codec.hint() is type(None)


def checked(value: Any, data: Any, load: Callable[[Any], Any]) -> Any:
    """The data, if a repeat would get a reply of the same types."""
    try:
        rebuilt = load(data)
    except Exception as error:
        raise NotJson(f"its JSON form cannot be read back: {error}") from error
    if not _alike(value, rebuilt):
        raise NotJson(f"a repeat could not rebuild this {type(value).__qualname__}; annotate what the function returns")
    return data


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[name], b[name]) for name in a)
    if isinstance(a, (int, float, str)) and isinstance(b, (int, float, str)):
        return bool(a == b)
    return type(a) is type(b)


def build(hint: Any, data: Any) -> Any:
    """Rebuilds JSON as the annotation says. Raises if it does not fit."""
    import types
    import typing

    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return build(typing.get_args(hint)[0], data)
    if origin is typing.Union or origin is types.UnionType:
        return _first(typing.get_args(hint), data)
    if origin in (list, tuple, dict) or (origin is not None and isinstance(origin, type)):
        return _collection(hint, origin, typing.get_args(hint), data)
    if not isinstance(hint, type):
        return data  # Any, Literal, a type variable, a NewType
    return _object(hint, data)


def _first(members: tuple[Any, ...], data: Any) -> Any:
    if data is None and type(None) in members:
        return None
    trouble: Exception | None = None
    # Exact JSON types first, so that `str | UUID` keeps its text.
    for member in sorted(members, key=lambda m: m is not type(data)):
        if member is not type(None):
            try:
                return build(member, data)
            except Exception as error:
                trouble = error
    raise TypeError(f"{data!r} is none of {members}") from trouble


def _collection(hint: Any, origin: Any, inner: tuple[Any, ...], data: Any) -> Any:
    from collections.abc import Mapping, Sequence

    if _is_model(hint):
        return hint.model_validate(data)
    if issubclass(origin, tuple):
        _want(list, data)
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(build(inner[0], item) for item in data)
        if len(inner) != len(data):
            raise TypeError(f"{len(data)} items instead of {len(inner)}")
        return tuple(map(build, inner, data))
    if issubclass(origin, Mapping):
        _want(dict, data)
        return {name: build(inner[1], item) for name, item in data.items()}
    if issubclass(origin, Sequence):
        _want(list, data)
        return [build(inner[0], item) for item in data]
    return data


def _object(hint: type[Any], data: Any) -> Any:
    if hint is float and type(data) is int:
        return float(data)
    if hint in (bool, int, float, str, list, dict, type(None)):
        _want(hint, data)
        return data
    import dataclasses
    import enum
    import typing

    if _is_model(hint):
        return hint.model_validate(data)
    if issubclass(hint, enum.Enum):
        return next(member for member in hint if dump(member) == data)
    if dataclasses.is_dataclass(hint):
        _want(dict, data)
        hints = typing.get_type_hints(hint)
        return hint(**{name: build(hints.get(name, Any), item) for name, item in data.items()})
    if hint in _scalars():
        return _scalars()[hint][1](data)
    if hint is tuple:
        return tuple(data)
    return data


def _want(kind: type[Any], data: Any) -> None:
    if type(data) is not kind:
        raise TypeError(f"{data!r} is no {kind.__name__}")
