"""Driving wrk, the load generator, and reading what it measured."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, rates

CONNECTIONS = 64

_SCRIPT = """
local requests, n = {}, 0
function init(args)
  local bodies = {}
  for body in io.lines(args[4]) do table.insert(bodies, body) end
  for path in io.lines(args[1]) do
    n = n + 1
    local headers = {["Host"] = "bench", ["X-Svc-Resolution-Proof"] = "ed25519-v1"}
    if args[3] ~= "" then headers["Authorization"] = args[3] end
    if #bodies > 0 then
      headers["Content-Type"] = "application/json"
      requests[n] = wrk.format("POST", path, headers, bodies[(n - 1) % #bodies + 1])
    else
      requests[n] = wrk.format("GET", path, headers)
    end
  end
  is_drawn = args[2] ~= "in order"
  math.randomseed(is_drawn and tonumber(args[2]) or 0)
  last = 0
end
function request()
  last = is_drawn and math.random(n) or last % n + 1
  return requests[last]
end
function done(summary, latency, _)
  local e = summary.errors
  io.write(string.format('RESULT {"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"bytes":%d,"errors":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), summary.bytes,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


@dataclass(frozen=True)
class Load:
    """The results of one run of wrk."""

    requests: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float


def against(name: str, loads: Sequence[Load], references: Sequence[Load], reference_name: str, target: float) -> Figure:
    """Compare the rates of the loads with those of the references in the same rounds."""
    measured, reference_rates = ([load.requests_per_s for load in some] for some in (loads, references))
    return rates(name, measured, reference_name, reference_rates, target)


@dataclass(frozen=True)
class Demand:
    """The requests to make."""

    paths: Sequence[str]
    connections: int = CONNECTIONS
    authorization: str = ""
    bodies: Sequence[str] = ()  # Posted to the paths in turn, instead of getting them.
    is_in_order: bool = False  # Each path once before the first is repeated, instead of a uniform draw.


def run(base_url: str, demand: Demand, *, seconds: float, seed: int = 1) -> Load:
    """Send `demand` as fast as possible for `seconds`. Any answer but a success ends the benchmark."""
    order = "in order" if demand.is_in_order else str(seed)
    with tempfile.TemporaryDirectory() as folder:
        script, listing, bodies = Path(folder, "draw.lua"), Path(folder, "paths"), Path(folder, "bodies")
        script.write_text(_SCRIPT)
        listing.write_text("\n".join(demand.paths))
        bodies.write_text("\n".join(demand.bodies))
        options: list[str | Path] = [
            "-t1",
            f"-c{demand.connections}",
            f"-d{seconds:.0f}s",
            "--timeout",
            "10s",
            "-s",
            script,
        ]
        command: list[str | Path] = ["wrk", *options, base_url, "--", listing, order, demand.authorization, bodies]
        return measure(command, f"requests to {demand.paths[0]}")


def measure(command: Sequence[str | Path], what: str) -> Load:
    """Return the results of a run of wrk with one of our scripts; `what` names its requests in an error."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    measured = json.loads(line.removeprefix("RESULT "))
    if measured["errors"] or not measured["requests"]:
        raise RuntimeError(f"{measured['errors']} of {measured['requests']} {what} failed")
    return Load(
        requests=measured["requests"],
        requests_per_s=measured["requests"] / (measured["duration_us"] / 1e6),
        p50_ms=measured["p50_us"] / 1e3,
        p99_ms=measured["p99_us"] / 1e3,
    )
