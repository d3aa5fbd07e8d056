"""Documents for the tests of the formats: a usual one, and one that an ill-meaning image would make."""

from __future__ import annotations

from stackbuild.findings import Finding, Verdict
from stackbuild.reports.document import Bar, Document, Part, Plot, StackRow

WELL = Finding(code="torch-matmul", verdict=Verdict.PASS, summary="within tolerance", measured="fp32 4.0e-07")
WRONG = Finding(
    code="ort-version",
    verdict=Verdict.FAIL,
    summary="onnxruntime is 1.31.1, promised is 1.30.0",
    subject="onnxruntime",
    measured="1.31.1",
    required="1.30.0",
    next_step="Build again from the lock.",
    details={"log_lines": ["[W:onnxruntime] a line", "another"], "found": ["1.31.1"]},
)
DOUBTFUL = Finding(
    code="python-version",
    verdict=Verdict.WARN,
    summary="Python is 3.11.3",
    waived="wanted (platform team, until 2027-01-01)",
    next_step="Lock again.",
)
UNKNOWN = Finding(
    code="ort-session",
    verdict=Verdict.ERROR,
    summary="its process was killed with SIGKILL",
    next_step="Give the engine more memory and run again.",
)
LEFT_OUT = Finding(code="nvml-agrees", verdict=Verdict.SKIP, summary="not judged: it needs a GPU")
IDLE = Finding(code="mixed-cuda-majors", verdict=Verdict.SKIP, summary="no CUDA wheels", applies=False)

USUAL = Document(
    title="verify torch-cpu:latest",
    headline=(("image", "sha256:" + "1" * 64), ("GPUs", "none")),
    parts=(Part("verify torch-cpu:latest", (WELL, WRONG, DOUBTFUL, UNKNOWN, LEFT_OUT, IDLE)),),
    complete=False,
    started="2026-11-30T12:00:00Z",
    seconds=3.21,
    stack=(StackRow("kernel", "6.1.0-18", "6.8.0"), StackRow("driver", "580.95.05", "580.95.05")),
    plots=(
        Plot("Wall time of the gates", "s", (Bar("torch-import", 1.5), Bar("ort-session", 0.02))),
        Plot("Memory", "B", (Bar("weights", 3 * 2**30), Bar("/dev/shm", 64 * 2**20))),
    ),
    log="first line\nlast line\n",
    log_bytes=21,
)

# A package's name, a log and an exception are text of the image: they may hold anything.
ATTACK = (
    "<script>document.title='owned'</script><img src=x onerror=alert(1)> ]]> &amp; \"' "
    "</details></pre> {{ 7*7 }} | `code` **bold** [link](https://evil.example) @everyone #1 "
    "\x1b[31mred\x1b[0m\x1b]0;title\x07 \x00\x08\x9b31m \u202etxt.exe \ud800 \ufffe ::error::owned"
)
HOSTILE = Document(
    title=f"verify {ATTACK}",
    headline=((ATTACK, ATTACK),),
    parts=(
        Part(
            ATTACK,
            (
                WRONG.model_copy(
                    update={
                        "summary": f"{ATTACK}\n\n# heading",
                        "subject": ATTACK,
                        "measured": ATTACK,
                        "next_step": ATTACK,
                        "waived": ATTACK,
                        "details": {"traceback": f"```\n{ATTACK}\n```", ATTACK: [ATTACK]},
                    }
                ),
                LEFT_OUT.model_copy(update={"summary": ATTACK}),
            ),
            (ATTACK,),
        ),
    ),
    complete=False,
    stack=(StackRow(ATTACK, ATTACK, "else"),),
    plots=(Plot(ATTACK, "s", (Bar(ATTACK, 1.0, ATTACK),)),),
    log=ATTACK,
    log_bytes=len(ATTACK),
)
