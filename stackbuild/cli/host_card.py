"""The inventory of the machine that the engine runs on, where that is this one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackbuild.host.model import Host


def local_card() -> Host | None:
    """This machine's card, or None when DOCKER_HOST names an engine on another one."""
    address = os.environ.get("DOCKER_HOST", "")
    if address and not address.startswith("unix://"):
        return None
    from datetime import UTC, datetime

    from stackbuild.facts.tables import Facts
    from stackbuild.host.inventory import take_inventory
    from stackbuild.host.probe import SystemProbe

    return take_inventory(SystemProbe(), Facts(), datetime.now(UTC).date())
