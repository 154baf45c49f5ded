"""`soundmark audience`: a report as a table and as a picture, and the import of earlier counts."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from PIL import Image
from soundmark_sdk.client.reading import read_record
from soundmark_sdk.client.records import AudienceReport
from support.audience.client import CREDENTIAL
from support.audience.recorded_events import RecordedEvent, midnight, store_events, store_integrity_days

from soundmark.cli.report_picture import draw_report, frequency_bars, period_name, report_figure
from soundmark.kit.crypto.secret import Secret

from .conftest import Done, Service, Tenant, run, serving_core

UNKNOWN = "int_" + "0" * 22
XR = ["xr_" + "a" * 22, "xr_" + "b" * 22]
SIZE = (1320, 1080)


@dataclass(frozen=True)
class Measured:
    """A tenant with measured events, and the Audience that stores them."""

    tenant: Tenant
    integration_id: str
    audience_url: str

    def report(self, *arguments: str, integration_id: str | None = None) -> Done:
        named = integration_id or self.integration_id
        return self.tenant.run("audience", "report", named, "--project", self.tenant.project_id, *arguments)

    def import_legacy(self, file: Path, *, project: str | None = None, url: str | None = None) -> Done:
        where = ("--organization", self.tenant.organization_id, "--project", project or self.tenant.project_id)
        settings = {
            "CORE_DATABASE_URL": self.tenant.service.database_url.reveal(),
            "AUDIENCE_URL": url or self.audience_url,
            "AUDIENCE_CREDENTIAL": CREDENTIAL,
            "PRIVATE_TIMEOUT_S": "10",
        }
        done = run("audience", "import-legacy", str(file), *where, settings=settings)
        assert CREDENTIAL not in done.out + done.err
        return done

    def legacy(self) -> Any:
        return self.tenant.answer("/v1/audience/legacy-report", project_id=self.tenant.project_id)


@pytest.fixture
def measuring_service(spare_database_url: Secret, measuring_url: str) -> Iterator[Service]:
    """A Core beside a real Audience."""
    with serving_core(spare_database_url, audience_url=measuring_url) as service:
        yield service


@pytest.fixture
def measured(measuring_service: Service, measuring_url: str, beside_core_url: Secret) -> Measured:
    """A tenant with measured events."""
    post = measuring_service._post
    organization_id = post("/v1/organizations", {"name": "Radio Nordlicht"})["id"]
    project_id = post("/v1/projects", {"organization_id": organization_id, "name": "Morning show"})["id"]
    within = {"organization_id": organization_id, "project_id": project_id}
    key = post("/v1/api-keys", {**within, "scopes": ["audience:read"]})["secret"]
    integration = post("/v1/audience/integrations", {**within, "mode": "demo", "retention_days": 14})
    now = datetime.now(UTC)
    events = [
        RecordedEvent(now - timedelta(days=days, minutes=1), token, XR[token % 2])
        for days in range(5)
        for token in range(3 + days)
    ]
    store_events(beside_core_url, integration["id"], events)
    store_integrity_days(
        beside_core_url, integration["id"], {now.date() - timedelta(days=days): (1, 2, 3) for days in (0, 2)}
    )
    return Measured(Tenant(measuring_service, organization_id, project_id, key), integration["id"], measuring_url)


def drawn(path: Path) -> Image.Image:
    """Return the picture, which must be a complete PNG with more on it than paper."""
    with Image.open(path) as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", SIZE)
        assert len(picture.convert("RGB").getcolors(SIZE[0] * SIZE[1]) or []) > 20
        return picture


def test_a_report_is_shown_as_tables(measured: Measured) -> None:
    done = measured.report()

    assert (done.status, done.err) == (0, "")
    for shown in ("25", "7", "3.5714", measured.integration_id, XR[0], "phone", "TN", "Event replays"):
        assert shown in done.out, shown


def test_a_report_as_json_equals_the_apis(measured: Measured) -> None:
    done = measured.report("--json", "--code", XR[0])
    of_code = done.err  # Core never issued this Code, so there is no report of it.

    assert done.status == 1
    assert of_code.startswith("soundmark: code_not_found (404)")
    whole = json.loads(measured.report("--json").out)
    assert (whole["events"], whole["estimated_reach"], len(whole["by_day"])) == (25, 7, 5)


def test_a_period_is_passed_on(measured: Measured) -> None:
    today = midnight(datetime.now(UTC).date())

    narrowed = json.loads(measured.report("--json", "--from", today.isoformat()).out)

    assert narrowed["period"]["from"].startswith(today.date().isoformat())
    assert narrowed["events"] <= 3 + 4
    assert measured.report("--from", "yesterday").status == 2


def test_a_report_is_drawn(measured: Measured, tmp_path: Path) -> None:
    file = tmp_path / "report.png"

    done = measured.report("--plot", str(file))

    assert (done.status, done.err) == (0, "")
    assert "report.png" in done.out
    drawn(file)


def test_a_picture_that_cannot_be_written_is_one_line(measured: Measured, tmp_path: Path) -> None:
    assert "No such file" in measured.report("--plot", str(tmp_path / "nowhere" / "report.png")).refusal


def test_a_report_is_drawn_as_svg(measured: Measured, tmp_path: Path) -> None:
    file = tmp_path / "report.SVG"

    assert measured.report("--plot", str(file)).status == 0

    root = ET.fromstring(file.read_bytes())  # noqa: S314 - our own file
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_a_name_without_a_suffix_is_a_png(measured: Measured, tmp_path: Path) -> None:
    assert measured.report("--plot", str(tmp_path / "report")).status == 0
    drawn(tmp_path / "report")


@pytest.mark.parametrize("suffix", [".pdf", ".jpg", ".svgz", ".\x1b[2J"])
def test_a_picture_of_another_kind_is_refused_before_any_request(
    measured: Measured, tmp_path: Path, suffix: str
) -> None:
    done = measured.report("--plot", str(tmp_path / f"report{suffix}"), integration_id=UNKNOWN)

    assert (done.status, done.out) == (2, "")
    assert ".png or .svg" in " ".join(done.err.replace("│", " ").split())
    assert "\x1b[2J" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_integration_is_one_line(measured: Measured) -> None:
    assert measured.report(integration_id=UNKNOWN).refusal.startswith("integration_not_found (404)")
    assert measured.report("--campaign", "cmp_" + "0" * 22).refusal.startswith("campaign_not_found (404)")


def of_frequencies(tokens: dict[int, int], **changes: Any) -> AudienceReport:
    """Return a report with these frequencies, for a picture without a real measurement."""
    events = sum(frequency * count for frequency, count in tokens.items())
    signals = {"event_replays": 0, "code_token_duplicates": 0, "proof_replays": 0}
    document = {
        "integration_id": UNKNOWN,
        "mode": "demo",
        "period": {"from": "2026-11-01T00:00:00.000Z", "to": "2026-11-02T00:00:00.000Z"},
        "events": events,
        "estimated_reach": sum(tokens.values()),
        "average_frequency": 0.0,
        **{f"by_{name}": [] for name in ("day", "receiver", "campaign", "xr_code", "country")},
        "by_frequency": [{"frequency": frequency, "tokens": count} for frequency, count in tokens.items()],
        "integrity_signals": {"scope": "integration_period", **signals, "by_day": []},
        **changes,
    }
    return read_record(AudienceReport, document, "report")


def test_a_long_tail_of_frequencies_is_one_bar() -> None:
    report = of_frequencies({1: 50, 3: 5, 12: 2, 13: 1, 900: 4})

    bars = frequency_bars(report)

    assert bars[:3] == [("1", 50), ("2", 0), ("3", 5)]
    assert bars[-2:] == [("12", 2), ("over 12", 5)]
    assert sum(count for _, count in bars) == report.estimated_reach


BEGIN = date(2024, 12, 1)


def of_days(days: int, measured_days: Sequence[int] = (), replays: Sequence[int] = ()) -> AudienceReport:
    """Return a report of whole days; the days with these numbers have events, or replays."""
    signals = {"event_replays": 1, "code_token_duplicates": 0, "proof_replays": 0}
    named = [(BEGIN + timedelta(days=number)).isoformat() for number in range(days + 1)]
    return of_frequencies(
        {1: len(measured_days)} if measured_days else {},
        period={"from": f"{named[0]}T00:00:00.000Z", "to": f"{named[-1]}T00:00:00.000Z"},
        by_day=[{"day": named[number], "events": number + 1, "estimated_reach": 1} for number in measured_days],
        integrity_signals={
            "scope": "integration_period",
            **signals,
            "by_day": [{"day": named[number], **signals} for number in replays],
        },
    )


@pytest.mark.parametrize("days", [1, 730])
def test_any_number_of_days_is_drawn(tmp_path: Path, days: int) -> None:
    for name, report in (("all", of_days(days, range(days))), ("none", of_days(days))):
        with (tmp_path / f"{name}.png").open("wb") as file:
            draw_report(report, file, is_svg=False)
        drawn(tmp_path / f"{name}.png")


@pytest.mark.parametrize("days", [1, 3, 14, 730])
@pytest.mark.parametrize("is_empty", [False, True], ids=["measured", "empty"])
def test_the_axis_covers_the_whole_period(days: int, is_empty: bool) -> None:
    """Whole days, since a report has no hours; the same day is at the same place in each diagram."""
    reach, _, integrity = report_figure(of_days(days, () if is_empty else (days // 2,), (0,))).axes

    begin, end = reach.get_xlim()
    assert (begin, end) == integrity.get_xlim()
    first = (BEGIN - date(1970, 1, 1)).days
    assert begin <= first - 0.5
    assert end >= first + days - 0.5
    assert days < 7 or (begin, end) == (first - 0.5, first + days - 0.5)
    ticks = [tick for tick in reach.get_xticks() if begin <= tick <= end]
    assert min(days, 2) <= len(ticks) <= 12
    assert all(first <= tick < first + days for tick in ticks)
    assert [tick % 1 for tick in ticks] == [0] * len(ticks)
    assert not any(":" in label.get_text() for label in reach.get_xticklabels())


def test_a_day_without_events_is_drawn_as_zero() -> None:
    """A line from one measured day to the next would invent values in between."""
    reach = report_figure(of_days(15, (4, 9))).axes[0]

    (line,) = reach.get_lines()
    assert list(line.get_ydata()) == [1 if number in {4, 9} else 0 for number in range(15)]
    assert [bar.get_height() for bar in reach.patches] == [{4: 5, 9: 10}.get(number, 0) for number in range(15)]


def test_without_events_the_picture_says_so_and_has_no_scale() -> None:
    by_day, frequencies, integrity = report_figure(of_days(3)).axes

    labels = [[text.get_text() for text in axes.texts] for axes in (by_day, frequencies, integrity)]
    assert labels == [["no events in this period"], ["no events in this period"], ["no replays in this period"]]
    assert [list(axes.get_yticks()) for axes in (by_day, frequencies, integrity)] == [[], [], []]


@pytest.mark.parametrize(
    ("begin", "end", "name"),
    [
        ("2026-11-06T00:00:00.000Z", "2026-11-21T00:00:00.000Z", "2026-11-06 to 2026-11-20, 15 days (UTC)"),
        ("2026-11-20T00:00:00.000Z", "2026-11-21T00:00:00.000Z", "2026-11-20 (UTC)"),
        ("2026-11-20T09:30:00.000Z", "2026-11-21T00:00:00.000Z", "2026-11-20 09:30 to 2026-11-21 00:00 (UTC)"),
        ("2026-11-20T00:00:00.000Z", "2026-11-20T00:00:00.000Z", "2026-11-20 00:00 to 2026-11-20 00:00 (UTC)"),
    ],
)
def test_the_period_is_named(begin: str, end: str, name: str) -> None:
    report = of_frequencies({}, period={"from": begin, "to": end})
    assert period_name(report) == name
    assert report_figure(report).axes[0].get_title(loc="right").startswith(name)


def test_the_same_report_is_the_same_svg(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        with (tmp_path / name).open("wb") as file:
            draw_report(of_days(3, (1,)), file, is_svg=True)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def make_file(folder: Path, *lines: str, head: str = "day,events") -> Path:
    file = folder / "legacy.csv"
    file.write_text("\r\n".join([head, *lines, ""]), encoding="utf-8", newline="")
    return file


def test_legacy_days_are_imported_and_replaced(measured: Measured, tmp_path: Path) -> None:
    first = measured.import_legacy(make_file(tmp_path, "2026-01-30,412", "2026-01-31,0", '"2026-02-01","388"'))
    again = measured.import_legacy(make_file(tmp_path, "2026-01-31,7"))
    another = measured.import_legacy(make_file(tmp_path, "2026-02-02,1"))

    assert (first.status, first.out) == (0, "3 days, 800 events\n")
    assert (again.status, again.out) == (0, "1 day, 7 events\n")
    assert (another.status, another.out) == (0, "1 day, 1 event\n")
    labels = measured.legacy()
    assert {row["day"]: row["events"] for row in labels["by_day"]} == {
        "2026-01-30": 412,
        "2026-01-31": 7,
        "2026-02-01": 388,
        "2026-02-02": 1,
    }
    assert labels["label"] == "legacy_unverified_aggregate"


@pytest.mark.parametrize(
    ("lines", "labels"),
    [
        (["2026-01-30,1", "2026-01-30,2"], "line 3: 2026-01-30 appears twice"),
        (["2026-02-30,1"], "line 2: 2026-02-30 is not a date"),
        (["2026-01-30,1,203.0.113.9"], "line 2: must be a day and a count"),
        (["2999-01-01,1"], "line 2: 2999-01-01 is in the future"),
        (["2026-01-30,9999999999999999"], "line 2: a count is at most"),
        (['2026-01-30,"1'], "line 2:"),
        ([], "there must be 1 to 10,000 days"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_imported(
    measured: Measured, tmp_path: Path, lines: list[str], labels: str
) -> None:
    done = measured.import_legacy(make_file(tmp_path, *lines))

    assert labels in done.refusal
    assert measured.legacy()["by_day"] == []


def test_a_malformed_file_is_one_line(measured: Measured, tmp_path: Path) -> None:
    assert "No such file" in measured.import_legacy(tmp_path / "nothing.csv").refusal
    assert "day,events" in measured.import_legacy(make_file(tmp_path, "2026-01-30,1", head="date;count")).refusal
    (tmp_path / "legacy.csv").write_bytes(b"day,events\n\xff\xfe,1\n")
    assert "not UTF-8" in measured.import_legacy(tmp_path / "legacy.csv").refusal
    (tmp_path / "legacy.csv").write_bytes(b"day,events\n" + b"2026-01-30,1\n" * 100_000)
    assert "larger than 1 MiB" in measured.import_legacy(tmp_path / "legacy.csv").refusal


def test_an_unknown_project_gets_nothing(measured: Measured, tmp_path: Path) -> None:
    file = make_file(tmp_path, "2026-01-30,1")
    for project in ("prj_" + "0" * 22, "prj\x1b[31m", ""):
        assert "no" in measured.import_legacy(file, project=project or "prj_").refusal, project


def test_an_unavailable_audience_is_one_line(measured: Measured, tmp_path: Path) -> None:
    done = measured.import_legacy(make_file(tmp_path, "2026-01-30,1"), url="http://127.0.0.1:9")

    assert done.status == 1
    assert done.err.splitlines()[-1] == "soundmark: Audience did not confirm the import; repeating it is safe"
