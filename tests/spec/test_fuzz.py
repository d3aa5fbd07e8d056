"""Whatever a file holds, loading ends in a spec or a SpecError."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from stackbuild.errors import SpecError, SpecProblem
from stackbuild.spec.load import load_spec
from stackbuild.spec.messages import known_keys
from stackbuild.spec.model import StackSpec
from stackbuild.spec.requirements_input import requirement_inputs
from tests.spec.test_load import COMPLETE

LOCKS = ("pylock.toml", "uv.lock", "poetry.lock")
FEW = settings(
    max_examples=int(os.environ.get("TEST_FUZZ_EXAMPLES", 25)),
    suppress_health_check=list(HealthCheck),
)

KEYS = sorted(
    set(known_keys(()))
    | {key for section in known_keys(()) for path in ((section,), (section, 0)) for key in known_keys(path)}
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(
        ["2.9.1", "cu130", "auto", "a==1", "../x", "/x", ">=580", "torch", "2027-02-30", "1g", "10%"]
    )
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=8), inner, max_size=5)
    ),
    max_leaves=20,
)


def check(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz.yaml"
        path.write_bytes(content)
        problems: tuple[SpecProblem, ...] = ()
        try:
            load_spec(path)
        except SpecError as error:
            problems = error.problems or (SpecProblem("none", "", -1, 0, ""),)
    lines = content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert all(problem.message and 0 <= problem.line <= len(lines) for problem in problems)


@FEW
@given(st.binary(max_size=300))
def test_any_bytes(content: bytes) -> None:
    check(content)


@FEW
@given(st.text(alphabet=st.sampled_from("abk:-#[]{}\"'|>&*!%@?,.~ \n\t0é<\\"), max_size=80))
def test_text_made_of_yamls_own_signs(text: str) -> None:
    check(text.encode())


@FEW
@given(st.dictionaries(st.sampled_from(known_keys(())), values, max_size=8), st.booleans())
def test_known_keys_with_any_values(document: dict[str, Any], with_head: bool) -> None:
    head = {"schema": 1, "name": "a", "base": {"image": "a/b", "tag": "c"}, "python": "3.12"}
    stream = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.dump(head | document if with_head else document, stream)
    check(stream.getvalue().encode("utf-8", "surrogatepass"))


@FEW
@given(st.integers(0, len(COMPLETE)), st.integers(0, 30), st.text(max_size=6))
def test_the_complete_spec_with_a_piece_replaced(start: int, length: int, piece: str) -> None:
    check((COMPLETE[:start] + piece + COMPLETE[start + length :]).encode("utf-8", "surrogatepass"))


def read(name: str, content: bytes) -> None:
    base = {"image": "a/b", "tag": "c"}
    entry = {"from": name} if name.endswith("txt") else {"from": name, "extras": ["a"]}
    spec = StackSpec.model_validate(
        {"schema": 1, "name": "a", "base": base, "python": "3.12", "packages": [entry]}
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        with contextlib.suppress(SpecError):
            requirement_inputs(spec, Path(folder))


@FEW
@given(
    st.sampled_from(["requirements.txt", *LOCKS]),
    st.binary(max_size=120)
    | st.text(alphabet=st.sampled_from("-rc=<>~![]{};:@#\\\"'\n ab1.${}/"), max_size=80).map(str.encode),
)
def test_any_requirements_file(name: str, content: bytes) -> None:
    read(name, content)


def toml(value: Any) -> str:
    """Write a value as TOML, tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


lock_words = st.sampled_from(["a", "b", "1.0", "1", "?", ".", "main", "sha256:" + "a" * 64, "sha256:x", "a.whl",
                              "extra == 'a'", "os_name == 'posix'", "python_full_version < '3.12.4'", "x =="])  # fmt: skip
lock_keys = st.sampled_from(
    [
        *("name", "version", "source", "dependencies", "optional-dependencies", "dev-dependencies", "marker"),
        *("wheels", "hash", "hashes", "sha256", "url", "registry", "virtual", "git", "extra", "extras", "a"),
        *("groups", "markers", "files", "file", "optional", "category", "main", "path", "vcs", "type"),
    ]
)
lock_values: st.SearchStrategy[Any] = st.recursive(
    lock_words | st.integers(0, 2) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(lock_keys, inner, max_size=6),
    max_leaves=12,
)
named = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b"])},
    optional={
        "version": st.just("1.0") | lock_values,
        "source": st.sampled_from([{"virtual": "."}, {"registry": "x"}]) | lock_values,
        "dependencies": st.lists(st.fixed_dictionaries({"name": st.sampled_from(["a", "b"])})) | lock_values,
        "optional-dependencies": lock_values,
        "wheels": st.just([{"url": "a.whl", "hash": "sha256:" + "a" * 64}]) | lock_values,
        "groups": st.just(["main"]) | lock_values,
        "category": st.just("main"),
        "markers": lock_values,
        "marker": lock_values,
        "optional": st.booleans() | lock_values,
        "files": lock_values,
        "extras": lock_values,
    },
)


@FEW
@given(st.sampled_from(LOCKS), st.lists(named | lock_values, max_size=4), lock_values, lock_values)
def test_locks_of_the_right_syntax_with_any_content(
    name: str, packages: list[Any], extras: Any, other: Any
) -> None:
    document = {
        "version": 1,
        "lock-version": "1.0",
        "created-by": "x",
        "metadata": {"lock-version": "2.1", "files": other},
        "extras": extras,
        "packages" if name == "pylock.toml" else "package": packages,
    }
    read(name, "".join(f"{key} = {toml(value)}\n" for key, value in document.items()).encode())
