"""Names a call: its arguments, its key, its words on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _json
from ._errors import InvalidCall

_KEY_LENGTH_MAX = 255  # the API's limit
_KEY_HEAD = 190  # with "~" and 64 hexadecimal digits this makes 255
_CODED = {byte: f"%{byte:02X}" for byte in range(256) if not 0x21 <= byte <= 0x7E or byte == 0x25}


def wire_key(name: str, key: str) -> str:
    """A key is scoped to its function. The encoding is injective, so two keys never become one."""
    if not key:
        raise InvalidCall(f"{name}: the key is empty. Nothing ran.", action=name)
    try:
        coded = visible(f"{name}:{key}")
    except UnicodeEncodeError as error:
        raise InvalidCall(f"{name}: the key is not Unicode text. Nothing ran.", action=name) from error
    if len(coded) <= _KEY_LENGTH_MAX:
        return coded
    from hashlib import sha256

    return f"{coded[:_KEY_HEAD]}~{sha256(coded.encode()).hexdigest()}"


def visible(text: str) -> str:
    """Percent-encodes what is no visible ASCII, and "%" itself, so that no two texts become one."""
    return text.encode().decode("latin-1").translate(_CODED)


def duration(value: Any) -> str:
    """Seconds, a timedelta or "24h", as the API writes it."""
    if isinstance(value, str):
        return value
    seconds = value if isinstance(value, (int, float)) else value.total_seconds()
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds * 1000:.0f}ms"


class Template:
    """A key as a template over the parameters: "invoice-{invoice}"."""

    def __init__(self, text: str) -> None:
        from string import Formatter  # the string module compiles patterns: only where a key is given

        self._text, self._formatter = text, Formatter()
        try:
            self._fields = [field for _, field, _, _ in self._formatter.parse(text) if field is not None]
        except ValueError as error:
            raise InvalidCall(f"The key {text!r} is no template: {error}.") from error
        if not text:
            raise InvalidCall("The key is empty.")
        self.roots = {field.split(".")[0].split("[")[0] for field in self._fields}

    def fill(self, name: str, values: Mapping[str, Any]) -> str:
        try:
            for field in self._fields:
                value, _ = self._formatter.get_field(field, (), values)
                if isinstance(value, (dict, list, tuple, set)):
                    raise ValueError(f"{field!r} is a {type(value).__name__}, which has many spellings")
                if value is None or value == "":  # all such calls would have one key
                    raise ValueError(f"{field!r} has no value")
                _json.dump(value)  # the words for an object are often its place in memory
            return self._text.format_map(values)  # as the formatter would, in a fifth of the time
        except (LookupError, AttributeError, ValueError, TypeError, _json.NotJson) as error:
            raise InvalidCall(
                f"{name}: the key {self._text!r} cannot be filled in: {error}. Nothing ran.",
                action=name,
            ) from error


class Parameters:
    """The parameters of a function, with its key and the names that make two calls the same."""

    def __init__(self, name: str, fn: Callable[..., Any], key: str | None, by: Iterable[str] | None) -> None:
        import inspect

        self._name = name
        self._signature = inspect.signature(fn)
        self._rest = next((p.name for p in self._signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
        self._template = None if key is None else Template(key)
        self.by = None if by is None else ([by] if isinstance(by, str) else list(by))
        for wanted, where in ((self._template.roots if self._template else ()), "key"), (self.by or (), "by"):
            for parameter in wanted:
                if parameter not in self._signature.parameters and self._rest is None:
                    raise InvalidCall(
                        f"{name}: {where} names {parameter!r}, which is no parameter of {name}{self._signature}.",
                        action=name,
                    )
        if self.by is not None and not self.by:
            raise InvalidCall(f"{name}: by names no parameter.", action=name)

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
        """The arguments as JSON, and the wire key. A call that does not fit the function is a TypeError, as ever."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = dict(bound.arguments)
        rest = values.pop(self._rest, {}) if self._rest is not None else {}
        # One that has the name of a positional parameter is another argument.
        values.update({f"{self._rest}.{name}" if name in values else name: value for name, value in rest.items()})
        arguments = {}
        for parameter, value in values.items():
            try:
                arguments[parameter] = _json.dump(value)
            except _json.NotJson as error:
                if self._left_out(parameter):
                    continue
                raise InvalidCall(
                    f"{self._name}: the argument {parameter!r} is no JSON ({error}). Nothing ran. "
                    f"Leave it out of what makes two calls the same, with key= or by=.",
                    action=self._name,
                ) from error
        key = None if self._template is None else wire_key(self._name, self._template.fill(self._name, values))
        return arguments, key

    def _left_out(self, parameter: str) -> bool:
        if self.by is not None:
            return parameter not in self.by
        return self._template is not None
