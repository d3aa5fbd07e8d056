"""Requirements as teams already keep them: what is taken, what is refused, and what makes a lock stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stackbuild.errors import SpecError
from stackbuild.spec.model import StackSpec
from stackbuild.spec.requirements_input import Requirements, lock_inputs_sha256, requirement_inputs

A, B, C = "a" * 64, "b" * 64, "c" * 64


def stack(*packages: Any, **keys: Any) -> StackSpec:
    base = {"bootstrap": "debian", "suite": "bookworm"}
    return StackSpec.model_validate(
        {"schema": 1, "name": "demo", "base": base, "python": "3.11", "packages": packages, **keys}
    )


def read(tmp_path: Path, name: str, text: str, **entry: Any) -> Requirements:
    (tmp_path / name).write_text(text)
    return requirement_inputs(stack({"from": name, **entry}), tmp_path)


def refused(tmp_path: Path, name: str, text: str, **entry: Any) -> SpecError:
    with pytest.raises(SpecError) as caught:
        read(tmp_path, name, text, **entry)
    return caught.value


def pinned(requirements: Requirements) -> list[str]:
    return [pin.requirement for pin in requirements.pins]


def test_requirements_txt_with_includes_hashes_comments_and_markers(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "more.txt").write_text("-c bounds.txt\nattrs\n")
    (tmp_path / "sub" / "bounds.txt").write_text("attrs==25.1.0\n")
    found = read(
        tmp_path,
        "requirements.txt",
        f"""\
# the team's own
--require-hashes
Numpy_X==1.26.4 \\
    --hash=sha256:{B} \\
    --hash=sha256:{A}  # both wheels
requests[socks]>=2,<3 ; python_version >= "3.9"
tomli==2.0.1 ; python_version < "3.11"
scipy==1.11.*
-r sub/more.txt
""",
    )
    assert pinned(found) == ["numpy-x==1.26.4", 'tomli==2.0.1 ; python_version < "3.11"']
    assert found.pins[0].hashes == (A, B)
    assert found.pins[0].source == f"{tmp_path}/requirements.txt:3"
    assert found.direct == ('requests[socks]<3,>=2; python_version >= "3.9"', "scipy==1.11.*", "attrs")
    assert found.constraints == ("attrs==25.1.0",)
    assert found.sources["attrs"] == f"{tmp_path}/sub/more.txt:2"


@pytest.mark.parametrize(
    ("line", "message", "suggestion"),
    [
        ("-e .", "'-e' is not honoured", "editable"),
        ("--editable=git+https://x.example/a", "'--editable' is not honoured", "editable"),
        ("git+https://x.example/a.git@v1", "version-control", "wheel"),
        ("a @ git+https://x.example/a.git", "version-control", "wheel"),
        ("--index-url https://x.example/simple", "'--index-url' is not honoured", "names its indexes itself"),
        ("--extra-index-url=https://x.example/simple", "not honoured", "never merged"),
        ("--find-links wheels/", "not honoured", "folder"),
        ("./local-1.0-py3-none-any.whl", "a path or URL", "sha256"),
        ("https://x.example/a.whl", "a path or URL", "sha256"),
        ("a @ https://x.example/a-1-py3-none-any.whl", "comes from a URL", "sha256"),
        ("a==${VERSION}", "environment variable", "Write the value."),
        ("a=1", "not a requirement", "PEP 508"),
        (f"a>=1 --hash=sha256:{A}", "one exact version", "a==VERSION"),
        ("a==1 --hash=md5:00", "not sha256", "pip hash"),
        ("a==1 --no-deps", "after a requirement", "--hash"),
        ("-r none.txt", "no such file", ""),
        ("-r requirements.txt", "includes itself", ""),
        ("--frobnicate", "not an option", "Remove"),
    ],
)
def test_what_a_stack_cannot_honour_is_refused_with_file_and_line(
    tmp_path: Path, line: str, message: str, suggestion: str
) -> None:
    error = refused(tmp_path, "requirements.txt", f"attrs\n{line}\n")
    assert len(error.problems) == 1
    problem = error.problems[0]
    assert (problem.file, problem.line) == (str(tmp_path / "requirements.txt"), 2)
    assert message in problem.message
    assert suggestion in problem.suggestion


def test_all_refused_lines_are_reported_at_once(tmp_path: Path) -> None:
    error = refused(tmp_path, "requirements.txt", "-e .\nattrs\n-i https://x.example\n")
    assert [problem.line for problem in error.problems] == [1, 3]


def test_the_root_channel_in_a_requirements_file_has_its_own_code(tmp_path: Path) -> None:
    """Case B03."""
    error = refused(tmp_path, "requirements.txt", "--extra-index-url https://download.pytorch.org/whl\n")
    assert error.code == "index-not-channel-specific"
    assert "https://download.pytorch.org/whl/cu130" in error.problems[0].suggestion


PYLOCK = f"""\
lock-version = "1.0"
created-by = "test"
extras = ["gpu"]
dependency-groups = ["dev"]
[[packages]]
name = "attrs"
version = "25.1.0"
wheels = [{{name = "attrs-25.1.0-py3-none-any.whl", url = "https://x.example/a.whl", hashes = {{sha256 = "{A}"}}}}]
[[packages]]
name = "colorama"
version = "0.4.6"
marker = "sys_platform == 'win32'"
wheels = [{{name = "colorama-0.4.6-py3-none-any.whl", url = "https://x.example/c.whl", hashes = {{sha256 = "{B}"}}}}]
[[packages]]
name = "nvtx"
version = "0.2.11"
marker = "'gpu' in extras"
wheels = [{{name = "nvtx-0.2.11-py3-none-any.whl", url = "https://x.example/n.whl", hashes = {{sha256 = "{B}"}}}}]
[[packages]]
name = "pytest"
version = "8.0.0"
marker = "'dev' in dependency_groups"
wheels = [{{name = "pytest-8.0.0-py3-none-any.whl", url = "https://x.example/p.whl", hashes = {{sha256 = "{C}"}}}}]
"""


def test_pylock_takes_what_applies(tmp_path: Path) -> None:
    plain = read(tmp_path, "pylock.toml", PYLOCK)
    assert pinned(plain) == ["attrs==25.1.0"]
    assert plain.pins[0].hashes == (A,)
    assert pinned(read(tmp_path, "pylock.toml", PYLOCK, extras=["gpu"], groups=["dev"])) == [
        "attrs==25.1.0",
        "nvtx==0.2.11",
        "pytest==8.0.0",
    ]
    error = refused(tmp_path, "pylock.toml", PYLOCK, extras=["gpus"])
    assert error.problems[0].suggestion == "Did you mean 'gpu'?"


def test_pylock_refuses_source_trees_and_broken_files(tmp_path: Path) -> None:
    head = 'lock-version = "1.0"\ncreated-by = "test"\n[[packages]]\nname = "a"\n'
    assert "directory" in str(refused(tmp_path, "pylock.toml", head + 'directory = {path = "."}\n'))
    assert "not a valid" in str(refused(tmp_path, "pylock.toml", 'lock-version = "1.0"\n'))
    assert "not TOML" in str(refused(tmp_path, "pylock.toml", "a = \n"))


UV_LOCK = f"""\
version = 1
revision = 3
requires-python = ">=3.11"
[[package]]
name = "app"
version = "0.1"
source = {{ virtual = "." }}
dependencies = [
    {{ name = "colorama", marker = "sys_platform == 'win32'" }},
    {{ name = "redis", extra = ["hiredis"] }},
]
[package.optional-dependencies]
cli = [{{ name = "rich" }}]
[package.dev-dependencies]
dev = [{{ name = "rich" }}, {{ name = "redis" }}]
[[package]]
name = "async-timeout"
version = "5.0.1"
source = {{ registry = "https://x.example/simple" }}
wheels = [{{ url = "https://x.example/async_timeout-5.0.1-py3-none-any.whl", hash = "sha256:{C}" }}]
[[package]]
name = "colorama"
version = "0.4.6"
source = {{ registry = "https://x.example/simple" }}
wheels = [{{ url = "https://x.example/colorama-0.4.6-py3-none-any.whl", hash = "sha256:{C}" }}]
[[package]]
name = "hiredis"
version = "3.1.0"
source = {{ registry = "https://x.example/simple" }}
sdist = {{ url = "https://x.example/hiredis-3.1.0.tar.gz", hash = "sha256:{C}" }}
wheels = [
    {{ url = "https://x.example/hiredis-3.1.0-cp311-cp311-manylinux1_x86_64.whl", hash = "sha256:{B}" }},
    {{ url = "https://x.example/hiredis-3.1.0-cp312-cp312-manylinux1_x86_64.whl", hash = "sha256:{A}" }},
]
[[package]]
name = "redis"
version = "6.0.0"
source = {{ registry = "https://x.example/simple" }}
dependencies = [{{ name = "async-timeout", marker = "python_full_version < '3.11.3'" }}]
wheels = [{{ url = "https://x.example/redis-6.0.0-py3-none-any.whl", hash = "sha256:{A}" }}]
[package.optional-dependencies]
hiredis = [{{ name = "hiredis" }}]
[[package]]
name = "rich"
version = "14.0.0"
source = {{ registry = "https://x.example/simple" }}
wheels = [{{ url = "https://x.example/rich-14.0.0-py3-none-any.whl", hash = "sha256:{B}" }}]
"""


def test_uv_lock_walks_from_the_root_with_extras_and_markers(tmp_path: Path) -> None:
    found = read(tmp_path, "uv.lock", UV_LOCK)
    # The patch level of the base's Python is not known yet, so that marker is kept; the win32 one is decided.
    assert pinned(found) == [
        "async-timeout==5.0.1 ; (python_full_version < '3.11.3')",
        "hiredis==3.1.0",
        "redis==6.0.0",
    ]
    assert found.pins[1].hashes == (A, B)
    assert "rich==14.0.0" in pinned(read(tmp_path, "uv.lock", UV_LOCK, extras=["cli"]))
    assert "rich==14.0.0" in pinned(read(tmp_path, "uv.lock", UV_LOCK, groups=["dev"]))
    assert "Did you mean 'dev'?" in str(refused(tmp_path, "uv.lock", UV_LOCK, groups=["deb"]))


def test_uv_lock_decides_markers_for_the_stacks_python(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(UV_LOCK)
    found = requirement_inputs(stack({"from": "uv.lock"}, python="3.12"), tmp_path)
    assert pinned(found) == ["hiredis==3.1.0", "redis==6.0.0"]


def test_uv_lock_conflicting_extras_take_the_chosen_side(tmp_path: Path) -> None:
    text = f"""\
version = 1
conflicts = [[{{ package = "app", extra = "cpu" }}, {{ package = "app", extra = "gpu" }}]]
[[package]]
name = "app"
version = "0.1"
source = {{ editable = "." }}
[package.optional-dependencies]
cpu = [{{ name = "x", version = "1.0+cpu", source = {{ registry = "c" }} }}]
[[package.optional-dependencies.gpu]]
name = "x"
version = "1.0"
source = {{ registry = "g" }}
marker = "extra == 'extra-3-app-gpu' or extra != 'extra-3-app-cpu'"
[[package]]
name = "x"
version = "1.0"
source = {{ registry = "g" }}
wheels = [{{ url = "https://x.example/x-1.0-py3-none-any.whl", hash = "sha256:{A}" }}]
[[package]]
name = "x"
version = "1.0+cpu"
source = {{ registry = "c" }}
wheels = [{{ url = "https://x.example/x-1.0%2Bcpu-py3-none-any.whl", hash = "sha256:{B}" }}]
"""
    assert pinned(read(tmp_path, "uv.lock", text, extras=["cpu"])) == ["x==1.0+cpu"]
    assert pinned(read(tmp_path, "uv.lock", text, extras=["gpu"])) == ["x==1.0"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("version = 1\n", "version = 2\n"), "not a uv.lock of version 1"),
        (('{ virtual = "." }', '{ registry = "x" }'), "no project at its root"),
        (
            (
                'name = "rich"\nversion = "14.0.0"\nsource = { registry = "https://x.example/simple" }',
                'name = "rich"\nversion = "14.0.0"\nsource = { git = "https://x.example/rich" }',
            ),
            "comes from git",
        ),
        (('name = "rich"\nversion = "14.0.0"', 'name = "rich"\nversion = "?"'), "which is none"),
        (('name = "rich"\nversion', 'name = "reich"\nversion'), "has it 0 times"),
    ],
)
def test_uv_lock_refusals(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    text = UV_LOCK.replace(*change)
    assert text != UV_LOCK
    assert message in str(refused(tmp_path, "uv.lock", text, extras=["cli"]))


POETRY = f"""\
[[package]]
name = "attrs"
version = "25.1.0"
optional = false
groups = ["main", "dev"]
files = [
    {{file = "attrs-25.1.0-py3-none-any.whl", hash = "sha256:{A}"}},
    {{file = "attrs-25.1.0.tar.gz", hash = "sha256:{B}"}},
]
[[package]]
name = "colorama"
version = "0.4.6"
optional = false
groups = ["main", "dev"]
markers = {{main = "platform_system == \\"Windows\\"", dev = "sys_platform == \\"linux\\""}}
files = [{{file = "colorama-0.4.6-py2.py3-none-any.whl", hash = "sha256:{C}"}}]
[[package]]
name = "nvtx"
version = "0.2.11"
optional = true
groups = ["main"]
markers = "extra == \\"gpu\\""
files = [{{file = "nvtx-0.2.11-cp311-cp311-manylinux1_x86_64.whl", hash = "sha256:{C}"}}]
[[package]]
name = "pytest"
version = "8.0.0"
optional = false
groups = ["dev"]
files = [{{file = "pytest-8.0.0-py3-none-any.whl", hash = "sha256:{C}"}}]
[extras]
gpu = ["nvtx"]
[metadata]
lock-version = "2.1"
python-versions = ">=3.11"
"""


def test_poetry_lock_takes_groups_and_extras(tmp_path: Path) -> None:
    found = read(tmp_path, "poetry.lock", POETRY)
    assert pinned(found) == ["attrs==25.1.0"]
    assert found.pins[0].hashes == (A,)
    assert pinned(read(tmp_path, "poetry.lock", POETRY, extras=["gpu"])) == ["attrs==25.1.0", "nvtx==0.2.11"]
    assert pinned(read(tmp_path, "poetry.lock", POETRY, groups=["dev"])) == [
        "attrs==25.1.0",
        "colorama==0.4.6",
        "pytest==8.0.0",
    ]


def test_poetry_lock_of_version_1_1_keeps_hashes_and_extras_apart(tmp_path: Path) -> None:
    text = f"""\
[[package]]
name = "attrs"
version = "22.1.0"
category = "main"
optional = false
[[package]]
name = "nvtx"
version = "0.2.11"
category = "main"
optional = true
[[package]]
name = "pytest"
version = "8.0.0"
category = "dev"
optional = false
[extras]
gpu = ["nvtx (>=0.2)"]
[metadata]
lock-version = "1.1"
[metadata.files]
attrs = [{{file = "attrs-22.1.0-py2.py3-none-any.whl", hash = "sha256:{B}"}}]
nvtx = [{{file = "nvtx-0.2.11-cp311-cp311-manylinux1_x86_64.whl", hash = "sha256:{C}"}}]
pytest = [{{file = "pytest-8.0.0.tar.gz", hash = "sha256:{A}"}}]
"""
    found = read(tmp_path, "poetry.lock", text)
    assert [(pin.requirement, pin.hashes) for pin in found.pins] == [("attrs==22.1.0", (B,))]
    assert pinned(read(tmp_path, "poetry.lock", text, extras=["gpu"])) == ["attrs==22.1.0", "nvtx==0.2.11"]
    assert "no wheel, only a source" in str(refused(tmp_path, "poetry.lock", text, groups=["dev"]))


def test_poetry_lock_that_does_not_say_its_groups_is_refused(tmp_path: Path) -> None:
    text = '[[package]]\nname = "a"\nversion = "1"\n[metadata]\nlock-version = "2.0"\n'
    error = refused(tmp_path, "poetry.lock", text)
    assert "does not say which group" in str(error)
    assert "Poetry 2" in str(error)


def test_other_files_are_refused(tmp_path: Path) -> None:
    assert "Use its lock" in str(refused(tmp_path, "pyproject.toml", ""))
    with pytest.raises(SpecError, match="no such file") as caught:
        requirement_inputs(stack({"from": "uv.lock"}), tmp_path)
    assert caught.value.code == "requirements-not-found"
    (tmp_path / "requirements.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError) as caught:
        requirement_inputs(stack({"from": "requirements.txt"}), tmp_path)
    assert "not UTF-8" in caught.value.problems[0].message


def test_a_frameworks_pin_gives_no_hash_and_may_not_contradict(tmp_path: Path) -> None:
    """The default index's build has another hash than the variant that the spec asks for."""
    (tmp_path / "requirements.txt").write_text(f"torch==2.9.1 --hash=sha256:{A}\n")
    found = requirement_inputs(
        stack({"from": "requirements.txt"}, frameworks={"torch": {"variant": "cu130"}}), tmp_path
    )
    assert (pinned(found), found.pins[0].hashes) == (["torch==2.9.1"], ())
    spec = stack({"from": "requirements.txt"}, frameworks={"torch": {"version": "2.9.0"}})
    with pytest.raises(SpecError) as caught:
        requirement_inputs(spec, tmp_path)
    assert "2.9.0 under frameworks" in str(caught.value)


def test_the_lock_hash_changes_with_what_decides_the_lock_and_with_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("attrs==25.1.0\n")
    spec = stack({"from": "requirements.txt"}, "numpy")
    before = lock_inputs_sha256(spec, tmp_path)
    assert len(before) == 64
    same: list[dict[str, Any]] = [
        {"summary": "other"},
        {"image": {"env": {"A": "b"}}},
        {"files": [{"from": "a", "to": "/a"}]},
        {"verify": {"shm-size": "1g"}},
        {"target": {"driver": ">=580"}},
        {"waivers": [{"code": "a", "reason": "b", "owner": "c", "until": "2027-01-01"}]},
    ]
    for keys in same:
        assert lock_inputs_sha256(stack({"from": "requirements.txt"}, "numpy", **keys), tmp_path) == before
    other: list[dict[str, Any]] = [
        {"apt": ["libgomp1"]},
        {"python": "3.12"},
        {"exclude": ["x"]},
        {"frameworks": {"torch": {"variant": "cpu"}}},
        {"indexes": {"corp": {"url": "https://x.example", "packages": ["a"]}}},
        {"platforms": ["linux/amd64", "linux/arm64"]},
    ]
    for keys in other:
        assert lock_inputs_sha256(stack({"from": "requirements.txt"}, "numpy", **keys), tmp_path) != before
    file.write_text("# a comment\nattrs==25.1.0   # pinned\n")
    assert lock_inputs_sha256(spec, tmp_path) == before
    file.write_text("attrs==25.2.0\n")
    assert lock_inputs_sha256(spec, tmp_path) != before


def test_the_target_decides_the_lock_only_where_a_variant_is_auto(tmp_path: Path) -> None:
    auto = {"torch": {"variant": "auto"}}
    one = stack(frameworks=auto, target={"driver": ">=580"})
    two = stack(frameworks=auto, target={"driver": ">=570"})
    assert lock_inputs_sha256(one, tmp_path) != lock_inputs_sha256(two, tmp_path)
