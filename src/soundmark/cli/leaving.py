"""What `soundmark organizations` and `soundmark projects` share for leaving: export, preflight and deletion."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol

import typer
from rich.progress import DownloadColumn, TimeElapsedColumn
from soundmark_sdk import CertificateRejected, verify_certificate
from soundmark_sdk.client import ApiProblem, Client, ClientFailure, ServiceUnreachable
from soundmark_sdk.client.records import ClosurePreflight, DeletionCertificate
from soundmark_sdk.client.saving import open_replacement

from soundmark.cli import Refused
from soundmark.cli.api import explain_failure, make_label, progress_of, show_facts, show_json
from soundmark.cli.defaults import TenantChoice, find_choice, save_choice
from soundmark.cli.intents import printable
from soundmark.cli.secret_output import Force, check_free

Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="The file to write. Default: the id and the format.")
]

_SERVER_ERROR: Final = 500
# What helps against a blocker, by the code of its problem.
ADVICE: Final = {
    "deletion_billing_active": ("(cancel these subscriptions, and give up these checkouts: soundmark billing cancel)",),
    "deletion_operations_pending": ("(wait until these are done, then try again)",),
    "resource_deletion_in_progress": ("(wait until this deletion is complete)",),
    "audience_unavailable": ("(try again when Audience can be reached)",),
}


@dataclass(frozen=True, slots=True)
class DeletionOptions:
    """The options of a deletion."""

    confirmation: Annotated[
        str | None,
        typer.Option("--confirmation", metavar="ID", help="The full id to delete, instead of typing it at the prompt."),
    ] = None
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="Save the deletion certificate to this file.")
    ] = None
    force: Force = False


class ClosableGroup(Protocol):
    """The operations for leaving, of `client.organizations` and of `client.projects`."""

    def export(self, into: Path, *, on_progress: Callable[[int, int | None], None] | None = None) -> int:
        """Write the archive."""

    def closure_preflight(self) -> ClosurePreflight:
        """Return the preflight."""

    def delete(self, confirmation: str, *, certificate_id: str | None = None) -> str:
        """Delete, and return the id of the certificate."""


@dataclass(frozen=True, slots=True)
class ClosureSubject:
    """What is exported or deleted. `name` is the one that people gave it."""

    kind: Literal["organisation", "project"]
    id: str
    name: str
    group: ClosableGroup


def find_organization(client: Client) -> ClosureSubject:
    """Return the organisation that the client's calls are about.

    Raises: Refused; typer.BadParameter if none was chosen; what the client raises.
    """
    for organization in client.organizations.list():
        if organization.id == client.organization_id:
            return ClosureSubject("organisation", organization.id, organization.name, client.organizations)
    raise Refused(
        printable(f"{_require_chosen(client.organization_id, '--organization')} is not one of your organisations")
    )


def find_project(client: Client) -> ClosureSubject:
    """Return the project that the client's calls are about.

    Raises: Refused; typer.BadParameter if none was chosen; what the client raises.
    """
    for project in client.projects.list():
        if project.id == client.project_id:
            return ClosureSubject("project", project.id, project.name, client.projects)
    raise Refused(printable(f"{_require_chosen(client.project_id, '--project')} is not a project of this organisation"))


def save_archive(subject: ClosureSubject, out: Path | None, *, force: bool) -> None:
    """Write the archive of a subject to `out`, which is replaced only by a complete archive, and print its name.

    Raises: Refused; what the client raises.
    """
    word = "project" if subject.kind == "project" else "organization"
    path = out or Path(f"{re.sub(r'[^A-Za-z0-9_-]', '_', subject.id)}.svc-{word}-archive-v1.json")
    check_free(path, force=force)
    try:
        with progress_of(DownloadColumn()) as bar:
            task = bar.add_task("Exporting", total=None)
            subject.group.export(
                path,
                on_progress=lambda taken, whole: bar.update(
                    task, completed=taken, total=whole, description="Downloading"
                ),
            )
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}") from None
    typer.echo(printable(str(path)))


def show_preflight(subject: ClosureSubject, *, as_json: bool) -> None:
    """Print what deleting a subject would delete, and what stands in its way.

    Raises: What the client raises.
    """
    preflight = subject.group.closure_preflight()
    if as_json:
        show_json(preflight.document)
    else:
        _show_preflight(subject, preflight)


def _show_preflight(subject: ClosureSubject, preflight: ClosurePreflight) -> None:
    show_facts(
        [
            (subject.kind.capitalize(), subject.id),
            ("Name", subject.name),
            ("Can be deleted", preflight.can_delete),
            *(("Blocked by", f"{blocker.code} {' '.join(blocker.ids)}".strip()) for blocker in preflight.blockers),
            *((make_label(name), _write_count(count)) for name, count in preflight.deletes.items()),
            ("Deletion requested", preflight.deletion_requested_at),
            ("Certificate", preflight.certificate_id),
        ]
    )


def delete_subject(
    client: Client, subject: ClosureSubject, options: DeletionOptions, *, base_url: str, as_json: bool
) -> None:
    """Delete a subject after it was confirmed, print where the certificate is, and save the certificate if asked to.

    Raises: Refused; typer.BadParameter; what the client raises.
    """
    if as_json and options.confirmation is None:
        raise typer.BadParameter("--json requires --confirmation, because it shows no prompt")
    if options.certificate is not None:
        check_free(options.certificate, force=options.force)
    preflight = subject.group.closure_preflight()
    if options.confirmation is None:
        _show_preflight(subject, preflight)
    _require_deletable(preflight)
    _require_confirmation(subject, options.confirmation)
    address = f"{base_url}/v1/deletion-certificates/{preflight.certificate_id}"
    with _explaining(subject, address), progress_of(TimeElapsedColumn()) as bar:
        bar.add_task("Deleting", total=None)
        certificate_id = subject.group.delete(subject.id, certificate_id=preflight.certificate_id)
    typer.echo(f"{subject.id} is deleted; its certificate is at {printable(address)}", err=as_json)
    _forget_choice(subject, base_url)
    certificate = client.get_deletion_certificate(certificate_id)
    _verify(client, certificate)
    if options.certificate is not None:
        _save(certificate, options.certificate)
        typer.echo(printable(f"and in {options.certificate}"), err=as_json)
    if as_json:
        show_json(certificate.document)


def _require_deletable(preflight: ClosurePreflight) -> None:
    if preflight.can_delete:
        return
    reasons = [" ".join([blocker.code, *blocker.ids, *ADVICE.get(blocker.code, ())]) for blocker in preflight.blockers]
    raise Refused(printable(f"nothing was deleted: {'; '.join(reasons)}"))


def _require_confirmation(subject: ClosureSubject, confirmation: str | None) -> None:
    """Accept only the full id, from the option or typed by a person.

    Raises: Refused.
    """
    if confirmation is None:
        question = f"This permanently deletes everything listed above. Type the {subject.kind}'s full id to confirm"
        try:
            confirmation = typer.prompt(question, err=True).strip()
        except typer.Abort:
            raise Refused("nothing was deleted: it was not confirmed; scripts use --confirmation") from None
    if confirmation != subject.id:
        raise Refused(f"nothing was deleted: the confirmation is not the {subject.kind}'s id, {subject.id}")


@contextmanager
def _explaining(subject: ClosureSubject, address: str) -> Iterator[None]:
    """If a deletion in the block may have begun, tell the user how to go on."""
    go_on = printable(
        f"the deletion of {subject.id} might have begun: the same command resumes it, and once it is complete its"
        f" certificate is at {address}"
    )
    try:
        yield
    except ClientFailure as failure:
        is_open = isinstance(failure, ServiceUnreachable) or (
            isinstance(failure, ApiProblem) and failure.status >= _SERVER_ERROR
        )
        if not is_open:
            raise
        raise Refused(f"{explain_failure(failure).removesuffix('.')}; {go_on}") from None
    except KeyboardInterrupt:
        raise Refused(f"interrupted; {go_on}") from None


def _forget_choice(subject: ClosureSubject, base_url: str) -> None:
    """Remove what was deleted from the choice that `soundmark use` made, so that no later command is about it."""
    choice = find_choice(base_url)
    if choice is not None and choice.organization_id == subject.id:
        save_choice(base_url, None)
    elif choice is not None and choice.project_id == subject.id:
        save_choice(base_url, TenantChoice(choice.organization_id))


def _verify(client: Client, certificate: DeletionCertificate) -> None:
    try:
        verify_certificate(certificate.document, client.get_key_history())
    except CertificateRejected as rejected:
        raise Refused(f"the service's certificate is not genuine: {rejected}") from None


def _save(certificate: DeletionCertificate, path: Path) -> None:
    try:
        with open_replacement(path) as file:
            file.write(json.dumps(certificate.document, ensure_ascii=False).encode() + b"\n")
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}") from None


def _write_count(count: int | None) -> Any:
    return "unknown: Audience cannot be reached" if count is None else count


def _require_chosen(chosen: str | None, option: str) -> str:
    if chosen is None:
        raise typer.BadParameter(f"give {option}, or choose one with `soundmark use`")
    return chosen
