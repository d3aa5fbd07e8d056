"""The runner's side of a worker: start it, hand it gates, read its output, end what hangs."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Type

from suite.output import OutputTail
from suite.plan import Gate
from suite.worker import WORKER_FLAG

# What a gate may leave as its answer; a larger one is refused rather than read into memory.
LARGEST_ANSWER = 8 * 1024 * 1024
READ_SIZE = 65536
# How long a worker whose gate was killed may take to say so before it is killed as well.
GRACE_SECONDS = 5.0


class Ending(NamedTuple):
    """How a request ended: a wait status, and whether our own limit ended it."""

    status: int
    hung: bool


class WorkerProcess:
    """One worker process, started when its first gate comes and again after it was lost."""

    def __init__(self, paths: Sequence[str], results: Path) -> None:
        self._paths = list(paths)
        self._results = results
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._answers = -1
        self._output = -1
        self._unread = b""

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._process is not None:
            self._close()

    def run(self, gate: Gate) -> Dict[str, Any]:
        """Run one gate; return its outcome with what it measured and printed."""
        if self._process is None:
            self._start()
        answer = self._results / (gate.name + ".json")
        with contextlib.suppress(FileNotFoundError):
            answer.unlink()
        tail = OutputTail()
        self._send(gate, answer)
        ending = self._await(gate.limit, tail)
        result = {"outcome": "hung", "limit": gate.limit} if ending.hung else _outcome(ending.status, answer)
        if tail.total:
            result["output"] = tail.text()
            result["output_bytes"] = tail.total
        return result

    def _start(self) -> None:
        self._answers, answers_end = os.pipe()
        self._output, output_end = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-B", sys.argv[0], WORKER_FLAG, str(answers_end), *self._paths],
            stdin=subprocess.PIPE,
            stdout=output_end,
            stderr=output_end,
            pass_fds=(answers_end,),
            start_new_session=True,
        )
        os.close(answers_end)
        os.close(output_end)
        os.set_blocking(self._answers, False)
        os.set_blocking(self._output, False)
        self._unread = b""

    def _close(self) -> int:
        """End the worker, if it still lives, and return its wait status."""
        process = self._process
        assert process is not None
        _kill_group(process.pid)
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        code = process.wait()
        os.close(self._answers)
        os.close(self._output)
        self._process = None
        # Popen tells a signal as a negative code; a wait status has it in the low byte.
        return -code if code < 0 else code << 8

    def _send(self, gate: Gate, answer: Path) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        request = {
            "function": gate.function,
            "loads": gate.loads,
            "options": gate.options,
            "answer": str(answer),
        }
        # A worker that is already gone is noticed by reading, which also tells how it went.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
            process.stdin.flush()

    def _await(self, limit: float, tail: OutputTail) -> Ending:
        """Wait until the gate ended, the worker is gone, or the limit is past (then end the gate)."""
        deadline = time.monotonic() + limit
        child = 0
        hung = False
        while True:
            messages = self._listen(deadline, tail)
            if messages is None:
                self._drain(tail)
                return Ending(self._lost(), hung)
            for message in messages:
                if "started" in message:
                    child = message["started"]
                else:
                    self._drain(tail)
                    return Ending(message["ended"], hung)
            if time.monotonic() < deadline:
                continue
            if hung or not child:
                # Nothing to wait for any more: the worker itself loads something that hangs.
                self._close()
                return Ending(0, hung=True)
            hung = True
            _kill_group(child)
            deadline = time.monotonic() + GRACE_SECONDS

    def _lost(self) -> int:
        """The worker closed its channel by itself: give it a moment to end, so that its own signal shows."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        return self._close()

    def _listen(self, deadline: float, tail: OutputTail) -> Optional[List[Dict[str, Any]]]:
        """Read what comes until a message, the deadline (empty list) or the end of the channel (None)."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            selector.register(self._output, selectors.EVENT_READ)
            while True:
                wait = deadline - time.monotonic()
                if wait <= 0:
                    return []
                for key, _ in selector.select(wait):
                    data = os.read(key.fd, READ_SIZE)
                    if key.fd == self._output:
                        if not data:
                            selector.unregister(self._output)
                        tail.add(data)
                        continue
                    if not data:
                        return None
                    lines = (self._unread + data).split(b"\n")
                    self._unread = lines.pop()
                    if lines:
                        return [json.loads(line) for line in lines]

    def _drain(self, tail: OutputTail) -> None:
        """Take what is in the output pipe now; a process left behind may keep it open."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._output, READ_SIZE):
                tail.add(data)


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _outcome(status: int, answer: Path) -> Dict[str, Any]:
    """The outcome that a wait status and the answer file stand for."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        outcome = "killed" if number == signal.SIGKILL else "crashed"
        return {"outcome": outcome, "signal": number, "signal_name": _signal_name(number)}
    code = os.WEXITSTATUS(status)
    if not answer.exists():
        return {"outcome": "crashed", "exit_code": code}
    size = answer.stat().st_size
    if size > LARGEST_ANSWER:
        return {
            "outcome": "garbled",
            "reason": "the answer has %d bytes, at most %d" % (size, LARGEST_ANSWER),
        }
    try:
        content = json.loads(answer.read_text(encoding="ascii"))
    except ValueError as error:
        return {"outcome": "garbled", "reason": str(error)}
    if "raised" in content:
        return {"outcome": "raised", "error": content["raised"]}
    return {"outcome": "measured", "measured": content["measured"]}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return "signal %d" % number
