"""Bad input is a named exception, before anything runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Python, World

import semel
from semel.testing import Ledger


def test_a_typo_in_a_key_fails_at_import() -> None:
    with pytest.raises(semel.InvalidCall, match="invoise"):

        @semel.once(key="invoice-{invoise}")
        def charge(invoice: str) -> None: ...

    with pytest.raises(semel.InvalidCall, match="recipient"):

        @semel.once(by=["recipient"])
        def mail(to: str) -> None: ...

    for key in ("", "{", "{0}"):
        with pytest.raises(semel.InvalidCall):
            semel.once(key=key)(lambda invoice: None)
    with pytest.raises(semel.InvalidCall):
        semel.once(lambda invoice: None)


def test_a_generator_is_refused_at_the_call(semel_ledger: Ledger, world: World) -> None:
    @semel.once
    def stream(n: int) -> Iterator[int]:
        world.act(n)
        yield n

    @semel.once
    async def astream(n: int) -> Any:
        world.act(n)
        yield n

    for fn in (stream, astream):
        with pytest.raises(semel.InvalidCall, match="generator"):
            fn(1)
    assert world.acts() == []
    assert semel_ledger.effects() == []


NOT_JSON: list[Any] = [object(), {1, 2}, b"x", float("nan"), float("inf"), {1: 2}, (n for n in ()), 10**500, lambda: 0]


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
def test_an_argument_that_is_no_json_is_refused(semel_ledger: Ledger, world: World, value: Any) -> None:
    @semel.once
    def charge(n: int, more: Any) -> None:
        world.act(n)

    with pytest.raises(semel.InvalidCall, match="'more'"):
        charge(1, value)
    with pytest.raises(semel.InvalidCall):
        with semel.effect("charge", n=value):
            world.act(1)
    with pytest.raises(semel.InvalidCall):
        semel.call("charge", {"n": value}, lambda: world.act(1))
    assert world.acts() == []
    assert semel_ledger.effects() == []


def test_an_argument_that_contains_itself_is_refused(semel_ledger: Ledger, world: World) -> None:
    more: list[Any] = []
    more.append(more)
    with pytest.raises(semel.InvalidCall):
        semel.once(world.act)(more)
    assert world.acts() == []


def test_key_and_by_leave_arguments_out(semel_ledger: Ledger, world: World) -> None:
    @semel.once(key="{n}")
    def keyed(n: int, session: object) -> None:
        world.act(n)

    @semel.once(by=["n"])
    def named(n: int, session: object) -> None:
        world.act(n)

    for fn in (keyed, named):
        fn(1, object())
        fn(1, object())
        with pytest.raises(semel.InvalidCall):
            fn(object(), object())  # type: ignore[arg-type]
    assert world.acts() == ["1", "1"]


@pytest.mark.parametrize("value", [None, ""])
def test_a_key_without_a_value_is_refused(semel_ledger: Ledger, world: World, value: Any) -> None:
    @semel.once(key="invoice-{n}")
    def charge(n: Any) -> None:
        world.act(n)

    with pytest.raises(semel.InvalidCall):
        charge(value)
    with pytest.raises(semel.InvalidCall):
        semel.effect("charge", key="")
    assert world.acts() == []


def test_a_call_that_is_too_large_is_refused(semel_ledger: Ledger, world: World) -> None:
    @semel.once
    def charge(text: str) -> None:
        world.act(1)

    with pytest.raises(semel.InvalidCall, match="4 MiB"):
        charge("x" * (5 << 20))
    charge("small")  # and the way is still open
    assert world.acts() == ["1"]


@pytest.mark.parametrize("address", ["mysql://db/x", "http://semel.example.com", "", "://x"])
def test_a_wrong_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(semel.LedgerUnavailable):
        semel.configure(ledger=address)


REFUSED = """
@semel.once
def charge(n: int) -> None:
    act(n)
try:
    charge(1)
except semel.LedgerUnavailable as error:
    print(error.code, str(error))
"""


@pytest.fixture(params=["in process", "sidecar"])
def either_way(request: pytest.FixtureRequest, env: dict[str, str]) -> None:
    env["SEMEL_SDK"] = request.param


def refused(python: Python, world: World, by: Iterable[str] = (), **env: str) -> str:
    done = python(REFUSED, by, **env)
    assert done.returncode == 0, done.stderr
    assert done.stdout, done.stderr
    assert world.acts() == []
    return str(done.stdout)


def test_a_missing_binary(python: Python, world: World) -> None:
    said = refused(python, world, SEMEL_BIN="/no/such/semel", SEMEL_SDK="sidecar")
    assert said.startswith("binary_missing")
    assert "SEMEL_BIN" in said


def test_a_binary_that_is_something_else(python: Python, world: World) -> None:
    for other in ("/bin/cat", "/bin/true", "/bin/false"):
        refused(python, world, SEMEL_BIN=other, SEMEL_SDK="sidecar")


def test_an_address_given_twice(python: Python, world: World) -> None:
    refused(python, world, SEMEL_SERVER="https://semel.example.com")


def test_a_server_that_is_not_there(python: Python, world: World) -> None:
    said = refused(python, world, SEMEL_SERVER="http://127.0.0.1:1", SEMEL_LEDGER="")
    assert "did not run" in said


@pytest.mark.usefixtures("either_way")
class TestLedgersThatCannotBeUsed:
    @pytest.mark.parametrize("address", ["mysql://db/x", "postgres:/db", "here.db", "redis://", "", "user@host"])
    def test_a_wrong_address_in_the_environment(self, python: Python, world: World, address: str) -> None:
        said = refused(python, world, SEMEL_LEDGER=address)
        assert said.startswith("ledger_unavailable")

    def test_a_file_that_is_none(self, python: Python, world: World, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("no ledger" * 1000)
        refused(python, world, SEMEL_LEDGER=str(tmp_path / "text"))
        assert (tmp_path / "text").read_text() == "no ledger" * 1000

    def test_a_server_that_is_not_there(self, python: Python, world: World) -> None:
        refused(python, world, SEMEL_LEDGER="postgres://semel@127.0.0.1:1/x?sslmode=disable")
        refused(python, world, SEMEL_LEDGER="redis://127.0.0.1:1")
        refused(python, world, SEMEL_LEDGER="etcd://127.0.0.1:1")

    def test_a_policy_that_does_not_hold_together(self, python: Python, world: World, tmp_path: Path) -> None:
        (tmp_path / "bad.toml").write_text("[[rule]]\nmatch = 1\n")
        assert refused(python, world, SEMEL_POLICY=str(tmp_path / "bad.toml")).startswith("policy_invalid")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
    def test_of_another_user(self, python: Python, world: World, tmp_path: Path) -> None:
        ledger = tmp_path / "theirs" / "ledger.db"
        ledger.parent.mkdir(mode=0o700)
        assert python("semel.once(name='charge')(lambda: 1)()", SEMEL_LEDGER=str(ledger)).returncode == 0
        for path in (ledger.parent, *ledger.parent.iterdir()):
            shutil.chown(path, 65534, 65534)
        assert "user" in refused(python, world, SEMEL_LEDGER=str(ledger))

    def test_in_a_directory_that_is_read_only(self, python: Python, world: World, tmp_path: Path) -> None:
        by = without_rights()
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        refused(python, world, by, SEMEL_LEDGER=str(closed / "ledger.db"))
        refused(python, world, by, SEMEL_LEDGER=str(closed / "below" / "ledger.db"))
        assert list(closed.iterdir()) == []

    def test_that_became_read_only(self, python: Python, world: World, tmp_path: Path) -> None:
        by = without_rights()
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o700)
        ledger = str(closed / "ledger.db")
        assert python("semel.once(name='other')(lambda: 1)()", SEMEL_LEDGER=ledger).returncode == 0
        for path in (*closed.rglob("*"), closed):
            path.chmod(0o500 if path.is_dir() else 0o400)
        refused(python, world, by, SEMEL_LEDGER=ledger)

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
    def test_on_no_disk(self, python: Python, world: World) -> None:
        refused(python, world, SEMEL_LEDGER="/dev/full")

    def test_on_a_disk_that_is_full(self, python: Python, world: World, tmp_path: Path) -> None:
        by = on_small_disk(tmp_path / "disk")
        done = python(
            """
            @semel.once(key="{n}")
            def charge(n: int) -> int:
                act(n)
                return n
            disk = os.path.dirname(os.environ["SEMEL_LEDGER"])
            ballast = os.path.join(disk, "ballast")
            def fill():
                with open(ballast, "wb", buffering=0) as file:
                    try:
                        while True:
                            file.write(bytes(1024))
                    except OSError:
                        pass
            def refused(n):
                try:
                    charge(n)
                except semel.LedgerUnavailable as error:
                    assert error.code == "ledger_unavailable", error
                    return True
            fill()
            assert refused(1)
            os.remove(ballast)
            assert charge(2) == 2    # there is room, so there is a ledger
            fill()
            assert refused(1) and refused(3)
            assert charge(2) == 2
            os.remove(ballast)
            assert [charge(1), charge(2), charge(3)] == [1, 2, 3]
            """,
            by,
            SEMEL_LEDGER=str(tmp_path / "disk" / "ledger.db"),
        )
        assert done.returncode == 0, done.stderr
        assert world.acts() == ["2", "1", "3"]

    def test_on_a_disk_that_fills_up_while_it_acts(self, python: Python, world: World, tmp_path: Path) -> None:
        by = on_small_disk(tmp_path / "disk")
        done = python(
            """
            ballast = os.path.join(os.path.dirname(os.environ["SEMEL_LEDGER"]), "ballast")
            @semel.once(key="{n}")
            def charge(n: int) -> str:
                act(n)
                with open(ballast, "wb", buffering=0) as file:
                    try:
                        while True:
                            file.write(bytes(1024))
                    except OSError:
                        pass
                return "x" * 10_000
            try:
                charge(1)
            except semel.LedgerUnavailable as error:
                assert error.retry == "no" and "has run" in str(error), error
                print("unrecorded")
            os.remove(ballast)
            semel.configure()    # else it counts as in flight until its deadline
            try:
                charge(1)
            except semel.InDoubt as doubt:
                print("doubt")
            """,
            by,
            SEMEL_LEDGER=str(tmp_path / "disk" / "ledger.db"),
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["unrecorded", "doubt"]
        assert world.acts() == ["1"]


def without_rights() -> list[str]:
    """Root may write everywhere, unless it gives that up."""
    if os.geteuid() != 0:
        return []
    by = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    return _that_works(by, "root cannot give up its rights over files here")


def on_small_disk(directory: Path) -> list[str]:
    """A filesystem that only this command sees, and that ends with it."""
    directory.mkdir(mode=0o700)
    mount = 'mount -t tmpfs -o size=1m,mode=0700 none "$0" && exec "$@"'
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    by = ["unshare", "--mount", *rights, "sh", "-c", mount, str(directory)]
    return _that_works(by, "no filesystem can be mounted here")


def _that_works(by: list[str], reason: str) -> list[str]:
    if shutil.which(by[0]) is None or subprocess.run([*by, "true"], capture_output=True).returncode != 0:
        pytest.skip(reason)
    return by
