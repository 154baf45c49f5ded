"""docs/guides/sandbox.md names every operation, every kind of misbehaviour and every request of `/control`."""

import re
from pathlib import Path
from typing import Final

from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.sandbox.app import make_routes
from soundmark.sandbox.control.routes import Control
from soundmark.sandbox.misbehaviour import KINDS
from soundmark.sandbox.options import SandboxOptions, choose_credentials
from soundmark.sandbox.systems import Systems, make_systems

GUIDE: Final = (Path(__file__).parents[2] / "docs" / "guides" / "sandbox.md").read_text(encoding="utf-8")


def systems() -> Systems:
    options = SandboxOptions("", choose_credentials({}, SystemEntropy()))
    return make_systems(options, SystemClock(), SystemEntropy(), None)


def section(heading: str) -> str:
    return GUIDE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_it_names_every_operation() -> None:
    made = systems()
    make_routes(made)
    rows = re.findall(r"^\| (card|local|accounting|desk) \| (.*) \|$", section("Misbehaviour"), re.MULTILINE)
    named = {system: set(re.findall(r"`(\w+)`", cell)) for system, cell in rows}
    # `other` is every path that the real system has and the stand-in lacks.
    assert named == {system: names - {"other"} for system, names in made.shared.switches.operations.items()}


def test_it_names_every_kind() -> None:
    kinds = section("Misbehaviour").partition("The operations are:")[0]
    named = {kind for row in re.findall(r"^\| (`.*?) \|", kinds, re.MULTILINE) for kind in re.findall(r"`(\w+)`", row)}
    assert named == set(KINDS)


def test_it_names_every_request_of_control() -> None:
    named = set(re.findall(r"`(GET|POST) (/control[^`]*)`", section("Control over HTTP")))
    acts = {(method, route.path) for route in Control(systems()).routes() for method in route.methods or ()}
    assert named == {(method, path) for method, path in acts if method != "HEAD"}
