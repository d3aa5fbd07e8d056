"""What a result is bound to: its cache key, the remembered report, and what is known of the host."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import ValidationError

from stackbuild.engine.models import EngineInfo, ImageInfo
from stackbuild.host.model import Host
from stackbuild.store.store import Store
from stackbuild.verification.model import HostBasics, SuiteRun, VerificationReport
from stackbuild.verification.options import VerifyOptions
from stackbuild.verification.promise import Promise
from stackbuild.verification.suite_archive import suite_sha256
from stackbuild.verification.surroundings import Surroundings

_RECORD = "verification"


def cache_key(image: ImageInfo, promise: Promise, options: VerifyOptions, engine: EngineInfo) -> str:
    """The key of a result: everything that it depends on, but for time."""
    inputs: dict[str, Any] = {
        "image": image.id,
        "suite": suite_sha256(),
        "promise": promise.digest,
        "engine": [engine.engine_id, engine.server_version],
        "host": options.card.model_dump(mode="json") if options.card is not None else None,
        "gpus": str(options.gpus),
        "injection": options.injection,
        "user": options.user,
        "shm-size": options.shm_size,
        "read-only": options.read_only,
        "gates": sorted(options.gates),
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def remembered(store: Store, key: str, image_ref: str) -> VerificationReport | None:
    """The report of an earlier run for exactly these inputs, or None."""
    record = store.record(_RECORD, key)
    if record is None:
        return None
    try:
        report = VerificationReport.model_validate(record)
    except ValidationError:
        return None  # written by another version: run again
    image = report.image.model_copy(update={"reference": image_ref})
    return report.model_copy(update={"cached": True, "image": image})


def remember(store: Store, key: str, report: VerificationReport) -> None:
    """Keep a report for the next time."""
    store.put_record(_RECORD, key, report.model_dump(mode="json", by_alias=True))


def host_basics(engine: EngineInfo, run: SuiteRun) -> HostBasics:
    """The host as the engine and the suite tell it."""
    interpreter = run.results.get("interpreter")
    return HostBasics(
        engine=engine.server_version,
        storage_driver=engine.storage_driver,
        architecture=engine.architecture,
        # A container shares the host's kernel, which may not be this machine's.
        kernel=interpreter.measured.get("kernel", "") if interpreter else "",
    )


def surroundings_of(options: VerifyOptions, engine: EngineInfo) -> Surroundings:
    """What the judge is told of the place, from the engine and the host's card."""
    card: Host | None = options.card
    return Surroundings(
        gpus=options.gpus,
        card=card,
        cgroup_driver=engine.cgroup_driver or None,
        rootless="rootless" in engine.security,
        selinux="selinux" in engine.security,
    )
