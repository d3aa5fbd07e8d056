"""What a person sees when a spec is wrong: every problem at once, each with its place and a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackbuild.errors import ExitCode, SpecError, SpecProblem
from stackbuild.shipped import shipped_stack
from stackbuild.spec.load import find_stack, list_stacks, load_spec
from stackbuild.spec.model import ImageBaseSpec, RequirementsFile, WheelUrl

SHA = "0123456789abcdef" * 4
MINIMAL = 'schema: 1\nname: demo\nbase: {image: nvidia/cuda, tag: 13.0.3-base-ubuntu24.04}\npython: "3.12"\n'
COMPLETE = f"""\
schema: 1
name: torch-cu130
summary: PyTorch and ONNX Runtime on CUDA 13.0
base: {{image: nvidia/cuda, tag: 13.0.3-base-ubuntu24.04}}
python: "3.12"
frameworks:
  torch: {{version: "2.14.1", variant: cu130}}
  onnxruntime-gpu: {{version: "1.31.1"}}
packages:
  - transformers==5.17.*
  - {{from: requirements.txt}}
  - {{url: "https://wheels.example/flash_attn-2.8.3-cp312-cp312-linux_x86_64.whl", sha256: {SHA}}}
indexes: {{corp: {{url: "https://packages.example/simple", packages: [ourlib]}}}}
overrides: ["nvidia-nccl-cu13==2.30.7"]
constraints: [numpy<3]
exclude: [opencv-python]
prereleases: [ourlib]
apt: [libgomp1]
apt-sources: [{{uri: "https://apt.example", suite: stable, key-sha256: {SHA}}}]
files: [{{from: app/, to: /srv/app, owner: app}}]
image: {{env: {{HF_HOME: /cache}}, workdir: /srv/app, entrypoint: [], cmd: [python, serve.py], expose: [8080],
        healthcheck: {{test: [curl, localhost], interval: 30s}}, volumes: [/cache], labels: {{team: vision}},
        user: {{name: app, uid: 1001}}}}
platforms: [linux/amd64]
target: {{gpus: [H200, L40S], driver: ">=580.65", compatibility: native}}
verify: {{onnx-model: models/a.onnx, torch-model: "models/ours.py:build", allow-cpu-ops: [Shape],
         memory-margin: 10%, shm-size: 1g, checks: [checks/my_model.py]}}
waivers: [{{code: arch-not-covered, match: libfoo.so, reason: soon, owner: ml, until: 2027-03-01}}]
"""


def write(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "demo.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def problems(tmp_path: Path, content: str | bytes) -> tuple[SpecProblem, ...]:
    with pytest.raises(SpecError) as caught:
        load_spec(write(tmp_path, content))
    assert caught.value.exit_code is ExitCode.SPEC_OR_LOCK
    assert caught.value.problems
    return caught.value.problems


def only(tmp_path: Path, content: str | bytes) -> SpecProblem:
    found = problems(tmp_path, content)
    assert len(found) == 1, found
    return found[0]


def test_the_complete_spec_of_the_design_loads(tmp_path: Path) -> None:
    loaded = load_spec(write(tmp_path, COMPLETE))
    spec = loaded.spec
    assert isinstance(spec.base, ImageBaseSpec)
    assert spec.frameworks["torch"].variant == "cu130"
    assert isinstance(spec.packages[1], RequirementsFile)
    assert isinstance(spec.packages[2], WheelUrl)
    assert spec.image.expose == ("8080",)
    assert spec.waivers[0].until.year == 2027
    assert loaded.folder == tmp_path
    assert loaded.where("packages", 1, "from") == f"{loaded.path}:11:12"
    assert loaded.where("packages", 9, "nothing") == f"{loaded.path}:10:3"


def test_all_problems_are_reported_at_once_in_the_files_order(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        """\
schema: 1
name: demo
base: {image: nvidia/cuda, tag: 13.0.3-base-ubuntu24.04}
python: 3.10
framworks: {}
packages: [torch==2.1, foo = 1]
frameworks:
  torch: {version: "2.9.1", variant: cu13}
apt: [libgomp1, libgomp1]
""",
    )
    assert [(p.line, p.column) for p in found] == [(4, 9), (5, 1), (6, 12), (6, 24), (8, 38), (9, 17)]
    assert found[0].suggestion == 'Quote it, because YAML reads 3.10 as the number 3.1: "3.10".'
    assert found[1].suggestion == "Did you mean 'frameworks'?"
    assert "contradicts torch 2.9.1" in found[2].message
    assert found[3].suggestion == "Write foo==1, with two equal signs."
    assert "cu130" in found[4].suggestion
    assert "listed twice" in found[5].message


def test_places_stay_right_beside_an_entry_that_is_left_out(tmp_path: Path) -> None:
    found = problems(tmp_path, MINIMAL + "packages:\n  - 3\n  - foo = 1\n")
    assert [(p.line, p.column) for p in found] == [(6, 5), (7, 5)]


def test_the_error_shows_file_line_column_and_the_offending_text(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(write(tmp_path, MINIMAL + "framworks: {}\n"))
    path = tmp_path / "demo.yaml"
    assert str(caught.value).splitlines() == [
        f"{path}: one problem in the spec",
        f"    {path}:5:1: unknown key 'framworks' [spec-invalid]",
        "        framworks: {}",
        "        ^",
        "        Did you mean 'frameworks'?",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"# only a comment\n", "the file is empty"),
        (b"- a\n- b\n", "this is a list"),
        (b"just words\n", "this is a single text"),
        (b"schema: 1\nname: a: b\n", "mapping values are not allowed"),
        (b"schema: [1\n", "this is not YAML"),
        (b"schema: 1\n\tname: x\n", "this is not YAML"),
        (b"\x7fELF\x02\x01\x00\x00", "NUL bytes"),
        ("schema: 1".encode("utf-16"), "NUL bytes"),
        (b"schema: 1\nname: caf\xe9\n", "byte 0xe9 is not UTF-8"),
        (b"schema: 1\n" + b"#" * 10_000_000, "a spec has at most"),
        (b"schema: " + b"[" * 5000, "nested deeper"),
        (b"a: &a [x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", "anchors and aliases"),
        (b"a: &a [*a]\n", "anchors and aliases"),
        (b"a:\n" + b"- x\n" * 40_000, "more than 20000 keys and values"),
        (b"schema: 1\n---\nschema: 1\n", "this is not YAML"),
        (b"schema: 1\x01\n", "this is not YAML"),
    ],
)
def test_what_is_not_a_spec_is_a_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    problem = only(tmp_path, content)
    assert message in problem.message
    assert problem.code == "spec-not-yaml"
    assert "Error" not in problem.message


def test_the_place_of_a_bad_byte_counts_characters(tmp_path: Path) -> None:
    problem = only(tmp_path, "schema: 1\nsummary: é".encode() + b"\xff\n")
    assert (problem.line, problem.column) == (2, 11)


def test_tabs_are_explained(tmp_path: Path) -> None:
    assert "spaces" in only(tmp_path, "schema: 1\nbase:\n\timage: x\n").suggestion


def test_a_byte_order_mark_and_windows_lines_are_fine(tmp_path: Path) -> None:
    loaded = load_spec(write(tmp_path, b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode()))
    assert loaded.spec.name == "demo"


def test_a_duplicate_key_names_both_lines(tmp_path: Path) -> None:
    problem = only(tmp_path, MINIMAL + "name: other\n")
    assert (problem.line, problem.message) == (5, "the key 'name' is given twice (first in line 2)")


@pytest.mark.parametrize(
    ("addition", "place", "message", "suggestion"),
    [
        ("cmd: [x]", (5, 1), "unknown key 'cmd'", "'cmd' belongs in 'image'."),
        ("apt_sources: []", (5, 1), "unknown key 'apt_sources'", "Did you mean 'apt-sources'?"),
        ("apt: libgomp1", (5, 6), "'apt' must be a list", "Write it as a list: [libgomp1]."),
        ("apt:", (5, 1), "'apt' is empty", "Give it a value, or remove the key."),
        ("pip: yes", (5, 6), "'pip' must be true or false", "Write true."),
        ("frameworks: {torch: 2.9.1}", (5, 21), "must be a mapping", 'Write torch: {version: "2.9.1"}.'),
        ("platforms: [linux/amd]", (5, 13), "cannot be linux/amd", "Did you mean 'linux/amd64'?"),
        (
            "image: {cmd: 'python -c \"print(1)\" true'}",
            (5, 14),
            "'image.cmd' must be a list",
            'Write its words as a list: [python, "-c", "print(1)", "true"].',
        ),
        ("image: {user: root}", (5, 15), "'image.user' must be a mapping", "Write {name: app, uid: 1001}."),
        ("image: {entrypoint: kep}", (5, 21), "'image.entrypoint'", "Did you mean 'keep'?"),
        ("image: {entrypoint: [a, 3]}", (5, 25), "'image.entrypoint[1]' must be a text", 'Quote it: "3".'),
        ("image: {env: {A: 1}}", (5, 18), "'image.env.A' must be a text", 'Quote it: "1".'),
        ("image: {env: {A-B: x}}", (5, 15), "'A-B' is not a name", "letters, digits and _"),
        ("image: {user: {name: app, uid: 0}}", (5, 32), "must be at least 1", ""),
        ("image: {expose: [70000]}", (5, 18), "70000 is not a port", "1 to 65535"),
        ("image: {labels: {io.stackbuild.pins: x}}", (5, 38), "stackbuild's own", "io.stackbuild."),
        ("image: {stop-signal: stop}", (5, 22), "not a signal", "SIGTERM"),
        ("waivers: [{code: a, reason: r, owner: o, until: 2027-02-30}]", (5, 49), "2027-02-30", "a date"),
        ("waivers: [{code: a, reason: r, owner: o}]", (5, 11), "needs 'until'", "a date"),
        ("verify: {tolerance: {fp31: 1}}", (5, 22), "'fp31' is not known", "Did you mean 'fp32'?"),
        (
            "verify: {checks: [../../x.py]}",
            (5, 19),
            "not in the spec's folder or the one above",
            "'..' at most once",
        ),
        ("target: {driver: 580}", (5, 18), "must be a text", '">=580.65"'),
        ("frameworks: {torhc: {}}", (5, 14), "not a framework", "Did you mean 'torch'?"),
        ("frameworks: {flask: {}}", (5, 14), "not a framework", "Put it under packages."),
        ('frameworks: {torch: {version: ">=2"}}', (5, 31), "not one exact version", "torch>=2.9"),
        ("frameworks: {torch: {version: 2.9.1+cu128, variant: cu130}}", (5, 31), "says cu128", '"2.9.1"'),
        ("frameworks: {torch: {variant: auto}}", (5, 31), "there is none", "target"),
        ("frameworks: {onnxruntime-gpu: {variant: cu130}}", (5, 41), "has no variants", "Remove"),
        ("frameworks: {torch: {index: corp}}", (5, 29), "there is no index 'corp'", "default"),
        (
            "files: [{from: ../../app, to: /srv}]",
            (5, 16),
            "not in the spec's folder or the one above",
            "'..'",
        ),
        (
            "files: [{from: /etc/passwd, to: /srv}]",
            (5, 16),
            "not in the spec's folder or the one above",
            "'/'",
        ),
        ("files: [{from: a, to: /s}, {from: b, to: /s}]", (5, 42), "where entry 1 goes", ""),
        ("files: [{from: a, to: /s, mode: 755}]", (5, 33), "must be a text", '"0755"'),
        ("apt: [LibGomp]", (5, 7), "not a Debian package", "NAME=VERSION"),
        ("packages: [-r requirements.txt]", (5, 12), "not a requirement", "{from: requirements.txt}"),
        ("packages: [requirements.txt]", (5, 12), "names a file", "{from: requirements.txt}"),
        ("packages: [a @ https://x.example/a-1-py3-none-any.whl]", (5, 12), "without a hash", "sha256"),
        ("packages: [a @ https://x.example/a.tar.gz]", (5, 12), "is a source", "Build its wheel"),
        ("packages: [torch==2.1, Torch==2.2]", (5, 24), "contradicts torch 2.1", "one place"),
        ("packages: [a]\nexclude: [A]", (5, 12), "listed under exclude", "one of the two"),
        ("prereleases: [a==1]", (5, 15), "not a distribution name", "without a version"),
        ("platforms: []", (5, 12), "at least 1", ""),
    ],
)
def test_a_mistake_is_named_where_it_stands(
    tmp_path: Path, addition: str, place: tuple[int, int], message: str, suggestion: str
) -> None:
    problem = only(tmp_path, MINIMAL + addition + "\n")
    assert (problem.line, problem.column) == place
    assert message in problem.message
    assert suggestion in problem.suggestion


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("flash.whl", "not a wheel's file name"),
        ("a-1.0-cp311-cp311-linux_x86_64.whl", "is for cp311, and the stack has cp312"),
        ("a-1.0-cp313-abi3-linux_x86_64.whl", "is for cp313, and the stack has cp312"),
        ("a-1.0-py3-none-win_amd64.whl", "not a wheel for Linux"),
    ],
)
def test_a_wheel_by_url_must_be_a_wheel_that_fits(tmp_path: Path, file: str, message: str) -> None:
    addition = f'packages: [{{url: "https://wheels.example/{file}", sha256: {SHA}}}]\n'
    assert message in only(tmp_path, MINIMAL + addition).message


@pytest.mark.parametrize(
    "file",
    [
        "a-1.0-py3-none-any.whl",
        "a-1.0-py2.py3-none-any.whl",
        "a-1.0-cp38-abi3-manylinux_2_28_x86_64.whl",
        "torch-2.9.1%2Bcu130-cp312-cp312-manylinux_2_28_x86_64.whl",
    ],
)
def test_wheels_by_url_that_fit(tmp_path: Path, file: str) -> None:
    addition = f'packages: [{{url: "https://wheels.example/{file}", sha256: {SHA}}}]\n'
    load_spec(write(tmp_path, MINIMAL + addition))


def test_a_package_comes_from_one_index(tmp_path: Path) -> None:
    problem = only(
        tmp_path,
        MINIMAL
        + 'indexes:\n  a: {url: "https://a.example", packages: [Our_Lib]}\n'
        + '  b: {url: "https://b.example", packages: [our-lib]}\n',
    )
    assert "bound to the index 'a' already" in problem.message
    assert problem.line == 7


@pytest.mark.parametrize(
    ("frameworks", "channel"),
    [
        ('torch: {version: "2.9.1"}', "cu130"),
        ('torch: {version: "2.9.1", variant: cu126}', "cu126"),
        ("torchvision: {}", "cuXXX"),
    ],
)
def test_the_root_channel_is_refused_with_the_channel_to_use(
    tmp_path: Path, frameworks: str, channel: str
) -> None:
    """Case B03."""
    problem = only(
        tmp_path,
        MINIMAL
        + f"frameworks: {{{frameworks}}}\n"
        + 'indexes: {pt: {url: "https://download.pytorch.org/whl/", packages: [torch]}}\n',
    )
    assert problem.code == "index-not-channel-specific"
    assert f"https://download.pytorch.org/whl/{channel}" in problem.suggestion


def test_a_root_channel_as_frameworks_index_gives_the_error_its_code(tmp_path: Path) -> None:
    """Case B03."""
    addition = 'frameworks: {torch: {version: "2.9.1", index: "https://download.pytorch.org/whl"}}\n'
    with pytest.raises(SpecError) as caught:
        load_spec(write(tmp_path, MINIMAL + addition))
    assert caught.value.code == "index-not-channel-specific"


def test_external_stacks_have_no_build_keys(tmp_path: Path) -> None:
    head = "schema: 1\nname: demo\nexternal: vllm/vllm-openai:v0.11.0\n"
    assert load_spec(write(tmp_path, head)).spec.external == "vllm/vllm-openai:v0.11.0"
    found = problems(tmp_path, head + "packages: [numpy]\napt: [libgomp1]\n")
    assert [p.line for p in found] == [4, 5]
    assert all("external" in p.message for p in found)


def test_base_and_external_exclude_each_other(tmp_path: Path) -> None:
    assert "exactly one of" in only(tmp_path, MINIMAL + "external: x:1\n").message
    assert "exactly one of" in only(tmp_path, "schema: 1\nname: demo\n").message


def test_packages_need_a_python(tmp_path: Path) -> None:
    problem = only(tmp_path, MINIMAL.replace('python: "3.12"', "python: none") + "packages: [numpy]\n")
    assert "needs a Python" in problem.message


def test_a_base_written_as_one_reference_is_taken_apart(tmp_path: Path) -> None:
    problem = only(tmp_path, "schema: 1\nname: demo\nbase: nvidia/cuda:13.0.3-base-ubuntu24.04\n")
    assert problem.suggestion == "Write {image: nvidia/cuda, tag: 13.0.3-base-ubuntu24.04}."


def test_missing_files_and_folders_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file"):
        load_spec(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="a folder"):
        load_spec(tmp_path)


def test_stacks_are_found_by_name_and_by_path(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    for name in ("torch-cpu", "demo-cpu"):
        (stacks / f"{name}.yaml").write_text("schema: 1\n")
    (stacks / "demo-cpu.lock").write_text("")
    below = tmp_path / "deep" / "folder"
    below.mkdir(parents=True)
    assert [path.name for path in list_stacks(below)] == ["demo-cpu.yaml", "torch-cpu.yaml"]
    assert find_stack("demo-cpu", below) == stacks / "demo-cpu.yaml"
    assert find_stack("stacks/torch-cpu.yaml", tmp_path).name == "torch-cpu.yaml"
    with pytest.raises(SpecError) as caught:
        find_stack("demo-cpo", below)
    assert caught.value.do == "Did you mean 'demo-cpu'?"
    with pytest.raises(SpecError, match="no such file"):
        find_stack("other.yaml", below)


def test_a_link_that_leads_nowhere_is_a_stack_that_says_so(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    (tmp_path / "elsewhere.yaml").write_text("schema: 1\n")
    (stacks / "there.yaml").symlink_to("../elsewhere.yaml")
    (stacks / "gone.yaml").symlink_to("../gone/gone.yaml")
    (stacks / "round.yaml").symlink_to("round.yaml")
    (stacks / "folder.yaml").symlink_to(tmp_path)
    assert [path.name for path in list_stacks(tmp_path)] == ["gone.yaml", "round.yaml", "there.yaml"]
    for name in ("gone", "stacks/gone.yaml"):
        with pytest.raises(SpecError) as caught:
            load_spec(find_stack(name, tmp_path))
        assert caught.value.code == "spec-not-found"
        assert "this is a link to ../gone/gone.yaml, where no file is" in str(caught.value)
        assert str(stacks / "gone.yaml") in str(caught.value)
    with pytest.raises(SpecError, match="cannot be read"):
        load_spec(stacks / "round.yaml")


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + ".yaml", "a\0b.yaml"])
def test_a_name_that_no_file_can_have_is_no_stack(name: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        find_stack(name, tmp_path)
    assert caught.value.code == "spec-not-found"
    assert shipped_stack("x" * 300) is None
