"""The matrix for a person."""

from __future__ import annotations

from stackbuild.schedule.model import JobMatrix, Runner, StackJobs


def render_table(matrix: JobMatrix) -> str:
    """One paragraph a stack: why it has jobs, and each job with its runner's labels."""
    lines = [line for stack in matrix.stacks for line in _stack(stack)]
    lines += [f"{name}: removed, no jobs" for name in matrix.removed]
    if not matrix.stacks:
        lines.append("No stack changed." if matrix.since is not None else "No stack.")
    return "".join(f"{line}\n" for line in lines)


def _stack(stack: StackJobs) -> list[str]:
    lines = [f"{stack.stack} ({stack.path})"]
    lines += [f"  changed  {path}" for path in stack.changed]
    lines += [f"  build    {job.platform} on {_labels(job.runner)}" for job in stack.build]
    for job in stack.judge:
        products = f" ({', '.join(job.gpus)})" if job.gpus else ""
        lines.append(f"  judge    {job.platform} {job.requires}{products} on {_labels(job.runner)}")
    if stack.promote is not None:
        lines.append(f"  promote  --require {stack.promote.require} on {_labels(stack.promote.runner)}")
    return lines


def _labels(runner: Runner) -> str:
    return ", ".join(runner.labels) or f"any runner ({runner.kind})"
