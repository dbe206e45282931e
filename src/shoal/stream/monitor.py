"""Monitor: metrics, health and readiness of a stream on a port of this machine.

``/metrics`` is Prometheus text, ``/health`` says whether the loop is alive, ``/ready`` whether it is working. Figures
are counts, sizes and seconds, never values. Only this machine can connect.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from logging import getLogger
from threading import Thread
from typing import Any

from shoal.errors import ParameterError
from shoal.stream.stream import Stream
from shoal.stream.summary import Summary

log = getLogger("shoal.stream")

STUCK = 60.0
"""Seconds without an iteration of the loop after which it is unhealthy."""
_OFTEN = 1.0  # seconds between two readings of the stream


class Status(StrEnum):
    """What a loop is doing."""

    STARTING = "starting"
    WORKING = "working"
    STANDING_BY = "standing-by"
    OUTAGE = "outage"
    BLOCKED = "blocked"
    """The reader of the output takes nothing."""
    STOPPING = "stopping"


@dataclass
class Figures:
    """The figures of a stream, and of the loop around it."""

    status: Status = Status.STARTING
    summary: Summary | None = None
    oldest: float | None = None
    """Arrival time of the tuple that has waited longest, by the clock of the stream."""
    n_steps: int = 0
    step_seconds: float = 0.0
    longest_step: float = 0.0
    labels: dict[str, str] = field(default_factory=dict)
    """What names the stream in each metric."""
    gauges: dict[str, int] = field(default_factory=dict)
    """Further figures by name: the lag of a worker, the entries that were lost."""

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values: those of the summary, and the others."""
        summary = {} if self.summary is None else asdict(self.summary)
        return {"status": str(self.status), **summary, **self.gauges, "n_steps": self.n_steps}


class Monitor:
    """Collects figures in every iteration of a loop, and serves them.

    Parameters
    ----------
    port : int, optional
        Port on the loopback address; 0 takes a free one. Without it nothing is served.
    labels : mapping of str to str, optional
        Labels of every metric, which tell one stream from another.
    log_every : float
        Seconds between two ``progress`` log entries.
    clock : callable, optional
        The clock of the ages; by default that of the stream.
    """

    def __init__(
        self,
        port: int | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        log_every: float = 60.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.figures = Figures(labels=dict(labels or {}))
        self._clock = clock
        self._log_every = log_every
        self._turned = self._looked = self._logged = time.monotonic()
        self._server = None if port is None else _server(port, self._answer)

    @property
    def port(self) -> int | None:
        """The port on which it listens."""
        return None if self._server is None else self._server.server_port

    def turn(self, status: Status, stream: Stream | None, seconds: float | None = None, **gauges: int) -> None:
        """Record an iteration of the loop: its state, and the seconds that a step took, if there was one.

        A loop that has no stream at present has no figures of one either: they would be old, and jump when it has one.
        """
        figures = self.figures
        changed = figures.status is not status
        now = self.beat(status)
        if seconds is not None:
            figures.n_steps += 1
            figures.step_seconds += seconds
            figures.longest_step = max(figures.longest_step, seconds)
        if changed or now - self._looked >= _OFTEN:
            self._looked = now
            self.look(stream, **gauges)
        if now - self._logged >= self._log_every:
            self._logged = now
            log.info("progress", extra={"facts": self.figures.to_dict()})

    def beat(self, status: Status) -> float:
        """Record that the loop is alive, and its state; return the time."""
        self.figures.status = status
        self._turned = time.monotonic()
        return self._turned

    def look(self, stream: Stream | None, **gauges: int) -> None:
        """Read the figures of a stream."""
        if stream is not None:
            self._clock = self._clock or stream.clock
        self.figures.summary = None if stream is None else stream.summary()
        self.figures.oldest = None if stream is None else stream.oldest
        self.figures.gauges = gauges

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def _answer(self, path: str) -> tuple[int, str, str]:
        """Return status code, content type and text of a response."""
        if path == "/metrics":
            now = self._clock() if self._clock else 0.0
            return 200, "text/plain; version=0.0.4; charset=utf-8", exposition(self.figures, now)
        still = time.monotonic() - self._turned
        said = {"status": str(self.figures.status), "seconds_since_turn": round(still, 1)}
        if path == "/health":
            return (200 if still < STUCK else 503), "application/json", json.dumps(said)
        if path == "/ready":
            is_ready = still < STUCK and self.figures.status is Status.WORKING
            return (200 if is_ready else 503), "application/json", json.dumps(said)
        return 404, "text/plain", "Available: /metrics, /health and /ready.\n"


def exposition(figures: Figures, now: float) -> str:
    """Return figures in the text format 0.0.4 of Prometheus."""
    lines: list[str] = []

    def say(name: str, kind: str, text: str, value: float | Mapping[str, float] | None, by: str = "") -> None:
        lines.extend((f"# HELP shoal_{name} {text}", f"# TYPE shoal_{name} {kind}"))
        values = {by: value} if not isinstance(value, Mapping) else value
        for label, number in values.items():
            if number is not None:
                labels = _labels(figures.labels | ({by: label} if by else {}))
                lines.append(f"shoal_{name}{labels} {number:.10g}")

    statuses = {str(status): float(figures.status is status) for status in Status}
    say("status", "gauge", "State of the loop: 1 for the current one.", statuses, by="status")
    say("steps_total", "counter", "Steps committed, or batches written.", figures.n_steps)
    say("step_seconds_total", "counter", "Total seconds of all steps.", figures.step_seconds)
    say("step_seconds_max", "gauge", "Seconds of the longest step.", figures.longest_step)
    for name, (text, kind) in _GAUGES.items():
        if name in figures.gauges:
            say(name, kind, text, figures.gauges[name])
    if figures.summary is not None:
        _say_summary(say, figures.summary, None if figures.oldest is None else max(0.0, now - figures.oldest))
    return "\n".join(lines) + "\n"


_GAUGES = {
    "lag_entries": ("Entries of the source not yet read.", "gauge"),
    "pending_entries": ("Entries read but not yet committed.", "gauge"),
    "lost_entries_total": ("Entries removed from the source before they were read.", "counter"),
}


def _labels(labels: Mapping[str, str]) -> str:
    """Return labels as Prometheus spells them."""
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    spelled = (f'{name}="{value.translate(escapes)}"' for name, value in labels.items())
    return f"{{{','.join(spelled)}}}" if labels else ""


def _say_summary(say: Callable[..., None], summary: Summary, age: float | None) -> None:
    say("tuples_in_total", "counter", "Tuples received.", summary.n_in)
    say("tuples_released_total", "counter", "Tuples released.", summary.n_released)
    reasons = dict(sorted(summary.reasons.items()))
    say("tuples_side_total", "counter", "Tuples sent to the side output, by reason.", reasons, by="reason")
    say("tuples_waiting", "gauge", "Tuples that wait in the window.", summary.n_buffered)
    say("oldest_tuple_age_seconds", "gauge", "Age of the tuple that has waited longest.", age or 0.0)
    say("cells_total", "counter", "Cells released.", summary.n_cells)
    say("smallest_cell", "gauge", "Size of the smallest released cell, in tuples.", summary.smallest_cell)
    say("information_loss_ratio", "gauge", "Information loss so far.", summary.il)


def _server(port: int, answer: Callable[[str], tuple[int, str, str]]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, kind, text = answer(self.path.split("?", 1)[0])
            content = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Do not log requests; the log is for events of the stream."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise ParameterError(f"Port {port} cannot be used for metrics: {error.strerror}. Choose another one.") from None
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True, name="shoal-monitor").start()
    return server
