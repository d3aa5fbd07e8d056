"""A made-up year of many stacks, as one sees it: long quiet runs, new locks, drift, failures, nights without a GPU."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from stackbuild.drift.model import Drift
from stackbuild.findings import Finding, Verdict
from stackbuild.gates.pages import gate_pages
from stackbuild.nightly.model import NewerVersion, Night, Outcome, StackNight
from tests.nightly.nights import DRIFT, PINS, finding, night

_GATES = (*gate_pages("static"), *gate_pages("scan"), *gate_pages("runtime"))[:48]
_PACKAGES = (
    "numpy",
    "torch",
    "onnxruntime-gpu",
    "pillow",
    "requests",
    "nvidia-cudnn-cu13",
    "scipy",
    "tokenizers",
)
_TROUBLE: tuple[tuple[Outcome, Verdict], ...] = (
    ("failed", Verdict.FAIL),
    ("build-failed", Verdict.FAIL),
    ("spec-or-lock", Verdict.FAIL),
    ("not-judged", Verdict.ERROR),
)


class MadeUpStack:
    """One stack through the nights; ``number`` decides all of it."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)
        self.name = f"torch-{self._random.choice(['cpu', 'cu126', 'cu130'])}-team-{number:03}"
        self._size = self._random.randrange(200_000_000, 9_000_000_000)
        self._build = self._random.uniform(20, 400)
        self._lock = self._image = self._random.getrandbits(255)
        self._bad: tuple[Outcome, Verdict] | None = None
        self._left = 0
        self._idle = self._random.sample(_GATES, 12)
        self._warned = self._random.sample(_GATES, self._random.choice((0, 0, 0, 1, 2)))

    def next(self, tonight: str) -> StackNight:
        chance = self._random.random()
        drift = change = None
        if self._left:
            self._left -= 1
        elif self._bad:
            self._bad = None
        elif chance < 0.01:
            self._bad, self._left = self._random.choice(_TROUBLE), self._random.randrange(6)
        elif chance < 0.08:
            self._lock, self._image = self._random.getrandbits(255), self._random.getrandbits(255)
            self._size += self._random.randrange(-20_000_000, 40_000_000)
            change = self._drift().model_copy(
                update={"levels": ("pins", "packages"), "files": ()}
            )  # as of two locks
        elif chance < 0.09:
            self._image = self._random.getrandbits(255)
            drift = self._drift()
        built = self._bad is None or self._bad[0] == "failed"
        seconds = self._build * self._random.uniform(0.9, 1.2)
        return StackNight(
            stack=self.name,
            platform="linux/amd64",
            outcome=self._bad[0] if self._bad else "drift" if drift else "unchanged",
            findings=tuple(self._findings()),
            complete=not (self._bad and self._bad[1] is Verdict.ERROR),
            config_digest=f"sha256:{self._image:064x}" if built else "",
            diff_ids=tuple(f"sha256:{(self._image + layer) % 2**255:064x}" for layer in range(10)) if built else (),
            lock_sha256=f"{self._lock:064x}",
            inputs_sha256=f"{self._lock ^ 1:064x}",
            image=f"sha256:{self._image:064x}" if built else "",
            compared_with="the image of the last good night",
            size=self._size if built else 0,
            seconds={
                "inputs": round(self._random.uniform(1, 9), 2),
                "newer": round(self._random.uniform(1, 9), 2),
                "rebuild": round(seconds, 2),
                "scan": 3.2,
                "verify": 21.5,
                "total": round(seconds + 40, 2),
            }
            if built
            else {"inputs": 2.0, "total": 9.0},
            pins=PINS | {"stack": self.name, "lock-sha256": f"{self._lock:064x}"},
            newer=tuple(
                NewerVersion(
                    kind="python", name=name, locked="1.2.3", newer="1.3.0", verdict=verdict, reason="It is in the range."
                )
                for name, verdict in zip(_PACKAGES[:3], (Verdict.PASS, Verdict.WARN, Verdict.FAIL), strict=True)
            ),
            drift=drift,
            change=change,
            reports={
                kind: f"nights/{tonight}/{self.name}/{kind}.html" for kind in ("verification", "scan", "drift")
            },
        )  # fmt: skip

    def _findings(self) -> Iterator[Finding]:
        grave = self._bad
        for code in _GATES:
            if grave:
                yield finding(
                    code,
                    grave[1],
                    summary="The measured value is not what the spec demands.",
                    next_step="Look into it.",
                )
                grave = None
            elif code in self._idle:
                yield finding(
                    code, Verdict.SKIP, applies=False, summary="There is nothing of it in the image."
                )
            elif code in self._warned:
                measured = f"{self._random.uniform(1, 2):.2f} GiB"
                yield finding(
                    code,
                    Verdict.WARN,
                    measured=measured,
                    required="2.50 GiB",
                    summary="It is near the limit.",
                )
            else:
                yield finding(code)  # fmt: skip

    def _drift(self) -> Drift:
        name = self._random.choice(_PACKAGES)
        return DRIFT.model_copy(
            update={
                "packages": tuple(one.model_copy(update={"name": name}) for one in DRIFT.packages),
                "files": tuple(
                    replace(one, path=f"{one.path}.{number}") for number in range(40) for one in DRIFT.files
                ),
            }
        )  # fmt: skip


def year(stacks: int = 200, nights: int = 365) -> Iterator[Night]:
    """The nights, oldest first."""
    made = [MadeUpStack(number) for number in range(stacks)]
    for number in range(nights):
        tonight = night(number=number)
        yield tonight.model_copy(update={"stacks": tuple(stack.next(tonight.id) for stack in made)})
