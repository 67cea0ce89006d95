"""The SDKs of all languages hold to these vectors."""

import json
from pathlib import Path

from semel._key import wire_key


def test_keys() -> None:
    here = Path(__file__).resolve().parent
    beside = here / "sdk-key.json"  # where the tests were copied, beside the installed package
    vectors = json.loads((beside if beside.exists() else here.parents[2] / "spec/vectors/sdk-key.json").read_text())
    assert len(vectors) >= 10
    for vector in vectors:
        assert wire_key(vector["name"], vector["key"]) == vector["wire"], vector
