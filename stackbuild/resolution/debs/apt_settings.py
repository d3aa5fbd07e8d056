"""Settings that every apt of ours runs with, in a container or on the host."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from stackbuild.lock.model import LockedDeb

# apt.conf(5), apt-transport-http(1).
OPTIONS = MappingProxyType(
    {
        "Acquire::Retries": "3",
        "Acquire::Languages": "none",
        "Acquire::http::Timeout": "30",
        "Acquire::https::Timeout": "30",
        "APT::Install-Recommends": "false",
        # Without it a repository that cannot be read is only a warning.
        "APT::Update::Error-Mode": "any",
    }
)
CA_OPTION = "Acquire::https::CAInfo"
LIMIT = 900.0  # seconds that one run of apt may take
# apt_preferences(5): between 990 and 1000 a version wins over newer ones and never downgrades.
_PIN_PRIORITY = 995


def preferences(debs: Iterable[LockedDeb]) -> str:
    """A preferences file (apt_preferences(5)) that keeps debs at their versions while a repository has them."""
    return "\n".join(
        f"Package: {deb.name}\nPin: version {deb.version}\nPin-Priority: {_PIN_PRIORITY}\n" for deb in debs
    )
