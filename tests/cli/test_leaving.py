"""`soundmark organizations` and `projects`: export, preflight and delete."""

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.processes.command_server import find_forked_soundmark

from .conftest import Done, answered, environ, run
from .leaving_service import (
    CERTIFICATE,
    CREDENTIAL,
    ORGANIZATION,
    PROJECT,
    LeavingService,
    make_archive,
    make_certificate,
    problem,
    serving_leavers,
)

IN_IT = {
    "organizations": ("--organization", ORGANIZATION),
    "projects": ("--organization", ORGANIZATION, "--project", PROJECT),
}
SUBJECTS = {"organizations": ORGANIZATION, "projects": PROJECT}
EITHER = pytest.mark.parametrize("group", ["organizations", "projects"])


@pytest.fixture
def leaving() -> Iterator[LeavingService]:
    """A service that exports and deletes."""
    with serving_leavers() as service:
        yield service


def run_in(service: LeavingService, group: str, *arguments: str) -> Done:
    settings = {"BASE_URL": service.url, "API_KEY": CREDENTIAL}
    return run(group, *arguments, *IN_IT[group], settings=settings)


def confirm(service: LeavingService, *answers: str) -> Done:
    """Run the deletion of a project at a terminal, and type these answers."""
    ours, theirs = pty.openpty()
    command = [find_forked_soundmark(), "projects", "delete", *IN_IT["projects"]]
    settings = {"BASE_URL": service.url, "API_KEY": CREDENTIAL}
    with os.fdopen(ours, "wb", buffering=0) as keyboard:
        keyboard.write("".join(f"{answer}\n" for answer in answers).encode() + b"\x04" * (not answers))
        done = subprocess.run(
            command, check=False, stdin=theirs, capture_output=True, text=True, timeout=90, env=environ(settings)
        )
        os.close(theirs)
    return Done(done.returncode, done.stdout, done.stderr)


@EITHER
def test_an_archive_is_saved_and_its_name_printed(leaving: LeavingService, nowhere: Path, group: str) -> None:
    done = run_in(leaving, group, "export")
    name = f"{SUBJECTS[group]}.svc-{group.removesuffix('s')}-archive-v1.json"
    assert (done.status, done.out, done.err) == (0, f"{name}\n", "")
    assert (nowhere / name).read_bytes() == make_archive()
    again = run_in(leaving, group, "export")
    assert again.refusal == f"{name} already exists; --force overwrites it"
    assert run_in(leaving, group, "export", "--force").status == 0


def test_a_damaged_archive_is_not_saved(leaving: LeavingService, nowhere: Path) -> None:
    leaving.archive = make_archive()[:-1] + b" "
    assert "digest" in run_in(leaving, "projects", "export", "--out", "mine.json").refusal
    assert [one.name for one in nowhere.iterdir() if one.is_file()] == []


def test_an_archive_goes_where_it_can_be_written(leaving: LeavingService) -> None:
    refused = run_in(leaving, "projects", "export", "--out", "missing/mine.json")
    assert refused.refusal == "missing/mine.json cannot be written: there is no folder missing"


@EITHER
def test_a_preflight_shows_what_would_be_deleted(leaving: LeavingService, group: str) -> None:
    shown = run_in(leaving, group, "preflight")
    assert shown.status == 0
    for text in (SUBJECTS[group], CERTIFICATE, "Can be deleted", "yes", "Active codes"):
        assert text in shown.out
    assert ("Members" in shown.out) == (group == "organizations")
    assert answered(run_in(leaving, group, "preflight", "--json"))["deletes"]["codes"] == 3
    assert not any(request.startswith("DELETE") for request in leaving.requests)


@EITHER
def test_a_deletion_prints_and_saves_its_certificate(leaving: LeavingService, nowhere: Path, group: str) -> None:
    leaving.certificate = make_certificate(group.removesuffix("s"))
    subject = SUBJECTS[group]
    done = run_in(leaving, group, "delete", "--confirmation", subject, "--certificate", "certificate.json")
    address = f"{leaving.url}/v1/deletion-certificates/{CERTIFICATE}"
    assert (done.status, done.err) == (0, "")
    assert done.out == f"{subject} is deleted; its certificate is at {address}\nand in certificate.json\n"
    assert leaving.bodies == [{"confirmation": subject}]
    assert json.loads((nowhere / "certificate.json").read_bytes()) == leaving.certificate
    verified = run("certificate", "verify", "certificate.json", "--base-url", leaving.url)
    assert verified.status == 0


@pytest.mark.parametrize(("group", "left"), [("organizations", None), ("projects", ORGANIZATION)])
def test_what_was_deleted_is_no_longer_the_choice(leaving: LeavingService, group: str, left: str | None) -> None:
    leaving.certificate = make_certificate(group.removesuffix("s"))
    settings = {"BASE_URL": leaving.url, "API_KEY": CREDENTIAL}
    assert run("use", ORGANIZATION, PROJECT, settings=settings).status == 0
    assert run(group, "delete", "--confirmation", SUBJECTS[group], settings=settings).status == 0
    chosen = run("use", settings=settings)
    assert chosen.out == ("" if left is None else f"{left} at {leaving.url}\n")


def test_scripts_get_the_certificate_as_json(leaving: LeavingService) -> None:
    done = run_in(leaving, "projects", "delete", "--confirmation", PROJECT, "--json")
    assert json.loads(done.out) == leaving.certificate
    assert done.err.startswith(f"{PROJECT} is deleted; ")
    leaving.is_deleted = False
    silent = run_in(leaving, "projects", "delete", "--json")
    assert (silent.status, silent.out) == (2, ""), silent
    assert "--confirmation" in silent.err


def test_a_person_types_the_full_id(leaving: LeavingService) -> None:
    done = confirm(leaving, PROJECT)
    assert done.status == 0
    assert "Morning show" in done.out
    assert "Type the project's full id to confirm" in done.err
    assert leaving.is_deleted


@pytest.mark.parametrize("typed", [("yes",), (PROJECT[:-1],), (ORGANIZATION,), ()], ids=["yes", "part", "other", "end"])
def test_nothing_is_deleted_without_the_full_id(leaving: LeavingService, typed: tuple[str, ...]) -> None:
    done = confirm(leaving, *typed)
    assert done.status == 1
    assert "nothing was deleted" in done.err
    assert leaving.bodies == []


def test_a_wrong_confirmation_is_not_sent(leaving: LeavingService) -> None:
    refused = run_in(leaving, "projects", "delete", "--confirmation", ORGANIZATION)
    assert refused.refusal == f"nothing was deleted: the confirmation is not the project's id, {PROJECT}"
    assert leaving.bodies == []


def test_what_stands_in_the_way_is_named(leaving: LeavingService) -> None:
    leaving.blockers = [
        {"code": "deletion_operations_pending", "ids": ["aud_1", "aud_2"]},
        {"code": "of_a_later_release", "ids": []},
    ]
    refused = run_in(leaving, "projects", "delete", "--confirmation", PROJECT)
    assert refused.refusal == (
        "nothing was deleted: deletion_operations_pending aud_1 aud_2 (wait until these are done, then try again); "
        "of_a_later_release"
    )
    assert "aud_1 aud_2" in run_in(leaving, "projects", "preflight").out
    assert leaving.bodies == []


def test_an_interrupted_deletion_is_resumed(leaving: LeavingService) -> None:
    leaving.deletions = [problem(503, "audience_unavailable")]
    assert run_in(leaving, "projects", "delete", "--confirmation", PROJECT).status == 0
    assert len(leaving.bodies) == 2


def test_a_deletion_without_an_answer_says_how_to_go_on(leaving: LeavingService) -> None:
    leaving.deletions = [problem(503, "audience_unavailable")] * 9
    refused = run_in(leaving, "projects", "delete", "--confirmation", PROJECT).refusal
    assert refused.startswith("audience_unavailable (503): Refused; the deletion of ")
    assert refused.endswith(
        f"once it is complete its certificate is at {leaving.url}/v1/deletion-certificates/{CERTIFICATE}"
    )


def test_a_refused_deletion_keeps_its_own_reason(leaving: LeavingService) -> None:
    leaving.deletions = [problem(409, "deletion_billing_active")]
    refused = run_in(leaving, "projects", "delete", "--confirmation", PROJECT)
    assert refused.refusal == "deletion_billing_active (409): Refused."


def test_a_certificate_that_is_not_genuine_is_no_proof(leaving: LeavingService) -> None:
    leaving.certificate = {**make_certificate(), "completed_at": "2026-11-20T10:00:08.000Z"}
    done = run_in(leaving, "projects", "delete", "--confirmation", PROJECT)
    assert done.status == 1
    assert "is deleted" in done.out
    assert "not genuine: signature_invalid" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("projects", "preflight", "--organization", ORGANIZATION), "give --project"),
        (("organizations", "delete"), "give --organization"),
        (("organizations", "preflight", "--organization", "org_other"), "org_other is not one of your organisations"),
    ],
    ids=["no project", "no organisation", "foreign"],
)
def test_it_must_be_clear_what_is_meant(leaving: LeavingService, arguments: tuple[Any, ...], message: str) -> None:
    done = run(*arguments, settings={"BASE_URL": leaving.url, "API_KEY": CREDENTIAL})
    assert done.status in {1, 2}
    assert message in done.err
