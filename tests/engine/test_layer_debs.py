"""The debs layer: real apt, real packages, in containers of a bootstrapped Debian."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import BuildError, LockError
from stackbuild.layers.debs import DebsMaker
from stackbuild.layers.debs_stability import require_stable_debs
from tests.engine.conftest import DebianBase
from tests.support.base_image import docker_archive
from tests.support.bookworm_debs import lock_deb, lock_debs
from tests.support.debs import make_deb

pytestmark = pytest.mark.engine

CAPABILITY = "SCHILY.xattr.security.capability"

# One package whose script does what scripts of real packages do, and what they should not.
SCRIPT = r"""#!/bin/sh
set -e
echo second > /etc/machine-id
/usr/sbin/policy-rc.d nginx start || echo "$?" > /etc/policy-answer
rm /etc/motd
rm -r /etc/update-motd.d && mkdir /etc/update-motd.d && echo new > /etc/update-motd.d/20-new
mkdir -p /var/log/ours /usr/lib/python3/__pycache__
date +%N > /var/log/ours/run.log
echo x > /usr/lib/python3/__pycache__/x.cpython-311.pyc
date +%N > /tmp/ours
mkdir -m 2750 /srv/ours && chown 33:4 /srv/ours
ln /srv/data /srv/data-again
"""


def _layer(maker: DebsMaker, base: DebianBase) -> tuple[bytes, dict[str, tarfile.TarInfo]]:
    sink = io.BytesIO()
    maker.make(sink, base.tree)
    with tarfile.open(fileobj=io.BytesIO(sink.getvalue())) as archive:
        return sink.getvalue(), {member.name: member for member in archive}


def _content(layer: bytes, path: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        content = archive.extractfile(path)
        assert content is not None
        return content.read()


def _maker(engine: Engine, base: DebianBase, *debs: Path) -> DebsMaker:
    return DebsMaker(engine, base.image, ("sha256:base",), tuple(lock_deb(deb) for deb in debs))


def _set(engine: Engine, base: DebianBase, name: str) -> DebsMaker:
    return DebsMaker(engine, base.image, ("sha256:base",), lock_debs(base.debs / name))


def _run(
    engine: Engine, image_name: Callable[[str], str], base: DebianBase, layer: bytes, *command: str
) -> str:
    ref = image_name("with-debs")
    engine.load([docker_archive([base.tar, layer], ref=ref)[0]])
    with engine.container(ref, ["sleep", "60"]) as container:
        container.start()
        done = container.exec(command)
        assert done.exit_code == 0, done.text
        return done.text


def test_python_installs_to_the_same_bytes_twice(
    engine: Engine, debian_base: DebianBase, tmp_path: Path, image_name: Callable[[str], str]
) -> None:
    maker = _set(engine, debian_base, "python")
    layer, members = _layer(maker, debian_base)
    first = tmp_path / "layer.tar"
    first.write_bytes(layer)
    require_stable_debs(maker, debian_base.tree, first)

    assert {member.mtime for member in members.values()} == {1_700_000_000}
    assert "usr/bin/python3.11" in members
    dropped = (
        ".stackbuild",
        "var/log/dpkg",
        "var/cache/apt/archives/",
        "var/lib/apt/lists/",
        "usr/sbin/policy-rc.d",
    )
    assert not [path for path in members if "__pycache__" in path or path.startswith(dropped)]
    assert not {"lib", "bin"} & members.keys()
    shown = _run(
        engine,
        image_name,
        debian_base,
        layer,
        "python3",
        "-c",
        "import ssl, sys; print(sys.version_info[:2])",
    )
    assert shown.strip() == "(3, 11)"


def test_file_capabilities_and_the_mode_of_tmp_are_kept(
    engine: Engine, debian_base: DebianBase, image_name: Callable[[str], str]
) -> None:
    layer, members = _layer(_set(engine, debian_base, "ping"), debian_base)
    assert CAPABILITY in members["usr/bin/ping"].pax_headers
    shown = _run(
        engine,
        image_name,
        debian_base,
        layer,
        "sh",
        "-c",
        "getcap /usr/bin/ping; stat -c %a /tmp; readlink /lib",
    )
    assert shown.splitlines() == ["/usr/bin/ping cap_net_raw=ep", "1777", "usr/lib"]


def test_a_log_directory_that_a_package_owns_is_kept(
    engine: Engine, debian_base: DebianBase, image_name: Callable[[str], str]
) -> None:
    layer, members = _layer(_set(engine, debian_base, "nginx"), debian_base)
    assert members["var/log/nginx"].isdir()
    assert not [path for path in members if path.startswith("var/log/nginx/")]
    _run(engine, image_name, debian_base, layer, "nginx", "-t")


def test_what_scripts_do_is_mirrored_but_for_the_declared_noise(
    engine: Engine, debian_base: DebianBase, tmp_path: Path, image_name: Callable[[str], str]
) -> None:
    deb = make_deb(tmp_path, "ours", "1:2.0", files={"/srv/data": "data"}, scripts={"postinst": SCRIPT})
    maker = _maker(engine, debian_base, deb)
    layer, members = _layer(maker, debian_base)
    assert layer == _layer(maker, debian_base)[0]

    assert members["etc/machine-id"].size == 0
    assert _content(layer, "etc/policy-answer") == b"101\n"
    assert "etc/.wh.motd" in members
    assert "etc/update-motd.d/.wh.10-uname" in members
    assert members["var/log/ours"].isdir()
    assert not {"var/log/ours/run.log", "tmp/ours"} & members.keys()
    assert not [path for path in members if "__pycache__" in path]
    ours = members["srv/ours"]
    assert (ours.mode, ours.uid, ours.gid) == (0o2750, 33, 4)
    assert members["srv/data-again"].linkname == "srv/data"
    shown = _run(
        engine,
        image_name,
        debian_base,
        layer,
        *("sh", "-c", "ls /etc/motd 2>/dev/null; ls /etc/update-motd.d; dpkg-query -W -f '${Version}' ours"),
    )
    assert shown.splitlines() == ["20-new", "1:2.0"]


def test_a_version_that_was_edited_in_the_lock_is_told_as_that(
    engine: Engine, debian_base: DebianBase, tmp_path: Path
) -> None:
    deb, path = lock_deb(make_deb(tmp_path, "ours", "1.0"))
    edited = deb.model_copy(update={"version": "1.1"})
    maker = DebsMaker(engine, debian_base.image, ("sha256:base",), ((edited, path),))
    with pytest.raises(LockError, match=r"the lock calls ours 1\.1 for all what is ours 1\.0") as caught:
        maker.make(io.BytesIO(), debian_base.tree)
    assert caught.value.code == "lock-invalid"


def test_a_deb_that_removes_another_is_refused_by_name(
    engine: Engine, debian_base: DebianBase, tmp_path: Path
) -> None:
    deb = make_deb(tmp_path, "hostile", "1", control=["Conflicts: tzdata"])
    with pytest.raises(BuildError, match="would remove tzdata") as caught:
        _layer(_maker(engine, debian_base, deb), debian_base)
    assert caught.value.code == "deb-removes-package"


def test_a_postinst_that_fails_shows_the_package_and_its_last_lines(
    engine: Engine, debian_base: DebianBase, tmp_path: Path
) -> None:
    script = "#!/bin/sh\necho configuring\necho no such licence server >&2\nexit 7\n"
    deb = make_deb(tmp_path, "broken", "1", scripts={"postinst": script})
    with pytest.raises(BuildError, match="broken") as caught:
        _layer(_maker(engine, debian_base, deb), debian_base)
    assert caught.value.code == "deb-install-failed"
    assert "no such licence server" in caught.value.detail
    assert "error exit status 7" in caught.value.detail


def test_a_missing_dependency_is_told_in_apts_words(
    engine: Engine, debian_base: DebianBase, tmp_path: Path
) -> None:
    deb = make_deb(tmp_path, "needy", "1", control=["Depends: not-locked (>= 2)"])
    with pytest.raises(BuildError) as caught:
        _layer(_maker(engine, debian_base, deb), debian_base)
    assert caught.value.code == "deb-install-failed"
    assert "not-locked (>= 2)" in caught.value.detail


@pytest.mark.parametrize(
    ("files", "script", "path"),
    [
        (
            {},
            "#!/bin/sh\nmkdir -p /etc/ssh; echo key > /etc/ssh/ssh_host_ed25519_key\n",
            "ssh_host_ed25519_key",
        ),
        ({}, "#!/bin/sh\necho key > /etc/ssl/private/ssl-cert-snakeoil.key\n", "ssl-cert-snakeoil.key"),
    ],
)
def test_a_secret_that_all_containers_would_share_is_refused(
    engine: Engine, debian_base: DebianBase, tmp_path: Path, files: Mapping[str, str], script: str, path: str
) -> None:
    deb = make_deb(tmp_path, "keys", "1", files=files, scripts={"postinst": script})
    with pytest.raises(BuildError, match=path) as caught:
        _layer(_maker(engine, debian_base, deb), debian_base)
    assert caught.value.code == "machine-secret"


def test_a_deb_that_installs_differently_twice_is_named_with_its_path(
    engine: Engine, debian_base: DebianBase, tmp_path: Path
) -> None:
    random = "od -An -N8 -tx8 /dev/urandom"
    script = f"#!/bin/sh\n{random} > /usr/share/doc/dice/README\n{random} > /etc/dice\n"
    maker = _maker(engine, debian_base, make_deb(tmp_path, "dice", "1", scripts={"postinst": script}))
    first = tmp_path / "layer.tar"
    first.write_bytes(_layer(maker, debian_base)[0])
    with pytest.raises(LockError) as caught:
        require_stable_debs(maker, debian_base.tree, first)
    assert caught.value.code == "deb-not-reproducible"
    assert caught.value.detail.splitlines() == [
        "/etc/dice: made by a package's script",
        "/usr/share/doc/dice/README: dice",
    ]


def test_a_file_that_is_no_deb_is_named(engine: Engine, debian_base: DebianBase, tmp_path: Path) -> None:
    good = make_deb(tmp_path, "good", "1")
    locked, path = lock_deb(good)
    path.write_bytes(b"not a deb")
    maker = DebsMaker(engine, debian_base.image, ("sha256:base",), ((locked, path),))
    with pytest.raises(BuildError, match="good 1 cannot be read"):
        _layer(maker, debian_base)


def test_no_debs_make_an_empty_layer_without_a_container(engine: Engine, debian_base: DebianBase) -> None:
    sink = io.BytesIO()
    maker = DebsMaker(engine, "no-such-image", ("sha256:base",), ())
    assert not maker.make(sink, debian_base.tree)


def test_the_key_moves_with_base_and_debs_alone(
    engine: Engine, debian_base: DebianBase, tmp_path: Path
) -> None:
    one = _maker(engine, debian_base, make_deb(tmp_path, "one", "1"))
    newer = _maker(engine, debian_base, make_deb(tmp_path, "one", "2"))
    elsewhere = DebsMaker(engine, "another-name", one.base, one.debs)
    other_base = DebsMaker(engine, one.image, ("sha256:other",), one.debs)
    assert elsewhere.key() == one.key()
    assert len({one.key(), newer.key(), other_base.key()}) == 3
