from __future__ import annotations

import copy
import pickle

import pytest

import semel

KINDS = [
    semel.SemelError, semel.Held, semel.InDoubt, semel.InFlight, semel.Lookalike, semel.Cancelled, semel.Drift,
    semel.LedgerUnavailable, semel.InvalidCall, semel.ReplyLost,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_pickling(kind: type[semel.SemelError]) -> None:
    error = kind("said", effect_id="ef_1", action="charge", code="in_doubt", retry="wait", next_step="ask", answer={})
    for other in pickle.loads(pickle.dumps(error)), copy.copy(error):
        assert type(other) is kind
        assert str(other) == "said"
        assert other.__dict__ == error.__dict__


def test_the_value_of_a_lost_reply_stays_behind() -> None:
    error = semel.ReplyLost("said", effect_id="ef_1")
    error.value = lambda: None
    other = pickle.loads(pickle.dumps(error))
    assert (other.effect_id, other.value) == ("ef_1", None)


def test_the_tree() -> None:
    assert issubclass(semel.SemelError, RuntimeError)
    for kind in (semel.InDoubt, semel.InFlight, semel.Lookalike, semel.Cancelled):
        assert issubclass(kind, semel.Held)
    assert not issubclass(semel.Drift, semel.Held)
    assert not issubclass(semel.Refused, semel.SemelError)
