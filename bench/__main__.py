"""`make bench`: measure, compare with the targets, print the table, and keep it in `bench/RESULTS.md`."""

import argparse
from collections.abc import Callable
from typing import Final

from rich.console import Console

from bench.access import access, audit
from bench.console import console
from bench.deployment import idle, up
from bench.exports import exports
from bench.figures import Figure, keep, show
from bench.ingestion import ingestion, ingestion_growth
from bench.issuing import bundles, issuing, listing, logged_stop, stopping
from bench.leaving import leaving
from bench.offline_packs import offline_packs
from bench.outbound import outbound
from bench.receiver import listening, receiver
from bench.refused import refused_events
from bench.rendering import rendering, sound
from bench.reports import reports
from bench.resolving import great_growth, growth, processes, resolution
from bench.retention import retention_cuts
from bench.rounds import pace
from bench.soak import hostile_forms, soak
from bench.tracing import tracing
from bench.transparency import logged_issuing, suspending, transparency
from bench.webhooks import webhooks
from soundmark.embedded.postgres import RunningCluster
from soundmark.embedded.throwaway import throwaway_cluster

_say: Final = Console(stderr=True, highlight=False).print


PARTS: Final[dict[str, Callable[[RunningCluster], list[Figure]]]] = {
    "resolution": resolution,
    "growth": growth,
    "great-growth": great_growth,
    "processes": processes,
    "rendering": rendering,
    "sound": sound,
    "access": access,
    "audit": audit,
    "issuing": issuing,
    "logged-issuing": logged_issuing,
    "suspending": suspending,
    "transparency": transparency,
    "tracing": tracing,
    "stopping": stopping,
    "logged-stop": logged_stop,
    "listing": listing,
    "bundles": bundles,
    "exports": exports,
    "ingestion": ingestion,
    "ingestion-growth": ingestion_growth,
    "refused-events": refused_events,
    "reports": reports,
    "retention": retention_cuts,
    "leaving": leaving,
    "webhooks": webhooks,
    "outbound": outbound,
    "console": console,
    "offline-packs": offline_packs,
    "receiver": receiver,
    "listening": listening,
    "soak": soak,
    "hostile-forms": hostile_forms,
    "up": up,
    "idle": idle,
}


SHORT: Final = ("resolution", "access", "audit", "listing", "up", "idle")


def main() -> None:
    """Measure the named parts, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which parts to measure; all unless named")
    parser.add_argument("--short", action="store_true", help="measure a few parts shortly, and keep nothing")
    options = parser.parse_args()
    chosen = options.parts or list(SHORT if options.short else PARTS)
    if options.short:
        pace.rounds, pace.round_s, pace.warm_s = 2, 2.0, 2.0
    with throwaway_cluster(is_durable=True) as cluster:
        for part in chosen:
            _say(f"measuring {part} ...")
            figures = PARTS[part](cluster)
            show(figures)
            if not options.short:
                keep(part, figures)


if __name__ == "__main__":
    main()
