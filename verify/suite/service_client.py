"""Asks a service on this container's own loopback: waits until it is ready, replays the recorded request."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

SERVICE_FLAG = "--service"
HOST = "127.0.0.1"
POLL_SECONDS = 0.1
REQUEST_SECONDS = 60.0
# A longer answer is cut: it is compared with a file of the spec's, not archived.
LARGEST_ANSWER = 4 * 1024 * 1024


def ask(plan: Path) -> Dict[str, Any]:
    """Wait for the service, ask once for the answer, then as often and as many at a time as the plan says.

    The plan is the spec's ``verify.service`` with ``request_file``, ``concurrency``; all times are seconds.
    """
    service = json.loads(plan.read_text(encoding="utf-8"))
    body = Path(service["request_file"]).read_bytes() if service["request_file"] else b""
    ready = _await_ready(service)
    if not ready["ready"]:
        return ready
    status, answer, _ = _request(service, body)
    latencies, failures = _load(service, body)
    return {
        **ready,
        "status": status,
        "answer": base64.b64encode(answer[:LARGEST_ANSWER]).decode("ascii"),
        "answer_bytes": len(answer),
        "requests": service["requests"],
        "concurrency": service["concurrency"],
        "failures": failures,
        "latency": _summary(latencies),
    }


def _await_ready(service: Dict[str, Any]) -> Dict[str, Any]:
    began = time.monotonic()
    last = ""
    while time.monotonic() - began < service["ready_within"]:
        try:
            connection = http.client.HTTPConnection(HOST, service["port"], timeout=5)
            connection.request("GET", service["ready"])
            status = connection.getresponse().status
            connection.close()
            if status < 400:
                return {"ready": True, "ready_seconds": round(time.monotonic() - began, 3), "last": ""}
            last = "status %d" % status
        except (OSError, http.client.HTTPException) as error:
            last = "%s: %s" % (type(error).__name__, error)
        time.sleep(POLL_SECONDS)
    return {"ready": False, "ready_seconds": round(time.monotonic() - began, 3), "last": last}


def _request(service: Dict[str, Any], body: bytes) -> Tuple[int, bytes, float]:
    began = time.monotonic()
    connection = http.client.HTTPConnection(HOST, service["port"], timeout=REQUEST_SECONDS)
    try:
        connection.request(service["method"], service["path"], body=body or None, headers=service["headers"])
        response = connection.getresponse()
        return response.status, response.read(), time.monotonic() - began
    finally:
        connection.close()


def _load(service: Dict[str, Any], body: bytes) -> Tuple[List[float], List[str]]:
    """Ask ``requests`` times from ``concurrency`` threads; an answer of another status than 2xx is a failure."""
    latencies: List[float] = []
    failures: List[str] = []
    numbers = iter(range(service["requests"]))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                if next(numbers, None) is None:
                    return
            problem: Optional[str] = None
            seconds = 0.0
            try:
                status, _, seconds = _request(service, body)
                problem = None if 200 <= status < 300 else "status %d" % status
            except (OSError, http.client.HTTPException) as error:
                problem = "%s: %s" % (type(error).__name__, error)
            with lock:
                if problem is None:
                    latencies.append(seconds)
                else:
                    failures.append(problem)

    threads = [threading.Thread(target=work) for _ in range(service["concurrency"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return latencies, failures


def _summary(latencies: List[float]) -> Optional[Dict[str, float]]:
    if not latencies:
        return None
    ordered = sorted(latencies)
    # Nearest rank: the value that the given part of all answers did not exceed.
    rank = {part: ordered[max(-(-part * len(ordered) // 100) - 1, 0)] for part in (50, 95)}
    return {"p50": round(rank[50], 6), "p95": round(rank[95], 6), "max": round(ordered[-1], 6)}
