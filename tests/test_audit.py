"""`make audit`: what makes it fail, how long exemptions hold, and what it prints without advisories."""

import json
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from scripts import audit

TODAY = date(2026, 11, 22)
ADVISORY = {
    "id": "PYSEC-2026-1",
    "aliases": ["CVE-2026-1"],
    "summary": "Reads beyond its end.",
    "fixed_in": ["1.2"],
    "withdrawn": None,
}
OURS = audit.Vulnerability("leaky", "1.1", frozenset({"PYSEC-2026-1", "CVE-2026-1"}), "Reads beyond its end.")


class Index:
    """A package index of the paths that it is given."""

    def __init__(self) -> None:
        self.documents: dict[str, Any] = {}
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(index.documents.get(self.path)).encode()
                self.send_response(200 if self.path in index.documents else 404)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def describe_release(self, name: str, version: str, *advisories: dict[str, Any]) -> None:
        self.documents[f"/pypi/{name}/{version}/json"] = self._document(version, advisories)

    def describe_project(self, name: str, newest: str, *advisories: dict[str, Any]) -> None:
        self.documents[f"/pypi/{name}/json"] = self._document(newest, advisories)

    def _document(self, version: str, advisories: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        return {"info": {"version": version}, "vulnerabilities": list(advisories)}


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """A package index that knows advisories."""
    index = Index()
    thread = threading.Thread(target=index.server.serve_forever, args=(0.05,))
    thread.start()
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
    yield index
    index.server.shutdown()
    thread.join()
    index.server.server_close()


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    """Lock files of packages that exist nowhere."""
    folder = tmp_path / "requirements"
    folder.mkdir()
    (folder / "runtime.txt").write_text("leaky==1.1 \\\n    --hash=sha256:00\nsound==2.0 ; python_version > '3' \\\n")
    (folder / "floors.txt").write_text("old==0.1 \\\n    --hash=sha256:00\n")
    return folder


def test_an_advisory_of_a_pinned_release_is_found_and_the_floors_are_not_asked_about(index: Index, locks: Path) -> None:
    index.describe_release("leaky", "1.1", ADVISORY)
    index.describe_release("sound", "2.0")
    index.describe_release("old", "0.1", ADVISORY)
    found = audit.audit_python(locks)
    (vulnerability,) = found.vulnerabilities
    assert (vulnerability.package, vulnerability.version) == ("leaky", "1.1")
    assert vulnerability.ids == {"PYSEC-2026-1", "CVE-2026-1"}
    assert vulnerability.summary == "Reads beyond its end. (fixed in 1.2)"
    assert (found.checked, found.unchecked) == (2, "")


def test_a_withdrawn_advisory_counts_for_nothing(index: Index, locks: Path) -> None:
    index.describe_release("leaky", "1.1", ADVISORY | {"withdrawn": "2026-11-01T00:00:00Z"})
    index.describe_release("sound", "2.0")
    assert audit.audit_python(locks).vulnerabilities == ()


def test_an_index_of_projects_covers_only_the_newest_release(index: Index, locks: Path) -> None:
    index.describe_project("leaky", "1.1", ADVISORY)
    index.describe_project("sound", "3.0", ADVISORY)
    found = audit.audit_python(locks)
    assert [vulnerability.package for vulnerability in found.vulnerabilities] == ["leaky"]
    assert found.checked == 1
    assert found.unchecked == "the index describes the newest release only, and these are older: sound 2.0"


@pytest.mark.parametrize(
    "document", [{}, [], {"info": {"version": "1.1"}}, {"info": {"version": "1.1"}, "vulnerabilities": 1}]
)
def test_an_index_without_advisories_is_named_and_finds_nothing(index: Index, locks: Path, document: Any) -> None:
    index.documents["/pypi/leaky/1.1/json"] = document
    found = audit.audit_python(locks)
    assert (found.checked, found.vulnerabilities) == (0, ())
    assert "the index gives no advisories: leaky 1.1" in found.unchecked
    assert "the index answers 404: sound 2.0" in found.unchecked


def test_an_index_that_does_not_answer_is_named_and_finds_nothing(monkeypatch: pytest.MonkeyPatch, locks: Path) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    found = audit.audit_python(locks)
    assert (found.checked, found.vulnerabilities) == (0, ())
    assert found.unchecked == "the index does not answer (ConnectError): leaky 1.1, sound 2.0"


def test_an_index_in_a_folder_has_no_advisories(monkeypatch: pytest.MonkeyPatch, locks: Path) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", str(locks))
    found = audit.audit_python(locks)
    assert (found.checked, found.unchecked) == (0, "pip is configured with no index that could have advisories")


def npm_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, document: str) -> audit.Audit:
    lock = tmp_path / "clients" / "package-lock.json"
    lock.parent.mkdir()
    lock.write_text(json.dumps({"packages": {"": {}, "node_modules/leaky": {}, "node_modules/user": {}}}))
    monkeypatch.setattr(audit, "_run_npm_audit", lambda folder: {lock.parent: document}[folder])
    return audit.audit_npm(lock)


def test_an_advisory_of_npm_is_found_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    via = {"url": "https://example.org/advisories/GHSA-1234", "title": "Reads beyond its end"}
    packages = {"leaky": {"via": [via], "range": "<1.2"}, "user": {"via": ["leaky"], "range": "*"}}
    found = npm_says(monkeypatch, tmp_path, json.dumps({"vulnerabilities": packages}))
    expected = audit.Vulnerability("leaky", "<1.2", frozenset({"GHSA-1234"}), "Reads beyond its end")
    assert found == audit.Audit("clients/package-lock.json", 2, (expected,))


def test_npm_without_findings_has_checked_every_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = npm_says(monkeypatch, tmp_path, '{"vulnerabilities": {}}')
    assert found == audit.Audit("clients/package-lock.json", 2)


@pytest.mark.parametrize("document", ['{"message": "405 Method Not Allowed"}', "", "npm error", "[]"])
def test_a_registry_of_npm_without_advisories_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, document: str
) -> None:
    found = npm_says(monkeypatch, tmp_path, document)
    assert found == audit.Audit("clients/package-lock.json", 0, unchecked="npm's registry gives no advisories")


def test_the_bundled_postgresql_is_compared_with_the_known_good_releases() -> None:
    found = audit.audit_postgres()
    assert found.checked == 1
    for vulnerability in found.vulnerabilities:
        assert vulnerability.ids == {f"PostgreSQL-{vulnerability.version}"}
        assert "lacks the security fixes" in vulnerability.summary


def test_a_vulnerability_without_an_exemption_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.judge([OURS], {}, TODAY) == 1
    assert capsys.readouterr().out == "VULNERABLE: leaky 1.1: CVE-2026-1, PYSEC-2026-1: Reads beyond its end.\n"


@pytest.mark.parametrize("name", ["PYSEC-2026-1", "CVE-2026-1"])
def test_an_exemption_by_any_name_of_the_advisory_holds_until_its_day(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    exemptions = {name: audit.Exemption("We never read.", TODAY)}
    assert audit.judge([OURS], exemptions, TODAY) == 0
    assert capsys.readouterr().out.endswith("Reason: We never read.\n")
    assert audit.judge([OURS], exemptions, date(2026, 11, 23)) == 1
    assert "excused until 2026-11-22 only" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        'id = "CVE-1"\nreason = "none"',
        'id = "CVE-1"\nuntil = 2027-01-01',
        'reason = "none"\nuntil = 2027-01-01',
        'id = "CVE-1"\nreason = " "\nuntil = 2027-01-01',
        'id = "CVE-1"\nreason = "none"\nuntil = "2027-01-01"',
        'id = "CVE-1"\nreason = "none"\nuntil = 2027-01-01T00:00:00Z',
        'id = "CVE-1"\nreason = "none"\nuntil = 2027-01-01\npackage = "x"',
    ],
)
def test_an_exemption_has_an_id_a_reason_and_a_day(tmp_path: Path, text: str) -> None:
    path = tmp_path / "exemptions.toml"
    path.write_text(f"[[exemption]]\n{text}\n")
    with pytest.raises(ValueError, match="an id, a reason and a day"):
        audit.read_exemptions(path)


def test_the_exemptions_of_this_repository_can_be_read() -> None:
    assert all(exemption.reason for exemption in audit.read_exemptions(audit.ROOT / audit.EXEMPTIONS).values())


def test_the_audit_prints_what_it_could_not_check_and_fails_for_what_it_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], index: Index, locks: Path
) -> None:
    index.describe_release("leaky", "1.1", ADVISORY)
    monkeypatch.setattr(audit, "audit_postgres", lambda: audit.Audit("PostgreSQL", 1))
    (locks / "audit-exemptions.toml").write_text("")
    assert audit.main(locks.parent) == 1
    assert capsys.readouterr().out.splitlines() == [
        "requirements/*.txt: 1 checked, 1 known to be vulnerable",
        "  NOT CHECKED: the index answers 404: sound 2.0",
        "PostgreSQL: 1 checked, 0 known to be vulnerable",
        "VULNERABLE: leaky 1.1: CVE-2026-1, PYSEC-2026-1: Reads beyond its end. (fixed in 1.2)",
    ]
