from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from typing import Any, Literal, TypedDict

import pytest
from conftest import World

import semel
from semel import _json

pydantic = pytest.importorskip("pydantic")


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Line:
    text: str
    price: decimal.Decimal


@dataclasses.dataclass(frozen=True)
class Charge:
    id: uuid.UUID
    at: datetime.datetime
    lines: list[Line]
    colour: Colour | None = None


class Model(pydantic.BaseModel):
    n: int
    line: Line | None = None


class Typed(TypedDict):
    a: int


LINE = Line("a", decimal.Decimal("1.50"))
CHARGE = Charge(uuid.UUID(int=1), datetime.datetime(2026, 1, 2, 3, 4, 5), [LINE], Colour.RED)
CASES: list[tuple[Any, Any]] = [
    (Charge, CHARGE),
    (Charge | None, None),
    (Charge | None, CHARGE),
    (list[Charge], [CHARGE, CHARGE]),
    (dict[str, Line], {"x": LINE}),
    (tuple[int, Line], (1, LINE)),
    (tuple[Line, ...], (LINE, LINE)),
    (Model, Model(n=1, line=LINE)),
    (list[Model], [Model(n=1)]),
    (Model | str, "text"),
    (Line | Model, Model(n=2)),
    (Colour, Colour.RED),
    (Level, Level.HIGH),
    (float, 1.0),
    (Literal["a"], "a"),
    (Typed, {"a": 1}),
    (datetime.date, datetime.date(2026, 1, 2)),
    (Any, {"a": [1, 2.5, "x", None, True]}),
    (int, 2**80),
]


@pytest.mark.parametrize(("hint", "value"), CASES, ids=lambda case: str(case)[:40])
def test_a_reply_comes_back_as_it_went(hint: Any, value: Any) -> None:
    def fn() -> None: ...

    fn.__annotations__["return"] = hint
    codec = _json.Annotated(fn)
    data = json.loads(json.dumps(codec.dump(value)))
    rebuilt = codec.load(data)
    assert rebuilt == value
    assert type(rebuilt) is type(value)


def test_a_reply_whose_types_would_be_lost_is_reported() -> None:
    for value in (LINE, [LINE], {"a": Model(n=1)}, datetime.date(2026, 1, 2)):
        with pytest.raises(_json.NotJson):
            _json.Plain().dump(value)


def test_recorded_replies_are_rebuilt(semel_ledger: semel.testing.Ledger, world: World) -> None:  # type: ignore[name-defined]
    @semel.once(key="{n}")
    def charge(n: int) -> Charge:
        world.act(n)
        return CHARGE

    @semel.once(key="{model.n}")
    def book(model: Model) -> Model | None:
        world.act("book")
        return model

    assert [charge(1), charge(1)] == [CHARGE, CHARGE]
    assert [book(Model(n=1)), book(Model(n=1))] == [Model(n=1)] * 2
    assert world.acts() == ["1", "book"]


def test_a_record_that_no_longer_fits_is_named(semel_ledger: semel.testing.Ledger, world: World) -> None:  # type: ignore[name-defined]
    def before(n: int) -> dict[str, int]:
        world.act(n)
        return {"n": n}

    def after(n: int) -> Line:
        raise AssertionError

    assert semel.once(key="{n}", name="book")(before)(1) == {"n": 1}
    with pytest.raises(semel.ReplyLost) as caught:
        semel.once(key="{n}", name="book")(after)(1)
    assert caught.value.value == {"n": 1}
    assert world.acts() == ["1"]
