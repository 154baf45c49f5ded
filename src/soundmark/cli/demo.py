"""`soundmark demo`: the main job against a running service, step by step."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import httpx2
import psycopg
import typer
from rich.console import Console
from soundmark_sdk import Frame, Receiver, ReceiverFailure, Resolution, hear
from soundmark_sdk.client import ClientFailure

from soundmark.cli import Refused
from soundmark.cli.api import explain_failure
from soundmark.cli.demo_filling import RunningService, fill
from soundmark.cli.intents import document, format_intent
from soundmark.cli.pictures import NoPictures, load_drawing
from soundmark.cli.whole_files import write_whole
from soundmark.kit.clock import SystemClock
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.supervision.data_dir import DataDirRefused, read_up_file

app = typer.Typer(add_completion=False)

INTENT: Final = {
    "type": "link",
    "action": "open",
    "resource": {"url": "https://example.org/tonight", "title": "Tonight's programme"},
}
_NAME: Final = "Soundmark demo"
_PROJECT: Final = "Demo"
_FOREIGN: Final = "the response of {path} is not one of Soundmark's"
_TIMEOUT_S: Final = 15
_LIFE: Final = timedelta(hours=1)


@app.command()
def demo(
    up_file: Annotated[Path, typer.Option(metavar="FILE", help="The file that `soundmark up` wrote.")] = Path(
        ".soundmark/up.json"
    ),
    wav_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the sound. Default: demo.wav beside the up-file."),
    ] = None,
    filled: Annotated[bool, typer.Option("--fill", help="Fill the service with sample organisations instead.")] = False,
) -> None:
    """Issue, render, hear, resolve and verify a Code. Exit status 0 only if the intent arrives intact."""
    if filled:
        _fill(up_file)
        return
    base_url, operator_token = _read_up_file(up_file)
    wav = wav_out or up_file.with_name("demo.wav")
    steps = _Steps(Console())
    steps.say(f"The main job at {base_url}, from issuing an intent to verifying it:")
    headers = {"authorization": f"Bearer {operator_token}"}
    with httpx2.Client(base_url=base_url, headers=headers, timeout=_TIMEOUT_S, trust_env=False) as client:
        code = _issue(client, steps)
        _render(client, steps, code, wav)
    frame = _hear(steps, code, wav)
    _draw(steps, frame, wav)
    resolution = _resolve(base_url, steps, frame)
    if document(resolution.intent) != INTENT or resolution.xr_id != code["xr_id"]:
        raise Refused("the verified intent is not the one that was issued")
    steps.say("The verified intent equals the issued one.")


def _fill(up_file: Path) -> None:
    base_url, operator_token = _read_up_file(up_file)
    up = read_up_file(up_file)
    console = Console(soft_wrap=True, highlight=False)
    cells = [cell["audience_database_url"] for cell in up.get("cells", [])]
    urls = cells or [str(up.get("audience_database_url"))]
    service = RunningService(base_url, operator_token, urls, up.get("sandbox_url"))
    try:
        for url in urls:
            psycopg.connect(url, connect_timeout=_TIMEOUT_S).close()  # Before anything is made.
        fill(service, SystemClock(), lambda line: console.print(line, markup=False))
    except ClientFailure as failure:
        raise Refused(explain_failure(failure)) from None
    except psycopg.Error as error:
        raise Refused(f"Audience's database: {type(error).__name__}") from None


class _Steps:
    """The lines that show what happened and how long it took."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._count = 0

    @contextmanager
    def step(self, what: str) -> Iterator[list[str]]:
        """Time the block as one step; show the facts that it appends to the yielded list."""
        self._count += 1
        facts: list[str] = []
        began_s = time.perf_counter()
        yield facts
        took_ms = (time.perf_counter() - began_s) * 1000
        self.say(f"{self._count}. {what:<24} {took_ms:8.1f} ms  {' '.join(facts)}")

    def say(self, line: str) -> None:
        """Show one line as it is, however long."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _issue(client: httpx2.Client, steps: _Steps) -> dict[str, Any]:
    try:
        made = _find_tenant(client)
    except (ValueError, TypeError, KeyError):
        raise Refused(_FOREIGN.format(path="/v1/organizations")) from None
    if made is None:
        with steps.step("organisation created") as facts:
            organization = _post(client, "/v1/organizations", {"name": _NAME}, "id")["id"]
            facts.append(organization)
        with steps.step("project created") as facts:
            project = _post(client, "/v1/projects", {"organization_id": organization, "name": _PROJECT}, "id")["id"]
            facts.append(project)
    else:
        organization, project = made
        for what, found in (("organisation found", organization), ("project found", project)):
            with steps.step(what) as facts:
                facts.append(found)
    with steps.step("Code issued and signed") as facts:
        request = {
            "organization_id": organization,
            "project_id": project,
            "issuer": _NAME,
            "expires_at": format_timestamp(SystemClock().now() + _LIFE),
            "intent": INTENT,
        }
        code = _post(client, "/v1/codes", request, "xr_id", "broadcast_frame", "organization_id")
        facts += [code["xr_id"], code["broadcast_frame"]]
    return code


def _find_tenant(client: httpx2.Client) -> tuple[str, str] | None:
    """Return the organisation and the project of an earlier demo, if it can still issue."""
    for organization in _list_named(client, "/v1/organizations", _NAME):
        query = {"organization_id": organization}
        for project in _list_named(client, "/v1/projects", _PROJECT, **query):
            usage = _ask(client, "GET", "/v1/usage", params=query).json()
            if usage["codes"]["remaining"] > 0:
                return organization, project
    return None


def _list_named(client: httpx2.Client, path: str, name: str, **query: str) -> list[str]:
    """Return the ids of the newest that have this name, and are neither suspended nor being deleted."""
    newest: list[dict[str, Any]] = _ask(client, "GET", path, params={**query, "limit": "100"}).json()["data"]
    return [
        each["id"]
        for each in newest
        if each["name"] == name and each["deletion_requested_at"] is None and each.get("suspended_at") is None
    ]


def _render(client: httpx2.Client, steps: _Steps, code: dict[str, Any], wav: Path) -> None:
    with steps.step("sound rendered") as facts:
        query = {"organization_id": code["organization_id"]}
        answer = _ask(client, "GET", f"/v1/codes/{code['xr_id']}/audio", params=query)
        with write_whole(wav) as file:
            file.write(answer.content)
        facts.append(str(wav))


def _hear(steps: _Steps, code: dict[str, Any], wav: Path) -> Frame:
    with steps.step("sound heard") as facts:
        try:
            frames = hear(wav)
        except ValueError as error:
            raise Refused(f"the rendered sound cannot be heard: {error}") from None
        if [frame.text for frame in frames] != [code["broadcast_frame"]]:
            raise Refused("the heard frame is not the broadcast frame")
        facts.append(frames[0].text)
    return frames[0]


def _draw(steps: _Steps, frame: Frame, wav: Path) -> None:
    """Draw the sound if matplotlib is installed; the main job does not depend on it."""
    try:
        draw = load_drawing("spectrogram").draw
    except NoPictures as missing:
        steps.say(f"No picture: {missing}")
        return
    picture = wav.with_suffix(".png")
    with steps.step("picture drawn") as facts:
        with write_whole(picture) as file:
            draw(wav, file, title=f"{frame.text}, ultrasound fast (protocol 4)")
        facts.append(str(picture))


def _resolve(base_url: str, steps: _Steps, frame: Frame) -> Resolution:
    with steps.step("resolved and verified") as facts:
        try:
            with Receiver(base_url) as receiver:
                resolution = receiver.resolve(frame.token)
            assert isinstance(resolution, Resolution), "a receiver without packs has no other answer"
        except ReceiverFailure as failure:
            raise Refused(f"the answer yields no verified intent: {failure}") from None
        except ValueError as error:
            raise Refused(f"{base_url}: {error}") from None
        facts.append(format_intent(resolution.intent))
    return resolution


def _post(client: httpx2.Client, path: str, body: dict[str, Any], *members: str) -> dict[str, Any]:
    """Create something, and return it; all of `members` are strings in it.

    Raises: Refused.
    """
    answer = _ask(client, "POST", path, json=body)
    try:
        created: dict[str, Any] = answer.json()
        if all(isinstance(created[member], str) for member in members):
            return created
    except (ValueError, TypeError, KeyError):
        pass
    raise Refused(_FOREIGN.format(path=path))


def _ask(client: httpx2.Client, method: str, path: str, **options: Any) -> httpx2.Response:
    try:
        answer = client.request(method, path, **options)
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        # The error's text could contain the request, and with it the operator token.
        raise Refused(f"the service at {client.base_url} does not answer: {type(error).__name__}") from None
    if not answer.is_success:
        raise Refused(f"{path} answered {answer.status_code}{_problem_code(answer)}")
    return answer


def _problem_code(answer: httpx2.Response) -> str:
    try:
        return f" ({answer.json()['code']})"
    except (ValueError, TypeError, KeyError):
        return ""


def _read_up_file(path: Path) -> tuple[str, str]:
    """Return the service's URL and the operator token."""
    try:
        up = read_up_file(path)
    except DataDirRefused as refused:
        raise Refused(str(refused)) from None
    base_url, operator_token = up.get("base_url"), up.get("operator_token")
    if not isinstance(base_url, str) or not isinstance(operator_token, str) or not operator_token.isascii():
        raise Refused(f"{path} was not written by `soundmark up`")
    return base_url, operator_token
