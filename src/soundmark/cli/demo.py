"""`soundmark demo`: the main job against a running service, step by step."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import httpx
import typer
from rich.console import Console
from soundmark_sdk import Receiver, ReceiverFailure, hear

from soundmark.cli.outcome import Refused
from soundmark.cli.spectrogram import draw
from soundmark.kit.timestamps import format_timestamp

app = typer.Typer(add_completion=False)

INTENT: Final = {
    "type": "link",
    "action": "open",
    "resource": {"url": "https://example.org/tonight", "title": "Tonight's programme"},
}
_TIMEOUT_S: Final = 15
_LIFE: Final = timedelta(hours=1)


@app.command()
def demo(
    up_file: Annotated[Path, typer.Option(help="What `soundmark up` left.")] = Path(".soundmark/up.json"),
    wav_out: Annotated[Path | None, typer.Option(help="Where the sound goes; beside the up-file unless told.")] = None,
) -> None:
    """Issue a Code, render it, hear it, resolve it and verify the answer; status 0 only if the intent came through."""
    running = _read_up_file(up_file)
    wav = wav_out or up_file.with_name("demo.wav")
    steps = _Steps(Console())
    headers = {"authorization": f"Bearer {running['operator_token']}"}
    try:
        with httpx.Client(base_url=running["base_url"], headers=headers, timeout=_TIMEOUT_S, trust_env=False) as client:
            code = _issue(client, steps)
            _render(client, steps, code, wav)
        _receive(running["base_url"], steps, code, wav)
    except httpx.HTTPError as error:
        raise Refused(f"the service at {running['base_url']} does not answer: {type(error).__name__}") from None
    except OSError as error:
        raise Refused(f"{error.filename} cannot be written: {error.strerror}") from None


class _Steps:
    """Tells the reader what happened and how long it took."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._count = 0

    @contextmanager
    def step(self, what: str) -> Iterator[list[str]]:
        """A step that takes the time of the block; what the block appends to the yielded list is shown behind it."""
        self._count += 1
        facts: list[str] = []
        began_s = time.perf_counter()
        yield facts
        took_ms = (time.perf_counter() - began_s) * 1000
        self._console.print(
            f"{self._count}. {what:<24} {took_ms:8.1f} ms  {' '.join(facts)}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _issue(client: httpx.Client, steps: _Steps) -> dict[str, Any]:
    with steps.step("organisation made") as facts:
        organization = _post(client, "/v1/organizations", {"name": "Soundmark demo"})
        facts.append(organization["id"])
    with steps.step("project made") as facts:
        project = _post(client, "/v1/projects", {"organization_id": organization["id"], "name": "Demo"})
        facts.append(project["id"])
    with steps.step("Code issued and signed") as facts:
        wanted = {
            "organization_id": organization["id"],
            "project_id": project["id"],
            "issuer": "Soundmark demo",
            "expires_at": format_timestamp(datetime.now(UTC) + _LIFE),  # noqa: TID251 - a client on its own clock
            "intent": INTENT,
        }
        code = _post(client, "/v1/codes", wanted)
        facts += [code["xr_id"], code["broadcast_frame"]]
    return code


def _render(client: httpx.Client, steps: _Steps, code: dict[str, Any], wav: Path) -> None:
    with steps.step("sound rendered") as facts:
        query = {"organization_id": code["organization_id"]}
        answer = client.get(f"/v1/codes/{code['xr_id']}/audio", params=query)
        _require(answer)
        wav.write_bytes(answer.content)
        facts.append(str(wav))
    with steps.step("picture drawn") as facts:
        picture = wav.with_suffix(".png")
        draw(wav, picture, title=f"{code['broadcast_frame']}, ultrasound fast (protocol 4)")
        facts.append(str(picture))


def _receive(base_url: str, steps: _Steps, code: dict[str, Any], wav: Path) -> None:
    with steps.step("sound heard") as facts:
        frames = hear(wav)
        if [frame.text for frame in frames] != [code["broadcast_frame"]]:
            raise Refused("what was heard is not what was broadcast")
        facts.append(frames[0].text)
    with steps.step("resolved and verified") as facts:
        try:
            with Receiver(base_url) as receiver:
                resolution = receiver.resolve(frames[0].token)
        except ReceiverFailure as failure:
            raise Refused(f"the answer yields no intent: {failure.reason}") from None
        intent = {
            "type": resolution.intent.type,
            "action": resolution.intent.action,
            "resource": dict(resolution.intent.resource),
        }
        facts.append(json.dumps(intent, ensure_ascii=False))
    if intent != INTENT or resolution.xr_id != code["xr_id"]:
        raise Refused("the verified intent is not the one that was issued")
    typer.echo("The verified intent equals the issued one.")


def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(path, json=body)
    _require(answer)
    created: dict[str, Any] = answer.json()
    return created


def _require(answer: httpx.Response) -> None:
    if not answer.is_success:
        raise Refused(f"{answer.request.url.path} answered {answer.status_code}")


def _read_up_file(path: Path) -> dict[str, Any]:
    try:
        running: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise Refused(f"{path} cannot be read: is `soundmark up` running, and is it yours?") from None
    return running
