"""What would make a stack run on a host where it does not: the newest torch, or the oldest driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stackbuild.compat.judge import Answer
from stackbuild.compat.oldest_driver import oldest_driver
from stackbuild.compat.subject import Compatibility, GpuOffer, HostOffer, ImageNeeds
from stackbuild.compat.versions import parse_driver
from stackbuild.facts.tables import Facts
from stackbuild.findings import Verdict

# What another driver would mend.
_OF_THE_DRIVER = frozenset(
    {"driver-too-old", "gpu-newer-than-driver", "ptx-not-compilable", "wsl-driver-old"}
)


class Adviser:
    """What would make a stack run on a host. What equal questions share is worked out once."""

    def __init__(self, hosts: Sequence[HostOffer], facts: Facts) -> None:
        self._hosts = hosts
        self._facts = facts
        # What decides about a driver is few: cards of one kind, brand and capability ask the same.
        kinds = {
            host.gpus: tuple(dict.fromkeys(replace(gpu, name="") for gpu in host.gpus)) for host in hosts
        }
        numbers: dict[tuple[GpuOffer, ...], int] = {}
        self._kinds = [kinds[host.gpus] for host in hosts]
        self._kind_numbers = [numbers.setdefault(kind, len(numbers)) for kind in self._kinds]
        # Of a driver's release only its branch decides, and which floors of a CUDA major it is past.
        floors = [parse_driver(row.min_driver) for row in facts.table("minor_version_floors").rows]
        first: dict[object, int] = {}
        self._same = [
            first.setdefault(
                (
                    replace(host, name="", driver=None, driver_text="", gpus=self._kinds[position]),
                    host.branch,
                    tuple(host.driver is not None and host.driver >= floor for floor in floors),
                ),
                position,
            )
            for position, host in enumerate(hosts)
        ]
        self._fitting: dict[tuple[int, Compatibility], str] = {}
        self._drivers: dict[object, dict[int, str]] = {}

    def row(
        self, image: ImageNeeds, accepts: Compatibility, answers: Sequence[Answer]
    ) -> list[tuple[str, ...]]:
        """The advice for one image, host by host; empty where nothing failed."""
        has_torch = any(component.name == "torch" for component in image.components)
        demands = () if image.requirements_disabled else image.requirements
        runtimes = tuple(component.cuda for component in image.components)
        drivers = self._drivers.setdefault((runtimes, demands, image.compat, accepts), {})
        advice: list[tuple[str, ...]] = []
        for position, answer in enumerate(answers):
            if answer.verdict is not Verdict.FAIL:
                advice.append(())
                continue
            newest = self._newest(position, accepts) if has_torch else ""
            oldest = ""
            if any(
                finding.verdict is Verdict.FAIL and finding.code in _OF_THE_DRIVER
                for finding in answer.findings
            ):
                kind = self._kind_numbers[position]
                if kind not in drivers:
                    found = oldest_driver(image, accepts, self._facts, self._kinds[position])
                    drivers[kind] = (
                        f"The oldest driver that serves this stack here is {found}." if found else ""
                    )
                oldest = drivers[kind]
            advice.append(tuple(line for line in (newest, oldest) if line))
        return advice

    def _newest(self, position: int, accepts: Compatibility) -> str:
        same = self._same[position]
        line = self._fitting.get((same, accepts))
        if line is None:
            from stackbuild.compat.variants import newest_fitting  # only where something failed

            host = self._hosts[same]
            choice = newest_fitting(host, accepts, self._facts) if host.max_cuda is not None else None
            base = f" on a base of CUDA {choice.base_cuda} or older" if choice and choice.base_cuda else ""
            line = f"This host runs torch {choice.torch} ({choice.variant}){base}." if choice else ""
            self._fitting[same, accepts] = line
        return line
