"""The table of what an installation leaves behind that is no part of an image."""

from __future__ import annotations

import pytest

from stackbuild.errors import BuildError
from stackbuild.layers.machine_unique import action_for, image_xattrs


@pytest.mark.parametrize(
    ("path", "directory", "action"),
    [
        ("var/log/dpkg.log", False, "drop"),
        ("var/log/nginx", True, None),
        ("var/log/nginx/access.log", False, "drop"),
        ("var/cache/apt/archives/x.deb", False, "drop"),
        ("var/cache/apt/archives", True, None),
        ("var/cache/debconf/templates.dat", False, None),
        ("var/cache/debconf/templates.dat-old", False, "drop"),
        ("var/lib/apt/lists/lock", False, "drop"),
        ("var/lib/apt/lists/partial", True, None),
        ("var/lib/apt/lists/auxfiles", True, "drop"),
        ("var/lib/apt/extended_states", False, None),
        ("var/lib/dpkg/status", False, None),
        ("var/lib/dpkg/status-old", False, "drop"),
        ("var/lib/dpkg/lock", False, "drop"),
        ("var/lib/dpkg/triggers/Lock", False, "drop"),
        ("var/lib/dpkg/info/lock-of-something.list", False, None),
        ("etc/passwd", False, None),
        ("etc/passwd-", False, "drop"),
        ("etc/.pwd.lock", False, "drop"),
        ("etc/hosts", False, "drop"),
        ("etc/hosts.allow", False, None),
        ("etc/ld.so.cache", False, None),
        ("etc/machine-id", False, "empty"),
        ("var/lib/dbus/machine-id", False, "empty"),
        ("tmp", True, None),
        ("tmp/x", True, "drop"),
        ("run/lock", True, None),
        ("run/nginx.pid", False, "drop"),
        ("run/lockdown", True, "drop"),
        ("usr/lib/python3/dist-packages/x/__pycache__", True, "drop"),
        ("usr/lib/python3/dist-packages/x/__pycache__/y.cpython-311.pyc", False, "drop"),
        ("etc/ssl/private", True, None),
        ("etc/ssl/certs/ca-certificates.crt", False, None),
        ("etc/ssh/sshd_config", False, None),
    ],
)
def test_what_becomes_of_a_path(path: str, directory: bool, action: str | None) -> None:
    assert action_for(path, directory=directory) == action


@pytest.mark.parametrize(
    "path",
    [
        "etc/ssh/ssh_host_rsa_key",
        "etc/ssh/ssh_host_ed25519_key.pub",
        "etc/ssl/private/ssl-cert-snakeoil.key",
        "etc/ssl/certs/ssl-cert-snakeoil.pem",
        "etc/ssl/private/server.key",
    ],
)
def test_a_shared_secret_is_refused_by_name(path: str) -> None:
    with pytest.raises(BuildError, match=path) as caught:
        action_for(path)
    assert caught.value.code == "machine-secret"


def test_capabilities_and_user_attributes_stay_and_the_hosts_labels_go() -> None:
    headers = {
        "path": "usr/bin/ping",
        "SCHILY.xattr.user.note": "kept",
        "SCHILY.xattr.security.selinux": "system_u:object_r:container_file_t:s0:c1,c2",
        "SCHILY.xattr.trusted.overlay.origin": "x",
        "SCHILY.xattr.security.capability": "\x01\x00",
    }
    assert image_xattrs(headers) == (("security.capability", "\x01\x00"), ("user.note", "kept"))
