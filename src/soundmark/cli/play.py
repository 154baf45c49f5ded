"""`soundmark play`: the playout agent of a venue."""

import asyncio
import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

import typer
from soundmark_sdk.client import AsyncClient, TenantNotGiven
from soundmark_sdk.http_exchange import new_transport

from soundmark.cli import Refused
from soundmark.cli.api import find_tenant
from soundmark.cli.intents import printable
from soundmark.cli.options import Connection, Organization, command, read_duration
from soundmark.cli.secret_output import Force, check_free
from soundmark.cli.service import Service, find_credential, find_service
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.operating_system.signals import until_signalled
from soundmark.studio.play.agent import Agent, PlayRefused
from soundmark.studio.play.journal import Journal
from soundmark.studio.play.loudspeaker import Loudspeaker
from soundmark.studio.play.outputs import Output, OutputEnded, StreamOutput, make_file_output
from soundmark.studio.play.player import Player
from soundmark.studio.play.playout import Line, Playout
from soundmark.studio.play.rotation import Rotation
from soundmark.studio.play.schedule import ALWAYS, Schedule
from soundmark.studio.play.service import CoreService
from soundmark.studio.play.sounds import DEFAULT_LEVEL_DBFS, make_renderer
from soundmark.studio.play.state_file import SavedState, StateFile, StateRefused
from soundmark.studio.play.status_server import serving_status
from soundmark.studio.play.steady_clock import DatedTransport, SteadyClock
from soundmark.studio.play.supplier import Supplier
from soundmark.studio.play.watcher import Watcher
from soundmark.wire.private.audio import Protocol

app = typer.Typer(add_completion=False)

_CODES_MAX: Final = 20  # Each is asked about every 1.5 s.
_HELD_MAX: Final = 1000  # A typing error should not use up a quota.
_ROTATE_MIN: Final = timedelta(minutes=1)
_ROTATE_MAX: Final = timedelta(days=1)
_OUTAGE_DEFAULT: Final = timedelta(hours=6)
# Requests are few and small. A longer wait would keep the next round from seeing a revocation within 5 s.
_TIMEOUT_S: Final = 2.5
_ATTEMPTS_MAX: Final = 2
_RETRY_WAIT_MAX_S: Final = 0.5
_AGENT_ID_BYTES: Final = 8
_NAME_CHARS: Final = 12
_PROTOCOLS: Final[dict[str, Protocol]] = {"3": 3, "4": 4, "5": 5}
_STANDARD_OUTPUT: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedCodes:
    """The options that say what is played, and when."""

    campaign: Annotated[
        str | None,
        typer.Option(
            "--campaign",
            metavar="ID",
            help="Play the campaign's active Code that expires last, while the campaign runs.",
        ),
    ] = None
    code: Annotated[
        list[str] | None,
        typer.Option("--code", metavar="ID", help="Play this Code. Several are played in turn."),
    ] = None
    rotate: Annotated[
        timedelta | None,
        typer.Option(
            parser=read_duration,
            metavar="TIME",
            help="Instead of the Code itself, play Codes with its intent that each live this long, such as 15m.",
        ),
    ] = None
    outage: Annotated[
        timedelta | None,
        typer.Option(
            parser=read_duration,
            metavar="TIME",
            help="With --rotate: issue ahead for an outage of the service of this length. Default: 6h.",
        ),
    ] = None
    schedule: Annotated[
        list[str] | None,
        typer.Option(
            "--schedule",
            metavar="HOURS",
            help="Play only in these hours, such as 'Mon-Fri 09:00-18:00' or 22:00-02:00. Repeat it for more.",
        ),
    ] = None
    time_zone: Annotated[
        str | None,
        typer.Option("--time-zone", metavar="ZONE", help="The time zone of --schedule, such as Africa/Tunis."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundOptions:
    """The options that say how the sound is made and where it goes."""

    gap: Annotated[
        float, typer.Option("--gap", metavar="S", min=0, max=3600, help="Seconds of silence between two sounds.")
    ] = 2.0
    level: Annotated[
        float, typer.Option("--level", metavar="DBFS", min=-60, max=0, help="The peak of the sound, in dBFS.")
    ] = DEFAULT_LEVEL_DBFS
    protocol: Annotated[
        Literal["3", "4", "5"], typer.Option("--protocol", help="3: slow and robust, 4, or 5: fast.")
    ] = "4"
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="NAME", help="The sound card: a number or a part of a name."),
    ] = None
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="-|FILE",
            help="Write 48 kHz, mono, 16 bits to standard output or a file instead: raw, or WAV if FILE ends in .wav.",
        ),
    ] = None
    force: Force = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The options of the process itself."""

    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="The file for held Codes. Default: a file for these Codes in STATE_DIRECTORY or ~/.local/state.",
        ),
    ] = None
    metrics_port: Annotated[
        int | None,
        typer.Option("--metrics-port", metavar="N", min=0, max=65535, help="Serve /metrics and /healthz here."),
    ] = None
    metrics_host: Annotated[
        str, typer.Option("--metrics-host", metavar="ADDRESS", help="The address for --metrics-port.")
    ] = "127.0.0.1"


@command(app, "play")
def play(
    *,
    played: PlayedCodes,
    sound: SoundOptions,
    options: AgentOptions,
    organization: Organization = None,
    connection: Connection,
) -> None:
    """Play Codes through a sound card, or into a pipe or file, until Ctrl-C or SIGTERM.

    A revoked Code stops within 5 seconds. While the service cannot be reached, the agent plays the Codes that it holds.
    With --rotate, short-lived Codes follow one another, so that a recording that is played later resolves to nothing.
    """
    playout = _make_playout(played)
    service = find_service(connection)
    credential = _CurrentCredential(service, connection.key_file)
    tenant = find_tenant(service, credential.read(), organization, None)

    def open_client(clock: SteadyClock) -> AsyncClient:
        return _open_client(service, credential, tenant, clock)

    journal = Journal(lambda line: typer.echo(printable(line), err=True))
    state_path = options.state or _find_state_path(service.base_url, playout)
    if options.state is None:
        state_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    state_file = StateFile(state_path)
    with ExitStack() as stack:
        try:
            stack.enter_context(state_file.locked())
            output = _make_output(sound)
        except (StateRefused, OutputEnded) as refused:
            raise Refused(str(refused)) from None
        host, port = options.metrics_host, options.metrics_port
        try:
            port = stack.enter_context(serving_status(port, host, journal))
        except OSError as error:
            raise Refused(f"port {port} of {host} cannot be listened on: {error.strerror}") from None
        if port is not None:
            journal.say("status", f"metrics and health on {host}:{port}")
        asyncio.run(_run(playout, sound, state_file, output, journal, open_client))


async def _run(
    playout: Playout,
    sound: SoundOptions,
    state_file: StateFile,
    output: Output,
    journal: Journal,
    open_client: Callable[[SteadyClock], AsyncClient],
) -> None:
    try:
        saved = state_file.read() or SavedState(SystemEntropy().take(_AGENT_ID_BYTES).hex())
        clock = SteadyClock(SystemClock(), saved.saved_at)
        saved.restore(playout, clock.now())
        async with open_client(clock) as client:
            service = CoreService(client)
            watcher = Watcher(playout, service, clock, journal)
            supplier = Supplier(
                playout,
                service,
                clock,
                journal,
                agent_id=saved.agent_id,
                look_at_campaigns=watcher.look_at_campaigns_soon,
            )
            player = Player(playout, make_renderer(_PROTOCOLS[sound.protocol], sound.level), sound.gap)
            agent = Agent(
                playout,
                player,
                service,
                watcher,
                supplier,
                output,
                state_file,
                saved=saved,
                clock=clock,
                journal=journal,
            )
            with until_signalled():
                await _begin(agent)
                await agent.run()
            await agent.finish()
    except (PlayRefused, StateRefused) as refused:
        raise Refused(printable(str(refused))) from None
    finally:
        output.close()


async def _begin(agent: Agent) -> None:
    try:
        await agent.begin()
    except TenantNotGiven:
        raise typer.BadParameter("give --organization, or choose one with `soundmark use`") from None
    except ValueError as error:  # The client cannot send this, such as a malformed id.
        raise Refused(str(error)) from None


class _CurrentCredential:
    """The credential, read anew for each request, so that a key may be rotated while it plays."""

    def __init__(self, service: Service, key_file: Path | None) -> None:
        self._service: Final = service
        self._key_file: Final = key_file
        self._last = find_credential(service, key_file)

    def read(self) -> str:
        """Return the credential; the last one while the file cannot be read."""
        with suppress(Refused):
            self._last = find_credential(self._service, self._key_file)
        return self._last


def _open_client(
    service: Service, credential: _CurrentCredential, tenant: tuple[str | None, str | None], clock: SteadyClock
) -> AsyncClient:
    organization_id, project_id = tenant
    try:
        return AsyncClient(
            service.base_url,
            credential.read,
            organization_id=organization_id,
            project_id=project_id,
            timeout_s=_TIMEOUT_S,
            attempts_max=_ATTEMPTS_MAX,
            retry_wait_max_s=_RETRY_WAIT_MAX_S,
            transport=DatedTransport(new_transport(service.base_url), clock),
            clock=clock,
        )
    except ValueError as error:
        raise Refused(f"{printable(service.base_url)}: {error}") from None


def _make_playout(played: PlayedCodes) -> Playout:
    """Return what the options say, before anything is known about it.

    Raises: typer.BadParameter.
    """
    codes = list(dict.fromkeys(played.code or ()))
    if (played.campaign is None) == (not codes):
        raise typer.BadParameter("give either --campaign or --code")
    if len(codes) > _CODES_MAX:
        raise typer.BadParameter(f"at most {_CODES_MAX} Codes can be played in turn")
    lines = [Line(code) for code in codes]
    if played.campaign is not None:
        lines = [Line(played.campaign, campaign_id=played.campaign)]
    return Playout(lines, _read_rotation(played, len(lines)), _read_schedule(played))


def _read_schedule(played: PlayedCodes) -> Schedule:
    if not played.schedule and played.time_zone is None:
        return ALWAYS
    if not played.schedule or played.time_zone is None:
        raise typer.BadParameter("give --schedule and --time-zone together")
    try:
        return Schedule.parse(played.schedule, played.time_zone)
    except ValueError as error:
        raise typer.BadParameter(printable(str(error))) from None


def _read_rotation(played: PlayedCodes, line_count: int) -> Rotation | None:
    if played.rotate is None:
        if played.outage is not None:
            raise typer.BadParameter("--outage needs --rotate: a Code that does not rotate is held as it is")
        return None
    if not _ROTATE_MIN <= played.rotate <= _ROTATE_MAX:
        raise typer.BadParameter("--rotate must be between 1m and 1d")
    rotation = Rotation(played.rotate, _OUTAGE_DEFAULT if played.outage is None else played.outage)
    held_count = line_count * (rotation.outage // rotation.every + 1)
    if held_count > _HELD_MAX:
        raise typer.BadParameter(
            f"this would hold {held_count} Codes; at most {_HELD_MAX}: give a longer --rotate or a shorter --outage"
        )
    return rotation


def _find_state_path(base_url: str, playout: Playout) -> Path:
    """Return the file of an agent that plays these Codes from this service."""
    names = " ".join([base_url, *sorted(line.name for line in playout.lines)])
    name = f"play-{hashlib.sha256(names.encode()).hexdigest()[:_NAME_CHARS]}.json"
    by_systemd = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if by_systemd:
        return Path(by_systemd) / name
    configured = Path(os.environ.get("XDG_STATE_HOME", ""))
    if configured.is_absolute():
        return configured / "soundmark" / name
    try:
        return Path.home() / ".local" / "state" / "soundmark" / name
    except RuntimeError:
        raise Refused("there is no home folder to keep the state in; give --state FILE") from None


def _make_output(sound: SoundOptions) -> Output:
    """Return where the sound goes. It is opened when there is something to play.

    Raises: typer.BadParameter; Refused; OutputEnded.
    """
    if sound.out is None:
        device = sound.device
        return Loudspeaker(int(device) if device is not None and device.isdecimal() else device, SystemClock())
    if sound.device is not None:
        raise typer.BadParameter("give either --device or --out")
    if sound.out == _STANDARD_OUTPUT:
        if sys.stdout is None:
            raise Refused("standard output is closed")
        if sys.stdout.isatty():
            raise typer.BadParameter("--out - writes samples, so give it a pipe or a file")
        return StreamOutput(lambda: os.dup(sys.stdout.fileno()), "standard output", SystemClock(), is_wav=False)
    path = Path(sound.out)
    if not path.exists() or path.is_file() or path.is_dir():  # A device or a named pipe is written to.
        check_free(path, force=sound.force)
    return make_file_output(path, SystemClock(), force=sound.force)
