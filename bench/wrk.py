"""Driving wrk, the load generator, and reading what it measured."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONNECTIONS = 64

_SCRIPT = """
local requests, n = {}, 0
function init(args)
  for path in io.lines(args[1]) do
    n = n + 1
    requests[n] = wrk.format("GET", path, {["Host"] = "bench", ["X-Svc-Resolution-Proof"] = "ed25519-v1"})
  end
  math.randomseed(tonumber(args[2]))
end
function request() return requests[math.random(n)] end
function done(summary, latency, _)
  local e = summary.errors
  io.write(string.format('RESULT {"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"bytes":%d,"errors":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), summary.bytes,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


@dataclass(frozen=True)
class Load:
    """What one run of wrk measured."""

    requests: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float


def run(base_url: str, paths: Sequence[str], *, seconds: float, connections: int = CONNECTIONS, seed: int = 1) -> Load:
    """Ask for uniformly drawn `paths` over `connections` for `seconds`. Any answer but a success ends the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        script, listing = Path(folder, "draw.lua"), Path(folder, "paths")
        script.write_text(_SCRIPT)
        listing.write_text("\n".join(paths))
        done = subprocess.run(
            ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", script, base_url, "--", listing, str(seed)],
            capture_output=True,
            text=True,
            check=True,
        )
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    measured = json.loads(line.removeprefix("RESULT "))
    if measured["errors"] or not measured["requests"]:
        raise RuntimeError(f"{measured['errors']} of {measured['requests']} requests to {paths[0]} failed")
    return Load(
        requests=measured["requests"],
        requests_per_s=measured["requests"] / (measured["duration_us"] / 1e6),
        p50_ms=measured["p50_us"] / 1e3,
        p99_ms=measured["p99_us"] / 1e3,
    )
