"""Byte-code layers: the image's own Python compiles what real layers hold."""

from __future__ import annotations

import hashlib
import io
import tarfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import BuildError
from stackbuild.layers.bytecode import BytecodeMaker, unstable_bytecode
from stackbuild.layers.debs import DebsMaker
from stackbuild.layers.tree import FileTree
from stackbuild.layers.wheels import WheelFile, WheelsMaker
from stackbuild.lock.model import LockedWheel, PythonLock
from tests.engine.conftest import DebianBase
from tests.support.base_image import docker_archive
from tests.support.bookworm_debs import lock_debs
from tests.support.cache import cached
from tests.support.numpy_wheel import numpy_wheel
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.engine

SITE = "opt/venv/lib/python3.11/site-packages"
PYTHON = PythonLock(version="3.11.2", executable="/usr/bin/python3.11", tag="cp311")


@dataclass(frozen=True)
class PythonBase:
    """The bootstrapped base with its debs layer."""

    engine: Engine
    image: str
    layers: tuple[Path, Path]  # root file system, debs
    tree: FileTree


@pytest.fixture(scope="module")
def python_base(engine: Engine, debian_base: DebianBase) -> Iterator[PythonBase]:
    """An image with the distribution's Python, and its tree; the debs layer is kept in the cache."""
    maker = DebsMaker(
        engine, debian_base.image, (debian_base.tar.name,), lock_debs(debian_base.debs / "python")
    )

    def make(target: Path) -> None:
        with target.open("wb") as sink:
            maker.make(sink, debian_base.tree)

    debs = cached(f"debs/{maker.key()}.tar", make)
    with debs.open("rb") as stream:
        additions = FileTree.from_tar(stream)
    tree = debian_base.tree.with_layer({path: additions.get(path) for path in additions})
    ref = f"stackbuild-test/debian-debs:{uuid.uuid4().hex[:12]}"
    engine.load([docker_archive([debian_base.tar, debs], ref=ref)[0]])
    yield PythonBase(engine, ref, (debian_base.tar, debs), tree)
    engine.remove_image(ref)


def _wheel_layer(base: PythonBase, target: Path, *wheels: Path) -> tuple[BytecodeMaker, FileTree]:
    """The layer of some wheels, with the maker of its byte-code and the tree that has it."""
    files = []
    for path in sorted(wheels):
        name, version = path.name.split("-")[:2]
        content = path.read_bytes()
        locked = LockedWheel(
            name=name,
            version=version,
            index="default",
            file=path.name,
            sha256=hashlib.sha256(content).hexdigest(),
            size=len(content),
            group="other",
        )
        files.append(WheelFile(locked, path))
    maker = WheelsMaker("other", tuple(files), PYTHON, "linux/amd64", "2.36", "lineage")
    with target.open("wb") as sink:
        additions = maker.make(sink, base.tree)
    bytecode = BytecodeMaker("other-bytecode", base.engine, base.image, PYTHON, (target,), (maker.key(),))
    return bytecode, base.tree.with_layer(additions)


def _make(maker: BytecodeMaker, tree: FileTree) -> tuple[bytes, dict[str, bytes]]:
    sink = io.BytesIO()
    maker.make(sink, tree)
    with tarfile.open(fileobj=io.BytesIO(sink.getvalue())) as archive:
        contents = {
            member.name: content.read()
            for member in archive
            if (content := archive.extractfile(member)) is not None
        }
    return sink.getvalue(), contents


def test_numpy_compiles_to_the_same_bytes_twice(python_base: PythonBase, tmp_path: Path) -> None:
    maker, tree = _wheel_layer(python_base, tmp_path / "layer.tar", numpy_wheel())
    layer, contents = _make(maker, tree)
    assert layer == _make(maker, tree)[0]
    assert f"{SITE}/numpy/__pycache__/__init__.cpython-311.pyc" in contents
    with tarfile.open(tmp_path / "layer.tar") as archive:
        sources = [name for name in archive.getnames() if name.endswith(".py")]
    assert len(contents) == len(sources) > 400
    # PEP 552: flag 1 is hash-based, unchecked; so a file's time is never looked at.
    assert {content[4:8] for content in contents.values()} == {b"\x01\x00\x00\x00"}


def test_sources_that_do_not_compile_are_reported_and_do_not_stop_the_rest(
    python_base: PythonBase, tmp_path: Path
) -> None:
    files = {
        "mine/__init__.py": "VALUE = 1\n",
        "mine/py2.py": "print 'no'\n",
        "mine/latin.py": b"# -*- coding: utf-8 -*-\nNAME = '\xff'\n",
        "mine/data/notes.txt": "no source",
    }
    wheel = make_wheel(tmp_path, "mine", "1.0", files=files)
    maker, tree = _wheel_layer(python_base, tmp_path / "layer.tar", wheel)
    left_out, failed = unstable_bytecode(maker)
    assert left_out == ()
    assert failed == (f"{SITE}/mine/latin.py", f"{SITE}/mine/py2.py")
    assert list(_make(maker, tree)[1]) == [f"{SITE}/mine/__pycache__/__init__.cpython-311.pyc"]


def test_files_that_the_lock_leaves_out_are_left_out(python_base: PythonBase, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "mine", "1.0", files={"mine/a.py": "A = 1\n", "mine/b.py": "B = 1\n"})
    maker, tree = _wheel_layer(python_base, tmp_path / "layer.tar", wheel)
    without = replace(maker, left_out=(f"{SITE}/mine/__pycache__/a.cpython-311.pyc",))
    assert list(_make(without, tree)[1]) == [f"{SITE}/mine/__pycache__/b.cpython-311.pyc"]
    assert without.key() != maker.key()
    others = replace(without, left_out=(*without.left_out, f"{SITE}/torch/__pycache__/x.cpython-311.pyc"))
    assert others.key() == without.key()


def test_a_wheel_compiles_the_same_whatever_lies_beside_it(python_base: PythonBase, tmp_path: Path) -> None:
    first = make_wheel(
        tmp_path, "first", "1.0", files={"first/a.py": "NAME = 'shared'\nA = ('shared', 1.5)\n"}
    )
    other = make_wheel(
        tmp_path, "other", "1.0", files={"other/b.py": "NAME = 'shared'\nB = ('shared', 1.5)\n"}
    )
    path = f"{SITE}/other/__pycache__/b.cpython-311.pyc"
    alone = _make(*_wheel_layer(python_base, tmp_path / "alone.tar", other))[1]
    beside = _make(*_wheel_layer(python_base, tmp_path / "beside.tar", first, other))[1]
    assert alone[path] == beside[path]


def test_ambient_python_settings_of_the_image_have_no_say(
    python_base: PythonBase, tmp_path: Path, image_name: Callable[[str], str]
) -> None:
    wheel = make_wheel(tmp_path, "mine", "1.0", files={"mine/a.py": "'''Doc.'''\nassert 1\n"})
    maker, tree = _wheel_layer(python_base, tmp_path / "layer.tar", wheel)
    ref = image_name("odd-python")
    odd = {
        "Env": ["PATH=/usr/bin:/bin", "PYTHONOPTIMIZE=2", "PYTHONHASHSEED=7", "PYTHONPYCACHEPREFIX=/tmp/p"]
    }
    python_base.engine.load([docker_archive(python_base.layers, ref=ref, config=odd)[0]])
    assert _make(replace(maker, image=ref), tree) == _make(maker, tree)


def test_the_stdlib_that_our_debs_bring_is_compiled(python_base: PythonBase) -> None:
    debs = python_base.layers[1]
    maker = BytecodeMaker(
        "stdlib-bytecode", python_base.engine, python_base.image, PYTHON, (debs,), ("debs",), stdlib=True
    )
    contents = _make(maker, python_base.tree)[1]
    assert "usr/lib/python3.11/__pycache__/ssl.cpython-311.pyc" in contents
    assert "usr/lib/python3.11/__pycache__/sitecustomize.cpython-311.pyc" in contents
    assert not [path for path in contents if not path.startswith("usr/lib/python3")]


def test_the_image_uses_the_byte_code_and_tracebacks_name_the_real_source(
    python_base: PythonBase, tmp_path: Path, image_name: Callable[[str], str]
) -> None:
    source = "import sys\ndef where():\n    return sys._getframe().f_code.co_filename\n"
    wheel = make_wheel(tmp_path, "mine", "1.0", files={"mine/__init__.py": source})
    maker, tree = _wheel_layer(python_base, tmp_path / "layer.tar", wheel)
    layer, _ = _make(maker, tree)
    ref = image_name("byte-code")
    stack = [*python_base.layers, tmp_path / "layer.tar", layer]
    python_base.engine.load([docker_archive(stack, ref=ref)[0]])
    code = f"import sys; sys.path.insert(0, '/{SITE}'); import mine; print(f'<{{mine.where()}}>')"
    with python_base.engine.container(ref, ["sleep", "60"], user="1000", read_only=True) as container:
        container.start()
        done = container.exec(["/usr/bin/python3.11", "-v", "-c", code])
    # What -v says comes in pieces on the other stream, so a line of this one may begin behind any of them.
    assert f"</{SITE}/mine/__init__.py>" in done.text
    bytecode = f"/{SITE}/mine/__pycache__/__init__.cpython-311.pyc"
    assert f"# {bytecode} matches /{SITE}/mine/__init__.py" in done.text


def test_an_image_without_that_python_is_a_sentence(python_base: PythonBase, tmp_path: Path) -> None:
    maker, tree = _wheel_layer(python_base, tmp_path / "layer.tar", make_wheel(tmp_path, "mine", "1.0"))
    absent = PYTHON.model_copy(update={"executable": "/usr/bin/python3.99"})
    with pytest.raises(BuildError, match="could not compile") as caught:
        _make(replace(maker, python=absent), tree)
    assert caught.value.code == "bytecode-failed"
    assert "python3.99" in caught.value.detail
