"""Gates over what should not be there: dead paths, secrets, leftovers, rights, spare bytes."""

from __future__ import annotations

from collections.abc import Iterator

from stackbuild.counting import counted
from stackbuild.findings import Finding, Verdict
from stackbuild.scan.scan import Scan
from stackbuild.sizes import size_text

# NVIDIA's bases name these for the container runtime to fill.
_FILLED_BY_THE_RUNTIME = ("/usr/local/nvidia/lib", "/usr/local/nvidia/lib64")
_CACHE_WORTH_TELLING = 1_000_000
_WORTH_TELLING = 10_000_000
_USUAL_PLACES = ("usr/bin/", "usr/sbin/", "bin/", "sbin/", "usr/lib/", "usr/libexec/", "lib/")
_SHOWN = 20


def judge_library_path(scan: Scan) -> Iterator[Finding]:
    """Gate ``library-path-dead``: folders of LD_LIBRARY_PATH that are not in the image."""
    for folder in scan.loader.library_path:
        if folder.rstrip("/") in _FILLED_BY_THE_RUNTIME or "$" in folder:
            continue
        if not folder:
            yield Finding(
                code="library-path-dead",
                verdict=Verdict.WARN,
                subject="LD_LIBRARY_PATH",
                measured="an empty entry",
                required="folders",
                summary="LD_LIBRARY_PATH has an empty entry: libraries are loaded from whatever folder a program starts in.",
                next_step="Remove the stray colon, which comes from joining it to an unset variable.",
            )
        elif not scan.files.is_folder(folder):
            yield Finding(
                code="library-path-dead",
                verdict=Verdict.WARN,
                subject=folder,
                measured="not in the image",
                required="a folder",
                summary=f"LD_LIBRARY_PATH names {folder}, which is not in the image.",
                next_step="Take it out of LD_LIBRARY_PATH, or mount something there on purpose.",
            )


def judge_secrets(scan: Scan) -> Iterator[Finding]:
    """Gate ``secret-in-image``: keys, tokens and passwords, those that a later layer hides among them."""
    for secret in scan.secrets:
        if secret.layer < 0:
            yield Finding(
                code="secret-in-image",
                verdict=Verdict.WARN,
                subject=f"variable {secret.where}",
                measured="a value",
                required="no value in the image",
                summary=f"The variable {secret.where} is set in the image's configuration, which everyone who pulls it reads.",
                next_step="Pass it when the container starts, and change the secret if it is one.",
                details={"kind": secret.kind},
            )
            continue
        hidden = " (deleted or replaced by a later layer, and still in this one)" if secret.hidden else ""
        yield Finding(
            code="secret-in-image",
            verdict=Verdict.FAIL,
            subject=f"/{secret.where}",
            measured=f"{secret.kind} in layer {secret.layer}",
            required="no keys, tokens or passwords",
            summary=f"/{secret.where} holds a {secret.kind}{hidden}; everyone who pulls the image has it.",
            next_step="Change the secret, and build with a secret mount or a builder stage, so that no layer holds it.",
            details={"kind": secret.kind, "layer": secret.layer, "hidden": secret.hidden},
        )


def judge_privileged(scan: Scan) -> Iterator[Finding]:
    """Gate ``set-uid-unusual``: programs that give rights, outside the places of the distribution's own."""
    for item in scan.privileged_files:
        if item.path.startswith(_USUAL_PLACES):
            continue
        yield Finding(
            code="set-uid-unusual",
            verdict=Verdict.WARN,
            subject=f"/{item.path}",
            measured=f"mode {item.mode:04o}",
            required="no set-uid or set-gid bit",
            summary=f"/{item.path} has mode {item.mode:04o}: whoever runs it gets its owner's rights.",
            next_step="Take the bit away (chmod ug-s), unless it is meant.",
            details={"mode": f"{item.mode:04o}", "layer": item.layer},
        )


def judge_leftovers(scan: Scan) -> Iterator[Finding]:
    """Gate ``leftovers``: package lists, caches and temporary files."""
    for item in scan.leftovers:
        if item.size >= _CACHE_WORTH_TELLING:
            yield Finding(
                code="leftovers",
                verdict=Verdict.WARN,
                subject=item.kind,
                measured=f"{size_text(item.size)} in {counted(item.files, 'file')}",
                required="none",
                summary=f"{item.kind[:1].upper()}{item.kind[1:]} take {size_text(item.size)} "
                f"(for example /{item.example}).",
                next_step="Remove them in the step that makes them, or mount the cache while building.",
                details={"bytes": item.size, "files": item.files},
            )


def judge_size(scan: Scan) -> Iterator[Finding]:
    """Gate ``space-to-save``: the size by layer and owner, with the three largest savings."""
    worth = [item for item in scan.savings if item.size >= _WORTH_TELLING][:3]
    layers = [layer.size for layer in scan.files.layers]
    details = {
        "layers": layers,
        "owners": dict(list(scan.owners.items())[:_SHOWN]),
        "savings": [{"what": item.what, "bytes": item.size, "how": item.how} for item in scan.savings[:3]],
    }
    total = sum(layers)
    if not worth:
        yield Finding(
            code="space-to-save",
            verdict=Verdict.PASS,
            measured=f"{size_text(total)} in {counted(len(layers), 'layer')}",
            summary=f"{size_text(total)} in {counted(len(layers), 'layer')}; nothing large could be saved.",
            details=details,
        )
        return
    saved = sum(item.size for item in worth)
    yield Finding(
        code="space-to-save",
        verdict=Verdict.WARN,
        measured=f"{size_text(saved)} of {size_text(total)}",
        required=f"savings below {size_text(_WORTH_TELLING)} each",
        summary="Could be saved: "
        + "; ".join(f"{item.what}, {size_text(item.size)}" for item in worth)
        + ".",
        next_step=worth[0].how,
        details=details,
    )
