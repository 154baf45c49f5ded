"""Delivering events with wrk: each line of a file once, in order."""

import tempfile
from pathlib import Path
from typing import Final

from bench.wrk import CONNECTIONS, Load, measure

_SCRIPT: Final = """
local lines
function init(args)
  path = args[2]
  lines = io.lines(args[1])
end
function request()
  local line = lines()
  if line == nil then io.stderr:write("no events are left\\n") os.exit(1) end
  return wrk.format("POST", path, {["Host"] = "bench", ["Content-Type"] = "application/json",
    ["X-Svc-Signature"] = "sha256=" .. line:sub(1, 64)}, line:sub(66))
end
function done(summary, latency, _)
  local e = summary.errors
  io.write(string.format('RESULT {"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"errors":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


class Deliveries:
    """A file of events, of which each load takes as many as it can deliver; none is delivered twice."""

    def __init__(self, path: Path) -> None:
        self._lines: Final = path.read_text().splitlines(keepends=True)
        self._taken_count = 0

    def run(self, base_url: str, path: str, *, seconds: float, most: int) -> Load:
        """Deliver as fast as possible. Any answer but a success ends the benchmark; `most` events are ready."""
        lines = self._lines[self._taken_count : self._taken_count + most]
        self._taken_count += most
        with tempfile.TemporaryDirectory() as folder:
            script, events = Path(folder, "deliver.lua"), Path(folder, "events")
            script.write_text(_SCRIPT)
            events.write_text("".join(lines))
            options: list[str | Path] = [
                "-t1",
                f"-c{CONNECTIONS}",
                f"-d{seconds:.0f}s",
                "--latency",
                "--timeout",
                "10s",
                "-s",
                script,
            ]
            command: list[str | Path] = ["wrk", *options, base_url, "--", events, path]
            return measure(command, "deliveries")
