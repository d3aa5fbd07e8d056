"""Every row of every fact table reads, has a source, and means what its type says."""

from __future__ import annotations

import re
from datetime import date
from importlib.resources import files

import pytest
from packaging.version import Version

from stackbuild.compat.versions import parse_compute_capability, parse_cuda, parse_driver, parse_variant
from stackbuild.facts.rows import PythonVersion
from stackbuild.facts.tables import TABLES, Facts

FACTS = Facts()


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_row_reads_and_has_a_source(name: str) -> None:
    table = FACTS.table(name)
    assert table.rows
    assert table.about.endswith(".")
    date.fromisoformat(table.collected)
    for row in table.rows:
        assert all(row.source), row
        assert row.source, row
        assert row.confidence in {
            "measured", "corroborated", "authoritative-capture", "sourced", "medium", "uncertain",
        }, row  # fmt: skip


def test_every_file_of_facts_has_a_table() -> None:
    shipped = {
        entry.name.removesuffix(".json")
        for entry in files("stackbuild.facts").iterdir()
        if entry.name.endswith(".json")
    }
    assert shipped == set(TABLES)


def test_versions_parse() -> None:
    for row in FACTS.table("toolkits").rows:
        parse_cuda(row.cuda)
        if row.driver:
            assert parse_driver(row.driver)[0] == row.branch
    for row in FACTS.table("driver_branches").rows:
        if row.max_cuda:
            parse_cuda(row.max_cuda)
        if row.last_driver:
            assert parse_driver(row.last_driver)[0] == row.branch
        if row.eol:
            assert re.fullmatch(r"\d{4}-\d{2}", row.eol)
    for row in FACTS.table("gpus").rows:
        assert FACTS.architecture(row.compute_capability) is not None, row
    for row in FACTS.table("torch_variants").rows:
        cuda = parse_variant(row.variant)
        assert cuda is not None
        assert str(cuda) == row.cuda
        for architecture in (*row.sm, *row.ptx):
            parse_compute_capability(architecture)
        assert FACTS.torch_release(row.version) is not None
    for row in FACTS.table("torch_releases").rows:
        Version(row.version)
        Version(row.glibc)
        assert row.default_variant["x86_64"] == "cpu" or parse_variant(row.default_variant["x86_64"])
    for row in FACTS.table("distributions").rows:
        date.fromisoformat(row.eol)
    for row in FACTS.table("failure_signatures").rows:
        re.compile(row.pattern)


def test_newer_driver_branches_report_no_older_cuda() -> None:
    known = [row for row in FACTS.table("driver_branches").rows if row.max_cuda]
    ordered = [parse_cuda(row.max_cuda) for row in sorted(known, key=lambda row: row.branch)]
    assert ordered == sorted(ordered)


@pytest.mark.parametrize(
    ("name", "product", "capability"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100", "8.0"),
        ("NVIDIA H100 80GB HBM3", "H100", "9.0"),
        ("Tesla V100-SXM2-16GB", "V100", "7.0"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "GeForce RTX 4090", "8.9"),
        ("GTX 1080", "GeForce GTX 1080", "6.1"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", "8.9"),
        ("Quadro RTX 6000", "Quadro RTX 6000", "7.5"),
        ("NVIDIA GB10", "GB10 (DGX Spark)", "12.1"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell Server Edition", "12.0"),
    ],
)
def test_products_are_found_by_the_names_that_tools_print(name: str, product: str, capability: str) -> None:
    row = FACTS.gpu(name)
    assert row is not None
    assert (row.product, row.compute_capability) == (product, capability)


def test_no_two_products_share_a_key() -> None:
    from stackbuild.facts.tables import product_key

    products = [row.product for row in FACTS.table("gpus").rows]
    assert len({product_key(product) for product in products}) == len(products)


def test_a_row_has_exactly_its_fields() -> None:
    with pytest.raises(TypeError, match="PythonVersion has a field too many or too few: eol, name"):
        PythonVersion(source=("x",), confidence="medium", version="3.12", name="x")  # type: ignore[call-arg]


def test_a_row_does_not_change() -> None:
    row = PythonVersion(source=("x",), confidence="medium", version="3.12", eol="2028-10-31")
    with pytest.raises(AttributeError, match="does not change"):
        row.eol = "2030-01-01"  # type: ignore[misc]
    with pytest.raises(AttributeError, match="does not change"):
        del row.eol
    assert row.eol == "2028-10-31"
