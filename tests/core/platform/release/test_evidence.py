"""What counts as evidence of a release, and how the file is read."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.tenancy.release_evidence import PREVIEW, STABLE, make_evidence

from soundmark.core.domain.platform.release import (
    EVIDENCE_BYTES_MAX,
    EvidenceRefused,
    ReleaseEvidence,
    SdkRelease,
    parse_evidence,
    write_evidence,
)
from soundmark.core.features.platform.release import evidence_file
from soundmark.core.features.platform.release.evidence_file import read_evidence_file

OPEN = dict.fromkeys(make_evidence()["gates"], True)


def refusal_of(content: bytes) -> str:
    with pytest.raises(EvidenceRefused) as refused:
        parse_evidence(content)
    return refused.value.finding


def parse(**changes: Any) -> ReleaseEvidence:
    return parse_evidence(json.dumps(make_evidence(**changes)).encode())


def refuse(**changes: Any) -> str:
    return refusal_of(json.dumps(make_evidence(**changes)).encode())


def test_evidence_is_read_as_it_is_written() -> None:
    evidence = parse(gates=OPEN, stable=STABLE)
    assert (evidence.preview, evidence.stable) == (SdkRelease(**PREVIEW), SdkRelease(**STABLE))
    assert evidence.gates.list_closed() == []
    assert parse_evidence(write_evidence(evidence).encode()) == evidence


def test_all_gates_may_be_open_before_there_is_a_stable_release() -> None:
    assert parse(gates=OPEN).stable is None


def test_a_stable_release_needs_every_gate() -> None:
    for gate in OPEN:
        assert parse(gates={**OPEN, gate: False}).gates.list_closed() == [gate]
        assert refuse(gates={**OPEN, gate: False}, stable=STABLE) == "asymmetric"


@pytest.mark.parametrize("release", ["preview", "stable"])
def test_a_version_and_its_revision_come_together(release: str) -> None:
    for half in ({"version": "1.0.0", "revision": None}, {"version": None, "revision": "0123456"}):
        assert refuse(gates=OPEN, **{release: half}) == "asymmetric"
        assert refuse(gates=OPEN, **{release: {name: value for name, value in half.items() if value}}) == "asymmetric"


@pytest.mark.parametrize(
    "changes",
    [
        {"preview": None},
        {"preview": {}},
        {"preview": "1.0.0"},
        {"preview": {"version": None, "revision": None}},
        {"preview": {**PREVIEW, "channel": "beta"}},
        {"preview": {"version": 1, "revision": 2}},
        {"preview": {"version": 1, "revision": "0123456"}},
        {"preview": {"version": "1.0.0", "revision": 2}},
        {"stable": False},
        {"stable": []},
        {"gates": {}},
        {"gates": {**OPEN, "android": True}},
        {"gates": {**OPEN, "available": 1}},
        {"gates": {**OPEN, "available": "true"}},
        {"gates": {**OPEN, "available": None}},
        {"computed_at": "2026-11-20T10:00:00.000Z"},
    ],
)
def test_the_object_is_closed_and_its_types_are_exact(changes: dict[str, Any]) -> None:
    assert refuse(**changes) == "malformed"


WHOLE = json.dumps(make_evidence()).encode()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="list"),
        pytest.param(WHOLE[:-1], id="cut off"),
        pytest.param(WHOLE + b"{}", id="more follows"),
        pytest.param(b"\xef\xbb\xbf" + WHOLE, id="byte order mark"),
        pytest.param(WHOLE.decode().encode("utf-16"), id="UTF-16"),
        pytest.param(WHOLE.replace(b'"stable": null', b'"stable": null, "stable": null'), id="duplicate member"),
        pytest.param(WHOLE.replace(b"true", b"true, " + b'"available": true', 1), id="duplicate gate"),
        pytest.param(WHOLE.replace(b"null", b"NaN"), id="NaN"),
        pytest.param(WHOLE.replace(b"9f2c41d7be03", b"\\ud800abcdef0"), id="lone surrogate"),
        pytest.param(b"[" * EVIDENCE_BYTES_MAX, id="deep"),
    ],
)
def test_what_is_no_strict_json_object_is_malformed(content: bytes) -> None:
    assert refusal_of(content) == "malformed"


def test_every_semantic_version_is_taken() -> None:
    for version in (
        "0.0.0",
        "1.2.3",
        "1.0.0-0.3.7",
        "1.0.0-x.7.z.92",
        "1.0.0-0a",
        "1.0.0--",
        "1.0.0+001",
        "1.0.0-a+b.-",
    ):
        assert parse(preview={"version": version, "revision": "0123456"}).preview.version == version


def test_other_versions_are_malformed() -> None:
    for version in (
        *("", "1", "1.0", "v1.0.0", "01.0.0", "1.00.0", "1.0.0-", "1.0.0-01", "1.0.0-a..b", "1.0.0+", "1.0.0+a+b"),
        *(" 1.0.0", "1.0.0\n", "1.0.0-ä", "1.0.٣", "1.0.0.0", "1.0.0_1", "1.0.0-" + "1" * 40_000 + "_"),
    ):
        assert refuse(preview={"version": version, "revision": "0123456"}) == "malformed", version[:20]


@pytest.mark.parametrize(("chars", "is_taken"), [(6, False), (7, True), (64, True), (65, False)])
def test_a_revision_has_7_to_64_digits(chars: int, is_taken: bool) -> None:
    preview = {"version": "1.0.0", "revision": "f" * chars}
    if is_taken:
        assert parse(preview=preview).preview.revision == "f" * chars
    else:
        assert refuse(preview=preview) == "malformed"


@pytest.mark.parametrize("revision", ["ABCDEF0", "abcdefg", "0123456\n", "٠١٢٣٤٥٦"])
def test_a_revision_is_lower_case_hexadecimal(revision: str) -> None:
    assert refuse(preview={"version": "1.0.0", "revision": revision}) == "malformed"


def read_finding(path: Path | None) -> str:
    with pytest.raises(EvidenceRefused) as refused:
        read_evidence_file(path)
    return refused.value.finding


def test_a_file_of_64_kib_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    assert EVIDENCE_BYTES_MAX == 64 * 1024
    file = tmp_path / "evidence.json"
    file.write_bytes(WHOLE.ljust(EVIDENCE_BYTES_MAX))
    assert read_evidence_file(file) == parse()
    file.write_bytes(WHOLE.ljust(EVIDENCE_BYTES_MAX + 1))
    assert read_finding(file) == "too_large"
    file.write_bytes(WHOLE.ljust(1024 * 1024))
    assert read_finding(file) == "too_large"
    assert refusal_of(WHOLE.ljust(EVIDENCE_BYTES_MAX + 1)) == "too_large"


def test_no_file_and_what_is_no_file(tmp_path: Path) -> None:
    """A named pipe that nobody writes to, or a device without an end, does not keep the worker."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert read_finding(None) == "not_configured"
    assert read_finding(tmp_path / "absent.json") == "missing"
    assert read_finding(Path(__file__) / "evidence.json") == "missing"
    assert read_finding(tmp_path) == "not_a_file"
    assert read_finding(pipe) == "not_a_file"
    assert read_finding(Path("/dev/zero")) == "not_a_file"


def test_a_link_is_followed_to_the_file_that_it_names_at_the_time(tmp_path: Path) -> None:
    """Orchestrators mount files as links and turn them."""
    link, file = tmp_path / "link", tmp_path / "first.json"
    file.write_bytes(WHOLE)
    link.symlink_to(file)
    assert read_evidence_file(link) == parse()
    (tmp_path / "turned").symlink_to("second.json")
    (tmp_path / "turned").rename(link)
    assert read_finding(link) == "missing"
    (tmp_path / "second.json").write_text(json.dumps(make_evidence(gates=OPEN, stable=STABLE)))
    assert read_evidence_file(link).stable == SdkRelease(**STABLE)
    (tmp_path / "circle").symlink_to("circle")
    assert read_finding(tmp_path / "circle") == "unreadable"


def test_a_link_to_a_secret_reveals_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "master.key"
    secret.write_text("A" * 43)
    (tmp_path / "link").symlink_to(secret)
    with pytest.raises(EvidenceRefused) as refused:
        read_evidence_file(tmp_path / "link")
    assert refused.value.args == ("malformed",)


class Meddler:
    """Does something after a file was opened for evidence and before its content was read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened_count = 0
        self._fstat = os.fstat
        monkeypatch.setattr(evidence_file.os, "fstat", self._judge)

    def act(self) -> None:
        raise NotImplementedError

    def _judge(self, handle: int) -> os.stat_result:
        state = self._fstat(handle)
        self.opened_count += 1
        self.act()
        return state


def test_a_file_that_is_replaced_while_it_is_read_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either the old file or the new one, and never a part of each."""
    file, new = tmp_path / "evidence.json", tmp_path / "new.json"
    file.write_bytes(WHOLE)

    class Replacing(Meddler):
        def act(self) -> None:
            if self.opened_count == 1:
                new.write_text(json.dumps(make_evidence(gates=OPEN, stable=STABLE)))
                new.rename(file)

    Replacing(monkeypatch)
    assert read_evidence_file(file) == parse()
    assert read_evidence_file(file) == parse(gates=OPEN, stable=STABLE)


def test_a_file_that_is_written_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "evidence.json"
    file.write_bytes(WHOLE[:20])

    class Writing(Meddler):
        def act(self) -> None:
            if self.opened_count == 1:
                file.write_bytes(WHOLE)

    assert Writing(monkeypatch).opened_count == 0
    assert read_evidence_file(file) == parse()


def test_a_file_that_never_rests_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "evidence.json"
    file.write_bytes(WHOLE)

    class Appending(Meddler):
        def act(self) -> None:
            with file.open("ab") as appended:
                appended.write(b" ")

    meddler = Appending(monkeypatch)
    assert read_finding(file) == "changing"
    assert meddler.opened_count == 6, "three attempts, each judged before and after"
