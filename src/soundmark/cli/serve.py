"""`soundmark serve`: one component, configured by the environment."""

import asyncio
import importlib
import os
from typing import Annotated, Any, Final

import structlog
import typer

import soundmark
from soundmark import settings
from soundmark.cli import Refused
from soundmark.cli.deployment import read_settings
from soundmark.kit import log
from soundmark.kit.http.server.connection import ConnectionLimits
from soundmark.kit.http.server.serve import Listen, run
from soundmark.kit.http.server.sockets import CannotListen, reserve_port
from soundmark.kit.tracing.switch import recording_spans

app = typer.Typer(add_completion=False)
_log: Final = structlog.get_logger()

# Imported by name when it is served, so that a process loads no other component.
_FACTORIES: Final[dict[settings.Component, str]] = {
    "core": "soundmark.core.app",
    "audience": "soundmark.audience.app",
    "audio": "soundmark.audio.app",
    "console": "soundmark.console.app",
}
_PORTS: Final[dict[settings.Component, int]] = {"core": 8080, "audience": 8081, "audio": 8082, "console": 8083}


@app.command()
def serve(
    component: Annotated[settings.Component, typer.Argument(help="The component to serve.")],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Default: 8080 (core), 8081 (audience), 8082 (audio), 8083 (console)."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the port.")] = 1,
    beside_others: Annotated[bool, typer.Option("--beside-others", hidden=True)] = False,
) -> None:
    """Serve one component until Ctrl-C or SIGTERM, then finish the open requests.

    With SOUNDMARK_DRAIN_S, it serves for that long after the signal while `/readyz` answers 503, so that load balancers
    stop sending requests first. A second signal ends it at once.
    """
    given = read_settings(settings.COMPONENTS[component])
    log.configure(level=given.log_level, log_format=given.log_format, component=component)
    listen = Listen(host, port or _PORTS[component], given.metrics_port, given.metrics_host)
    try:
        if not beside_others:
            # Otherwise two deployments could share the port silently. Only workers of one deployment may share it.
            reserve_port(listen.host, listen.port).close()
            _require_metrics_port(listen)
            _warn_of_settings(given, workers)
        if workers > 1:
            # Imported only now, so that a serving process loads no supervisor.
            from soundmark.supervision.workers import run_workers  # noqa: PLC0415 - see above

            asyncio.run(run_workers(component, listen, workers, drain_s=given.drain_s))
        else:
            limits = ConnectionLimits(given.connections_max, given.connections_per_address, given.trusted_proxies)
            with recording_spans(f"soundmark-{component}", soundmark.__version__, os.environ):
                run(_make(component, given), listen, limits, drain_s=given.drain_s)
    except CannotListen as refusal:
        raise Refused(str(refusal)) from None


def _require_metrics_port(listen: Listen) -> None:
    """Raises: CannotListen."""
    if listen.metrics_port is None:
        return
    if listen.metrics_port == listen.port:
        raise CannotListen(f"SOUNDMARK_METRICS_PORT is {listen.port}, the port of the component itself; choose another")
    try:
        reserve_port(listen.metrics_host, listen.metrics_port).close()
    except CannotListen as refusal:
        raise CannotListen(f"{refusal}; SOUNDMARK_METRICS_PORT chooses another port") from None


def _warn_of_settings(given: settings.ServedSettings, workers: int) -> None:
    if settings.counts_limits_alone(given, workers):
        _log.warning("limits_not_shared", needed="SOUNDMARK_RATE_LIMIT_URL")
    if not isinstance(given, settings.ConsoleSettings):
        return
    if given.sign_in is None:
        _log.warning(
            "nobody_can_sign_in",
            needed="SOUNDMARK_OIDC_ISSUER, or SOUNDMARK_OPERATOR_TOKEN and SOUNDMARK_CONSOLE_TICKETS_PATH",
        )
    elif given.console_state_path is None and given.rate_limit_url is None:
        _log.warning("ended_sessions_not_shared", needed="SOUNDMARK_CONSOLE_STATE_PATH, or SOUNDMARK_RATE_LIMIT_URL")


def _make(component: settings.Component, given: Any) -> Any:
    return importlib.import_module(_FACTORIES[component]).create_app(given)
