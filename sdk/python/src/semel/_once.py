"""`once`: a function whose effect happens at most once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeVar, overload

from . import _json, _key
from ._errors import InvalidCall

if TYPE_CHECKING:
    from datetime import timedelta

    from ._effect import Call

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Exceptions = type[BaseException] | tuple[type[BaseException], ...]


class Once(Protocol[P, R_co]):
    """A protected function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    @overload
    def __get__(self, owner: None, kind: type[Any]) -> Once[P, R_co]: ...
    @overload
    def __get__(self, owner: object, kind: type[Any]) -> Callable[..., R_co]:
        """A method of an object, as for any function."""

    def again(self, why: str) -> Callable[P, R_co]:
        """The function, once more and on purpose. The same reason is the same repeat."""

    @overload
    def probe(self, fn: Callable[P, Any], /) -> Callable[P, Any]: ...
    @overload
    def probe(self, *, quiet: float | str | timedelta | None = None) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
        """A read that tells whether it happened: a value, None for no; if it raises, nobody knows.

        A no counts only `quiet` seconds after the last attempt.
        """


@overload
def once(fn: Callable[P, R], /) -> Once[P, R]: ...
@overload
def once(
    *,
    key: str | None = None,
    by: Iterable[str] | None = None,
    name: str | None = None,
    refused: Exceptions = (),
    keyed_for: float | str | timedelta | None = None,
    codec: _json.Codec | None = None,
) -> Callable[[Callable[P, R]], Once[P, R]]: ...
def once(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    key: str | None = None,
    by: Iterable[str] | None = None,
    name: str | None = None,
    refused: Exceptions = (),
    keyed_for: float | str | timedelta | None = None,
    codec: _json.Codec | None = None,
) -> Any:
    """Makes the effect of a function happen at most once.

    key: a template over the parameters ("invoice-{invoice}"); it names the effect for ever.
    by: only these parameters make two calls the same, within the run.
    name: the name in the ledger; else the function's own.
    refused: exceptions of these types prove that nothing happened.
    keyed_for: the tool honours `current().idempotency_key` for so long, so a doubt is sent again with it.
    codec: makes the reply JSON and rebuilds it; else the return annotation does.
    """

    def decorate(fn: Callable[..., Any]) -> Any:
        if not callable(fn) or isinstance(fn, type):
            raise InvalidCall(f"once protects a function, and {fn!r} is none. A template is given as key=.")
        own = name or getattr(fn, "__name__", None)
        if not own or own == "<lambda>":
            raise InvalidCall("A function without a name of its own needs name=.")
        return _protect(
            Protected(
                fn=fn,
                name=own,
                place=f"{fn.__module__}.{fn.__qualname__}" if name is None else None,
                parameters=_key.Parameters(own, fn, key, by),
                keyed_for=None if keyed_for is None else _key.duration(keyed_for),
                codec=codec or _json.Annotated(fn),
                refused=refused,
                found=Probe(),
                is_generator=_is_generator(fn),
            )
        )

    return decorate if fn is None else decorate(fn)


class Probe:
    """Shared by a function and its repeats."""

    look: Callable[..., Any] | None = None
    quiet: str | None = None


class Protected(NamedTuple):
    """A function, and how its calls are told apart."""

    fn: Callable[..., Any]
    name: str
    place: str | None  # where its name comes from; None if the name was given
    parameters: _key.Parameters
    keyed_for: str | None
    codec: _json.Codec
    refused: Exceptions
    found: Probe
    is_generator: bool
    again: str | None = None

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        from ._effect import Call, types
        from ._steps import Do

        if self.is_generator:
            raise InvalidCall(
                f"{self.name} is a generator, so its effects come later. Nothing ran. Protect what consumes it.",
                action=self.name,
            )
        self.refuse_namesake()
        arguments, key = self.parameters.read(args, kwargs)
        look = self.found.look
        return Call(
            name=self.name,
            arguments=arguments,
            options={
                "class": "consequential",
                "key": key,
                "by": self.parameters.by,
                "keyed_for": self.keyed_for,
                "again": self.again,
            },
            act=Do(lambda: self.fn(*args, **kwargs)),
            codec=self.codec,
            refused=types(self.refused, "refused") if self.refused else (),
            look=None if look is None else (lambda: look(*args, **kwargs)),
            quiet=self.found.quiet,
        )


    def refuse_namesake(self) -> None:
        """Two functions of one name are one action: an equal call of the second would get the reply of the first."""
        from ._transport import places

        known = self.place and places.setdefault(self.name, self.place)
        if known != self.place:
            raise InvalidCall(
                f"{self.place} did not run: {known} has its name, and the two would be one effect. Give one of them name=.",
                action=self.name,
            )


def _is_generator(fn: Any) -> bool:
    import inspect

    return inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn)


def _is_async(fn: Any) -> bool:
    import inspect

    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def _protect(protected: Protected) -> Any:
    # Real functions, because frameworks read their signature, their name and whether they are async.
    wrapper: Any
    if _is_async(protected.fn):

        @functools.wraps(protected.fn)
        async def acall(*args: Any, **kwargs: Any) -> Any:
            from ._effect import lifecycle
            from ._steps import adrive

            return (await adrive(lifecycle(protected.call(args, kwargs)))).reply

        wrapper = acall
    else:

        @functools.wraps(protected.fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            from ._effect import lifecycle
            from ._steps import drive

            return drive(lifecycle(protected.call(args, kwargs))).reply

        wrapper = call

    def again(why: str) -> Any:
        """The function, once more and on purpose. The same reason is the same repeat."""
        if not why:
            raise InvalidCall(f"{protected.name}: a repeat on purpose needs a reason.")
        return _protect(protected._replace(again=why))

    def probe(fn: Callable[..., Any] | None = None, *, quiet: float | str | timedelta | None = None) -> Any:
        """Decorates a read that tells whether it happened: a value, None for no; if it raises, nobody knows."""

        def take(fn: Callable[..., Any]) -> Callable[..., Any]:
            if _is_async(fn) and not _is_async(protected.fn):
                raise InvalidCall(f"{protected.name} is synchronous, so its probe must be.")
            protected.found.look = fn
            protected.found.quiet = None if quiet is None else _key.duration(quiet)
            return fn

        return take if fn is None else take(fn)

    wrapper.again, wrapper.probe = again, probe
    return wrapper
