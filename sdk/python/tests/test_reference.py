"""The API page is what the code says: each section is written from the module that it names.

`python tests/test_reference.py` writes the sections of the modules that can be imported here.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import semel

HERE = Path(__file__).resolve().parent
BESIDE = HERE / "reference-python.md"  # where the tests were copied, beside the installed package
PAGE = BESIDE if BESIDE.exists() else HERE.parents[2] / "docs/reference-python.md"
ADAPTERS = sorted(path.stem for path in (Path(semel.__file__).parent / "adapters").glob("[a-z]*.py"))
MODULES = ["semel", "semel.testing", *(f"semel.adapters.{name}" for name in ADAPTERS)]
PROTOCOLS = (semel.Once, semel.Codec)
COLUMNS = 120


@semel.once
def protected() -> None: ...


class Bare:
    """An annotation without quotes."""

    def __init__(self, annotation: Any) -> None:
        text = getattr(annotation, "__forward_arg__", annotation)
        self.text = (text if isinstance(text, str) else inspect.formatannotation(text)).replace("_json.", "")

    def __repr__(self) -> str:
        return self.text


def signature(of: Any, is_method: bool = False) -> str:
    read = inspect.signature(of)
    parameters = [
        one if one.annotation is one.empty else one.replace(annotation=Bare(one.annotation))
        for one in read.parameters.values()
    ][is_method:]
    gives = read.empty if read.return_annotation is read.empty or inspect.isclass(of) else Bare(read.return_annotation)
    return str(read.replace(parameters=parameters, return_annotation=gives))


def entry(line: str, doc: str | None, indent: str = "") -> str:
    unbroken = re.sub("(?<!,) ", "\u00a0", line)  # a line ends after a parameter
    lines = textwrap.wrap(unbroken, COLUMNS, initial_indent=indent, subsequent_indent=indent + "    ")
    said = [f"{indent}# {one}".rstrip() for one in inspect.cleandoc(doc or "").splitlines()]
    return "\n".join([*lines, *said]).replace("\u00a0", " ")


def entries(name: str, thing: Any) -> Iterator[str]:
    if not inspect.isclass(thing):
        kind = "async def" if inspect.iscoroutinefunction(thing) else "def"
        yield entry(f"{kind} {name}{signature(thing)}", inspect.getdoc(thing))
        return
    is_error = issubclass(thing, BaseException)
    of = signature(thing) if not is_error and thing not in PROTOCOLS else ""
    bases = f"({', '.join(base.__name__ for base in thing.__bases__)})" if is_error else ""
    yield entry(f"class {name}{of or bases}", thing.__doc__)
    if thing.__module__.startswith("semel.adapters."):
        return  # its methods are for the framework
    for member, method in vars(thing).items():
        if inspect.isfunction(method) and (not member.startswith("_") or (is_error and member == "__init__")):
            if thing is semel.Once:  # it does not know what its overloaded methods take: a protected function does
                of_one = getattr(protected, member)
                yield entry(f"def {member}{signature(of_one)}", of_one.__doc__, "    ")
            else:
                yield entry(f"def {member}{signature(method, is_method=True)}", method.__doc__, "    ")
    if not issubclass(thing, tuple):
        for member, annotation in inspect.get_annotations(thing).items():
            yield f"    {member}: {Bare(annotation)}"


def section(module: str) -> str:
    found = importlib.import_module(module)
    public = getattr(found, "__all__", None) or [
        name
        for name, thing in vars(found).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module
    ]
    listed = "\n\n".join("\n".join(entries(name, getattr(found, name))) for name in public)
    return f"## {module}\n\n```python\n{listed}\n```\n"


def sections() -> dict[str, str]:
    parts = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {part.split("\n")[0].removeprefix("## "): part.rstrip("\n") + "\n" for part in parts}


def test_the_page_has_a_section_for_each_module() -> None:
    assert list(sections()) == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_a_section_lists_what_the_module_has(module: str) -> None:
    if "adapters" in module:
        pytest.importorskip(module)
    assert sections()[module] == section(module)


if __name__ == "__main__":
    head, old = PAGE.read_text().split("\n## ")[0].rstrip("\n") + "\n", sections()
    for module in MODULES:
        try:
            old[module] = section(module)
        except ImportError as missing:
            print(f"{module} is left as it is: {missing}")
    PAGE.write_text("\n".join([head, *(old[module] for module in MODULES if module in old)]))
