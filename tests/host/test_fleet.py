"""Hosts read from what teams have."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stackbuild.errors import StackbuildError, UsageError
from stackbuild.host.fleet import hosts_in, read_hosts
from stackbuild.host.model import Host

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.iterdir())


def _one(file: str) -> Host:
    (host,) = read_hosts(DATA / file)
    return host


@pytest.mark.parametrize(
    ("file", "driver", "max_cuda", "gpus"),
    [
        ("smi-r470.txt", "470.103.01", "11.4", [("A100", "8.0", 40536)] * 2),
        ("smi-r535.txt", "535.183.01", "12.2", [("NVIDIA L40S", "8.9", 46068)] * 2),
        ("smi-r580.txt", "580.95.05", "13.0", [("NVIDIA H200", "9.0", 143771)] * 2),
        ("smi-r610.txt", "610.57.04", "13.3", [("NVIDIA GeForce RTX 5090", "12.0", 32607)]),
        (
            "smi-query.xml",
            "570.172.08",
            "12.8",
            [("NVIDIA H100 80GB HBM3", "9.0", 81559), ("Tesla T4", "7.5", 15360)],
        ),
        (
            "smi-query.txt",
            "580.126.16",
            "13.0",
            [("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0", 97887)],
        ),
        ("smi-query.csv", "575.57.08", None, [("NVIDIA B200", "10.0", 183359)] * 2),
        (
            "smi-list.txt",
            None,
            None,
            [("NVIDIA A100-PCIE-40GB", "8.0", None), ("Tesla V100-PCIE-32GB", "7.0", None)],
        ),
    ],
)
def test_nvidia_smi_in_all_its_shapes(
    file: str, driver: str | None, max_cuda: str | None, gpus: list[tuple[str, str, int | None]]
) -> None:
    host = _one(file)
    assert (host.driver, host.max_cuda, host.posture) == (driver, max_cuda, "linux")
    assert [(gpu.name, gpu.compute_capability, gpu.memory_mib) for gpu in host.gpus] == gpus
    assert host.name == Path(file).stem


def test_mig_and_ecc_are_read_from_the_table_and_the_report() -> None:
    assert [gpu.mig for gpu in _one("smi-r470.txt").gpus] == [False, True]
    assert [gpu.ecc for gpu in _one("smi-r535.txt").gpus] == [True, False]
    report = _one("smi-query.xml").gpus
    assert [(gpu.mig, gpu.ecc, gpu.brand) for gpu in report] == [
        (True, True, "nvidia"),
        (None, False, "tesla"),
    ]
    assert [gpu.mig for gpu in _one("smi-list.txt").gpus] == [True, None]


def test_a_gpu_that_answers_err_is_left_out_and_told() -> None:
    assert "GPU 2 at 00000000:C1:00.0 answers ERR! and is left out" in _one("smi-r535.txt").notes


def test_a_name_cut_off_too_early_leaves_the_capability_unknown() -> None:
    host = _one("smi-no-cuda.txt")
    assert host.gpus[0].compute_capability is None
    assert host.gpus[0].brand == "geforce"
    assert any("cut off too early" in note for note in host.notes)


def test_a_banner_without_cuda_version_leaves_the_maximum_to_the_facts() -> None:
    host = _one("smi-no-cuda.txt")
    assert (host.driver, host.max_cuda) == ("525.60.13", None)


def test_a_cuda_version_of_a_compat_library_does_not_count() -> None:
    host = _one("smi-compat.txt")
    assert (host.max_cuda, host.max_cuda_source) == ("12.2", "facts")
    assert any("cuda-compat" in note for note in host.notes)


def test_windows_is_told_by_the_driver_model() -> None:
    host = _one("smi-windows.txt")
    assert host.posture == "windows"
    assert [gpu.driver_model for gpu in host.gpus] == ["wddm", "tcc"]
    assert host.gpus[0].compute_capability == "8.9"  # RTX 4060 or 4060 Ti: the same


def test_wsl2_is_told_by_a_driver_that_is_not_the_tools_own() -> None:
    assert _one("smi-wsl2.txt").posture == "wsl2"


def test_several_tables_are_several_hosts(tmp_path: Path) -> None:
    file = tmp_path / "rack.txt"
    file.write_text((DATA / "smi-r470.txt").read_text() + (DATA / "smi-r580.txt").read_text())
    hosts = read_hosts(file)
    assert [(host.name, host.driver) for host in hosts] == [("rack-1", "470.103.01"), ("rack-2", "580.95.05")]


def test_the_shell_of_windows_writes_utf_16(tmp_path: Path) -> None:
    file = tmp_path / "desk.txt"
    file.write_bytes((DATA / "smi-windows.txt").read_text().replace("\n", "\r\n").encode("utf-16"))
    assert read_hosts(file)[0].driver == "551.78"


def test_csv_with_a_column_of_hosts() -> None:
    hosts = read_hosts(DATA / "smi-fleet.csv")
    assert [(host.name, host.driver, len(host.gpus)) for host in hosts] == [
        ("gpu-01", "550.163.01", 1),
        ("gpu-02", "535.288.01", 2),
    ]


def test_kubernetes_nodes() -> None:
    hosts = {host.name: host for host in read_hosts(DATA / "kubernetes-nodes.json")}
    assert list(hosts) == ["h100-1", "a100-mig", "t4-shared", "gh200-1", "unlabelled"]  # no control plane
    h100 = hosts["h100-1"]
    assert (h100.driver, h100.max_cuda, h100.machine, len(h100.gpus)) == ("580.126.16", "13.0", "x86_64", 8)
    assert (h100.gpus[0].compute_capability, h100.gpus[0].memory_mib) == ("9.0", 81559)
    deprecated = hosts["a100-mig"]
    assert (deprecated.driver, deprecated.max_cuda) == ("525.105.17", "12.0")
    assert deprecated.gpus[0].mig is True
    assert (hosts["t4-shared"].driver, hosts["t4-shared"].gpus[0].name) == ("535.183.01", "Tesla-T4")
    assert hosts["gh200-1"].machine == "aarch64"
    assert hosts["gh200-1"].gpus[0].mig is True  # the mixed strategy
    assert "GPU feature discovery does not run there" in hosts["unlabelled"].notes[0]


def test_slurm_nodes() -> None:
    hosts = {host.name: host for host in read_hosts(DATA / "slurm-scontrol.txt")}
    assert list(hosts) == ["gpu-h1", "gpu-a1", "gpu-x1"]  # no login node
    assert (hosts["gpu-h1"].kernel, hosts["gpu-h1"].machine) == ("5.15.0-107-generic", "x86_64")
    assert [gpu.compute_capability for gpu in hosts["gpu-h1"].gpus] == ["9.0"] * 4
    assert [gpu.mig for gpu in hosts["gpu-a1"].gpus] == [None, None, True, True, True, True]
    assert hosts["gpu-x1"].gpus == ()
    assert all(host.driver is None for host in hosts.values())


def test_slurm_in_one_line_a_node() -> None:
    text = (DATA / "slurm-scontrol.txt").read_text().replace("\n   ", " ")
    assert [host.name for host in hosts_in(text)] == ["gpu-h1", "gpu-a1", "gpu-x1"]
    assert len(hosts_in(text)[0].gpus) == 4


def test_sinfo_with_ranges_and_repeated_nodes() -> None:
    hosts = read_hosts(DATA / "slurm-sinfo.txt")
    assert [host.name for host in hosts] == ["gpu001", "gpu002", "gpu010", "gpu011", "gpu012"]
    assert (hosts[-1].gpus[0].name, len(hosts[-1].gpus)) == ("GeForce RTX 4090", 8)


def test_sinfo_without_header() -> None:
    hosts = hosts_in("gpu001 gpu:h100:4\ngpu002 gpu:h100:4\ncpu001 (null)\n")
    assert [(host.name, len(host.gpus)) for host in hosts] == [("gpu001", 4), ("gpu002", 4)]


def test_yaml_by_hand_keeps_versions_as_written() -> None:
    edge, train, desk = read_hosts(DATA / "written-fleet.yaml")
    assert (edge.injection, len(edge.gpus)) == ("legacy", 2)
    assert (train.driver, train.max_cuda, len(train.gpus)) == ("580.65", "13.0", 8)
    assert (desk.posture, desk.gpus[0].compute_capability) == ("wsl2", "8.9")


def test_json_with_numbers_for_versions() -> None:
    (host,) = hosts_in('{"driver": 550.90, "gpus": ["H100"]}')
    assert (host.name, host.driver, host.gpus[0].compute_capability) == ("host", "550.90", "9.0")


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "a", "driver": "580.65"}, {"name": "b"}]',
        '{"hosts": [{"name": "a", "driver": "580.65"}, {"name": "b"}]}',
        "- name: a\n  driver: 580.65\n- name: b\n",
    ],
)
def test_a_list_of_cards(text: str) -> None:
    assert [(host.name, host.driver) for host in hosts_in(text)] == [("a", "580.65"), ("b", None)]


def test_equal_hosts_stay_apart() -> None:
    hosts = hosts_in('[{"name": "gpu", "driver": "580.65"}, {"name": "gpu", "driver": "580.65"}]')
    assert [host.name for host in hosts] == ["gpu", "gpu (2)"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO((DATA / "smi-r580.txt").read_bytes()))
    monkeypatch.setattr("sys.stdin", stream)
    (host,) = read_hosts(Path("-"))
    assert (host.name, host.driver) == ("host", "580.95.05")


def test_every_problem_of_a_card_is_told_with_its_place() -> None:
    with pytest.raises(UsageError) as caught:
        hosts_in(
            '{"hosts": [{"driver": "new"}, {"drivr": "580.65", "gpus": [{"name": "H100", "memory-mib": -1}]}]}'
        )
    assert caught.value.code == "host-invalid"
    problems = caught.value.detail.splitlines()
    assert problems[0].startswith("hosts[0].driver: ")
    assert any(line.startswith("hosts[1].gpus[0].memory-mib: ") for line in problems)
    assert "hosts[1].drivr: unknown key" in problems


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no host that is understood"),
        ("hello", "no host that is understood"),
        ("a, b\n1, 2\n", "no host that is understood"),
        ("<html></html>", "no host that is understood"),
        ("{", "is not JSON"),
        ("[" * 100_000, "nested without end"),
        ("- " * 100, "nested deeper"),
        ("a: &x [1]\nb: *x\n", "anchor or alias in line 1"),
        ("driver: 1.1\ndriver: 1.2\n", "twice, in line 2"),
        ("<nvidia_smi_log><gpu>", "cut off"),
        ("<nvidia_smi_log><gpu></nvidia_smi_log>", "not usable XML"),
        ("<nvidia_smi_log>&x;</nvidia_smi_log>", "not usable XML"),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure",
            "itself failed",
        ),
        ("Failed to initialize NVML: Driver/library version mismatch", "version mismatch"),
        ('{"kind": "List", "items": []}', "no host in it"),
    ],
)
def test_what_is_no_host_is_a_sentence(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        hosts_in(text)


def test_entities_of_a_document_type_are_never_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("570.00")
    text = (
        f'<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY x SYSTEM "file://{secret}">]>'
        "<nvidia_smi_log><driver_version>&x;</driver_version></nvidia_smi_log>"
    )
    with pytest.raises(UsageError, match="not usable XML"):
        hosts_in(text)


def test_a_file_that_is_not_there_or_binary(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_hosts(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0\0")
    with pytest.raises(UsageError, match="binary") as caught:
        read_hosts(tmp_path / "binary")
    assert caught.value.where == str(tmp_path / "binary")


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_what_is_read_can_be_written_and_read_again(file: Path, tmp_path: Path) -> None:
    hosts = read_hosts(file)
    again = tmp_path / "hosts.json"
    again.write_text(json.dumps({"hosts": [host.model_dump(mode="json", by_alias=True) for host in hosts]}))
    assert read_hosts(again) == hosts


def _read_or_refused(text: str) -> None:
    code = ""
    hosts: tuple[Host, ...] = ()
    try:
        hosts = hosts_in(text)
    except StackbuildError as error:
        code = error.code
    assert hosts or code in ("host-unreadable", "host-invalid")


@settings(max_examples=150)
@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    _read_or_refused(text)


@settings(max_examples=400)
@given(st.sampled_from(FILES), st.data())
def test_a_damaged_file_is_read_or_refused(file: Path, data: st.DataObject) -> None:
    text = file.read_text()
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.sampled_from([0, 1, 3, 40, 400]))
        text = text[:start] + data.draw(st.text(max_size=6)) + text[start + length :]
    _read_or_refused(text)


@settings(max_examples=150)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "kind",
                        "items",
                        "metadata",
                        "labels",
                        "name",
                        "status",
                        "nodeInfo",
                        "capacity",
                        "gpus",
                        "driver",
                        "hosts",
                        "count",
                        "nvidia.com/gpu.product",
                        "nvidia.com/gpu.count",
                        "max-cuda",
                        "schema",
                        "nvidia.com/gpu",
                        "notes",
                        "profilers",
                    ]
                ),
                inner | st.sampled_from(["Node", "List", "H100", "1"]),
                max_size=5,
            )
        ),
        max_leaves=15,
    )
)
def test_any_json_is_read_or_refused(document: object) -> None:
    _read_or_refused(json.dumps(document))
