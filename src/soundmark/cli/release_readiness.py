"""`soundmark platform release-readiness`: what the SDK's stable release still needs."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import typer

from soundmark.cli import Refused
from soundmark.cli.api import make_label, show_facts, show_json
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.options import AsJson
from soundmark.core.domain.platform.release import SdkRelease
from soundmark.core.features.platform.release.service import ReleaseReadiness, Unavailability, judge_readiness
from soundmark.core.features.platform.release.wire import readiness_view
from soundmark.settings import CoreDatabaseSettings

_FILE: Final = "the evidence file"
_REASONS: Final[Mapping[Unavailability, str]] = {
    "never_computed": "Core's worker has not looked for evidence yet; run `soundmark work core`",
    "stale": "Core's worker last looked more than ten minutes ago; make sure that `soundmark work core` runs",
    "not_configured": "the worker has no evidence file; set SOUNDMARK_RELEASE_EVIDENCE_PATH for it",
    "missing": f"{_FILE} does not exist",
    "not_a_file": f"{_FILE} is not a regular file",
    "unreadable": f"{_FILE} cannot be read by the worker's user",
    "changing": f"{_FILE} was written to while it was read; replace it by renaming a complete file",
    "too_large": f"{_FILE} is larger than 64 KiB",
    "malformed": f"{_FILE} is malformed; docs/guides/operating.md shows its form",
    "asymmetric": f"{_FILE} names a version without its revision, or a stable release while a gate is false",
}


def release_readiness(*, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Print the SDK's release status, and what its stable release still needs.

    Fails with the reason if Core's worker found no usable evidence in the last ten minutes.
    """
    readiness = run_on_core(read_settings(CoreDatabaseSettings, data_dir), "platform", judge_readiness)
    if isinstance(readiness, str):
        raise Refused(f"the release readiness is unknown: {_REASONS[readiness]}")
    if as_json:
        show_json(readiness_view(readiness).model_dump(mode="json"))
        return
    show_facts(_facts(readiness))
    missing = [make_label(gate).lower() for gate in readiness.evidence.gates.list_closed()]
    typer.echo(f"missing: {', '.join(missing)}" if missing else "nothing is missing")


def _facts(readiness: ReleaseReadiness) -> Iterator[tuple[str, Any]]:
    evidence = readiness.evidence
    yield "Computed", readiness.computed_at
    yield "Preview", _name(evidence.preview)
    for gate, is_open in readiness_view(readiness).gates.model_dump().items():
        yield make_label(gate), is_open
    yield "Stable", "none yet" if evidence.stable is None else _name(evidence.stable)


def _name(release: SdkRelease) -> str:
    return f"{release.version} ({release.revision})"
