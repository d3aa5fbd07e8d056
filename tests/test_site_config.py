from __future__ import annotations

from pathlib import Path

import pytest

from stackbuild.errors import UsageError
from stackbuild.site_config import SiteConfig, load_site_config


def test_nothing_said(tmp_path: Path) -> None:
    site = load_site_config(tmp_path, {})
    assert site == SiteConfig()
    assert site.index("default") is None
    assert site.trusts_hashes("default")
    channel = site.index("pytorch-cu130")
    assert channel is not None
    assert channel.url == "https://download.pytorch.org/whl/cu130"
    assert not site.trusts_hashes("pytorch-cu130")
    assert site.index("corp") is None


def test_the_nearest_file_counts_and_its_paths_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "stackbuild.toml").write_text(
        'ca-bundle = "ca.pem"\nstore = "store"\nsnapshot = "http://127.0.0.1/s"\n'
        '[indexes]\npytorch-cpu = "wheels"\n'
        'corp = {url = "https://corp.example/simple", trusted-hashes = true}\n'
        'folder = {folder = "more"}\n'
        '[registries]\n"docker.io" = "127.0.0.1:5000"\n[repositories]\ndebian = "http://127.0.0.1/debian"\n'
    )
    (tmp_path / "a" / "b").mkdir(parents=True)
    site = load_site_config(tmp_path / "a" / "b", {})
    cpu, corp, folder = (site.index(name) for name in ("pytorch-cpu", "corp", "folder"))
    assert cpu is not None
    assert cpu.folder == tmp_path / "wheels"
    assert corp is not None
    assert corp.url == "https://corp.example/simple"
    assert site.trusts_hashes("corp")
    assert folder is not None
    assert folder.folder == tmp_path / "more"
    assert (site.ca_bundle, site.store) == (tmp_path / "ca.pem", tmp_path / "store")
    assert site.registries == {"docker.io": "127.0.0.1:5000"}
    assert site.repositories == {"debian": "http://127.0.0.1/debian"}


def test_variables_lie_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "stackbuild.toml").write_text('[indexes]\ndefault = "https://a.example/simple"\ncorp = "c"\n')
    site = load_site_config(
        tmp_path,
        {"STACKBUILD_INDEXES": "default=https://b.example/simple pytorch-cpu=/w", "STACKBUILD_STORE": "/s"},
    )
    assert {name: place.url or str(place.folder) for name, place in site.indexes.items()} == {
        "default": "https://b.example/simple",
        "corp": str(tmp_path / "c"),
        "pytorch-cpu": "/w",
    }
    assert site.store == Path("/s")


def test_the_site_file_goes_before_the_spec(tmp_path: Path) -> None:
    site = load_site_config(tmp_path, {"STACKBUILD_INDEXES": "corp=https://mirror.example/"})
    place = site.index("corp", url="https://corp.example/simple")
    assert place is not None
    assert place.url == "https://mirror.example/"
    folder = site.index("other", url="file:///a%20b/wheels")
    assert folder is not None
    assert folder.folder == Path("/a b/wheels")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("indexes = 3\n", "'indexes' must be a table"),
        ("store = 5\n", "'store' must be a text"),
        ("[runners]\ncpu = 3\n", "'runners.cpu' must be a list"),
        ("[indexs]\na = 'b'\n", "indexs"),
        ("[indexes]\na = {trusted-hashes = true}\n", "exactly one"),
        ("a = [\n", "cannot be read"),
    ],
)
def test_a_wrong_file_is_a_usage_error_that_names_it(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "stackbuild.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        load_site_config(tmp_path, {})
    assert message in str(caught.value)
    assert str(tmp_path / "stackbuild.toml") in str(caught.value)


def test_wrong_variables(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="NAME=PLACE"):
        load_site_config(tmp_path, {"STACKBUILD_REGISTRIES": "docker.io"})
    with pytest.raises(UsageError, match="STACKBUILD_CONFIG"):
        load_site_config(tmp_path, {"STACKBUILD_CONFIG": str(tmp_path / "none.toml")})


def test_an_unknown_key_is_told_with_its_line_and_the_nearest_there_is(tmp_path: Path) -> None:
    (tmp_path / "stackbuild.toml").write_text(
        'store = "s"\n'
        "# indexs = 1\n"
        "[indexs]\n"
        'default = "https://mirror.example/simple"\n'
        "\n"
        "[policy]\n"
        "eol-tolerance-day = 3\n"
        "[indexes]\n"
        'own = {urll = "https://own.example/simple"}\n'
        "[colours]\n"
    )
    with pytest.raises(UsageError) as caught:
        load_site_config(tmp_path, {})
    file = tmp_path / "stackbuild.toml"
    lines = [line.strip() for line in caught.value.detail.splitlines()]
    for place, message, suggestion in (
        ("3:2", "unknown key 'indexs'", "Did you mean 'indexes'?"),
        ("7:1", "unknown key 'eol-tolerance-day' in 'policy'", "Did you mean 'eol-tolerance-days'?"),
        ("9:1", "unknown key 'urll' in 'indexes.own'", "Did you mean 'url'?"),
        ("10:2", "unknown key 'colours'", "Known here: "),
    ):
        position = lines.index(f"{file}:{place}: {message} [site-config-invalid]")
        assert lines[position + 3].startswith(suggestion)


def test_it_is_known_what_maps_a_name(tmp_path: Path) -> None:
    file = tmp_path / "stackbuild.toml"
    file.write_text('[indexes]\ndefault = "https://a.example/simple"\ncorp = "c"\n')
    site = load_site_config(tmp_path, {"STACKBUILD_INDEXES": "corp=https://b.example/simple"})
    names = ("default", "corp", "pytorch-cpu")
    assert [site.mapped_in("indexes", name) for name in names] == [str(file), "STACKBUILD_INDEXES", ""]
