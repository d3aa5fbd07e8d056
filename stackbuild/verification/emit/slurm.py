"""The run as a Slurm batch script.

Sources: Slurm 24.05, sbatch (``--gres``; scripts have at most 4 MB by default); Apptainer 1.3, exec (``--nv``); Enroot
3.5, import (where a digest is written like a tag) and start (``--rc``); Podman 5, run (``--device`` with a CDI name).
"""

from __future__ import annotations

import base64
import gzip
import io
import shlex
import tarfile
import textwrap

from stackbuild.verification.elsewhere import ElsewhereRun
from stackbuild.verification.emit.writing import PULL_SECONDS, head, too_large
from stackbuild.verification.files import SUITE_FOLDER
from stackbuild.verification.plan import RESULTS_FOLDER

_SCRIPT_BYTES = 4_000_000

# Slurm's SLURM_JOB_GPUS are the host's numbers of the job's GPUs; CUDA_VISIBLE_DEVICES counts within the job.
_PODMAN_GPUS = """\
    for gpu in $(echo "${SLURM_JOB_GPUS:-all}" | tr , ' '); do options+=(--device "nvidia.com/gpu=$gpu"); done
"""
_ENROOT_GPUS = """\
    export NVIDIA_VISIBLE_DEVICES=${{SLURM_JOB_GPUS:-all}} NVIDIA_DRIVER_CAPABILITIES={capabilities}
    options+=(--env NVIDIA_VISIBLE_DEVICES --env NVIDIA_DRIVER_CAPABILITIES)
"""
_SLURM = """\
set -euo pipefail

work=$(mktemp -d "${{TMPDIR:-/tmp}}/stackbuild-verify.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/suite" "$work/results"
base64 -d <<'PACKED' >"$work/packed.tar.gz"
{packed}
PACKED
tar -xzf "$work/packed.tar.gz" -C "$work/suite"
chmod -R a+rX "$work"
chmod 1777 "$work/results"

# STACKBUILD_RUNTIME chooses one of apptainer, enroot and podman; else the first that is here.
runtime=${{STACKBUILD_RUNTIME:-}}
for found in apptainer enroot podman; do
    if [ -z "$runtime" ] && command -v "$found" >/dev/null; then runtime=$found; fi
done
command=({command})
options=()
case "$runtime" in
apptainer)
    options+=(--containall --cleanenv{apptainer_gpus})
    if [ -n "${{CUDA_VISIBLE_DEVICES:-}}" ]; then options+=(--env "CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"); fi
    apptainer exec "${{options[@]}}" --bind "$work/suite:{suite}:ro" --bind "$work/results:{results}" \\
        {apptainer_image} "${{command[@]}}"
    ;;
enroot)
    export ENROOT_DATA_PATH="$work/enroot"
    printf 'exec "$@"\\n' >"$work/rc"
    enroot import --output "$work/image.sqsh" {enroot_image}
    enroot create --name verify "$work/image.sqsh"
{enroot_gpus}\
    enroot start "${{options[@]}}" --rc "$work/rc" --mount "$work/suite:{suite}:x-create=dir,bind,ro" \\
        --mount "$work/results:{results}:x-create=dir,bind,rw" verify "${{command[@]}}"
    ;;
podman)
{podman_gpus}\
    podman run --rm --network none{podman_options} "${{options[@]}}" --security-opt label=disable \\
        --volume "$work/suite:{suite}:ro" --volume "$work/results:{results}" --entrypoint '' \\
        {image} "${{command[@]}}"
    ;;
*)
    echo "none of apptainer, enroot and podman is here" >&2
    exit 5
    ;;
esac
"""


def slurm_script(run: ElsewhereRun) -> str:
    """A batch script with the suite, for Apptainer, Enroot or Podman."""
    packed = base64.b64encode(_packed_tar(run)).decode()
    if len(packed) > _SCRIPT_BYTES:
        raise too_large(run, "a batch script", "Name a smaller model in verify.")
    minutes = -(-(int(run.limit) + PULL_SECONDS) // 60)
    gres = "" if run.gpus.none else f"#SBATCH --gres=gpu:{run.gpus.count}\n"
    options = f" --user {shlex.quote(run.user)}" if run.user else ""
    options += f" --shm-size {shlex.quote(run.shm_size)}" if run.shm_size else ""
    options += "".join(f" --ulimit {shlex.quote(f'{name}={value}')}" for name, value in run.ulimits.items())
    options += " --read-only --tmpfs /tmp:rw,mode=1777" if run.read_only else ""
    body = _SLURM.format(
        packed="\n".join(textwrap.wrap(packed, 76)),
        command=" ".join(shlex.quote(word) for word in run.command),
        suite=SUITE_FOLDER,
        results=RESULTS_FOLDER,
        image=shlex.quote(run.bound.runs),
        apptainer_image=shlex.quote(f"docker://{run.bound.runs}"),
        enroot_image=shlex.quote(_enroot_uri(run.bound.runs)),
        apptainer_gpus="" if run.gpus.none else " --nv",
        podman_gpus="" if run.gpus.none else _PODMAN_GPUS,
        enroot_gpus=""
        if run.gpus.none
        else _ENROOT_GPUS.format(capabilities=",".join(run.gpus.capabilities)),
        podman_options=options,
    )
    output = f"{run.name}-%j.out"
    return (
        "#!/bin/bash\n"
        f"#SBATCH --job-name={run.name}\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n{gres}"
        f"#SBATCH --time={minutes}\n#SBATCH --output={output}\n"
        + head(run, ["sbatch THIS-FILE"], output=f"{run.name}-JOB.out")
        + body
    )


def _enroot_uri(image: str) -> str:
    """``docker://[REGISTRY#]IMAGE:sha256:…``, as Enroot spells an image by digest."""
    repository, _, digest = image.partition("@")
    first, slash, rest = repository.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        repository = f"{first}#{rest}"
    return f"docker://{repository.removeprefix('docker.io#')}:{digest}"


def _packed_tar(run: ElsewhereRun) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(run.files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=0)
