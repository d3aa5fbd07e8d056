"""Locking a whole stack: a real Debian from its mirror, real Python, wheels from an index on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.lock.file import read_lock
from stackbuild.lock.model import BootstrapBaseLock, PlatformLock
from tests.support.cache import cache_root
from tests.support.index_server import IndexServer
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.engine

SPEC = """\
schema: 1
name: example
base: {bootstrap: debian, suite: bookworm}
python: "3.11"
packages: [leaf]
apt: [libgomp1]
"""


@dataclass
class Folder:
    """A project folder with one stack, and the index that it takes wheels from."""

    root: Path
    wheels: Path
    capture: Callable[[], str] = field(repr=False)

    @property
    def lock(self) -> Path:
        return self.root / "stacks/example.lock"

    @property
    def platform(self) -> PlatformLock:
        return read_lock(self.lock).platforms["linux/amd64"]

    def write_spec(self, text: str = SPEC) -> None:
        (self.root / "stacks/example.yaml").write_text(text)

    def run(self, *arguments: str) -> tuple[int, str]:
        code = run(["lock", "-q", *arguments])
        return code, self.capture()


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Folder]:
    wheels = tmp_path / "wheels"
    make_wheel(wheels, "trunk", "1.0", files={"trunk/__init__.py": "", "trunk/python2.py": "print 'no'\n"})
    make_wheel(wheels, "leaf", "1.0", requires=["trunk>=1"])
    (tmp_path / "stacks").mkdir()
    made = Folder(tmp_path, wheels, lambda: capfdbinary.readouterr().out.decode())
    made.write_spec()
    with IndexServer({"default": wheels}) as index:
        monkeypatch.chdir(tmp_path)
        # Kept between runs, so that the base is bootstrapped only when its packages moved.
        monkeypatch.setenv("STACKBUILD_STORE", str(cache_root() / "lock-store"))
        monkeypatch.setenv("STACKBUILD_INDEXES", f"default={index.url('default')}")
        yield made


def test_a_stack_is_locked_kept_and_moved_only_when_asked(folder: Folder) -> None:
    assert folder.run() == (0, "example: locked\n")
    first = folder.lock.read_bytes()
    platform = folder.platform
    assert isinstance(platform.base, BootstrapBaseLock)
    assert {"apt", "ca-certificates", "libc6"} <= {deb.name for deb in platform.base.debs}
    assert (platform.os.id, platform.os.codename, platform.os.glibc) == ("debian", "bookworm", "2.36")
    assert platform.python is not None
    assert platform.python.tag == "cp311"
    names = {deb.name for deb in platform.debs}
    assert {"libgomp1", "python3.11", "libpython3.11-stdlib"} <= names
    assert not names & {deb.name for deb in platform.base.debs}
    assert [(wheel.name, wheel.version, wheel.index, wheel.requested) for wheel in platform.wheels] == [
        ("leaf", "1.0", "default", True),
        ("trunk", "1.0", "default", False),
    ]
    assert "opt/venv/lib/python3.11/site-packages/trunk/python2.py" in platform.bytecode_failed
    assert platform.created == platform.base.created

    # A newer leaf is there: it stays, and not a byte differs, until it is asked for.
    make_wheel(folder.wheels, "leaf", "2.0", requires=["trunk>=1"])
    assert folder.run("example") == (0, "example: unchanged\n")
    assert folder.lock.read_bytes() == first
    code, shown = folder.run("--upgrade", "leaf", "example", "--format", "json")
    assert code == 0
    (row,) = json.loads(shown)["stacks"]
    assert (row["state"], row["changes"]) == ("updated", ["wheel leaf 1.0 → 2.0"])
    moved = folder.platform
    assert moved.base == platform.base
    assert moved.debs == platform.debs

    # A lock that a person broke is made anew, the same as before for the same inputs.
    upgraded = folder.lock.read_bytes()
    folder.lock.write_text("{")
    assert folder.run("--upgrade", "example") == (0, "example: locked\n")
    assert folder.lock.read_bytes() == upgraded


def test_an_unknown_deb_ends_with_3_and_writes_nothing(folder: Folder) -> None:
    folder.write_spec(SPEC.replace("libgomp1", "libgopm1"))
    code, _ = folder.run()
    assert code == 3
    assert sorted(path.name for path in folder.lock.parent.iterdir()) == ["example.yaml"]
