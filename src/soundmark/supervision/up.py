"""The work of `soundmark up`: run everything on this machine, starting from an empty folder, and stop it again."""

import asyncio
import contextlib
import functools
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import psycopg

from soundmark import settings
from soundmark.embedded.cluster_location import Home, find_home, make_home
from soundmark.embedded.installation import (
    NoPostgres,
    can_serve,
    find_chosen_programs,
    find_programs,
    version_of,
    where_installed,
)
from soundmark.embedded.postgres import STOP_TIMEOUT_S, Cluster, ClusterFailed
from soundmark.kit.clock import Clock, SystemClock
from soundmark.kit.crypto.entropy import Entropy, SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server.sockets import CannotListen
from soundmark.kit.postgres.schema_version import is_current
from soundmark.kit.postgres.sessions import CONNECT_TIMEOUT_S
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.settings import SettingsInvalid
from soundmark.kit.text.ids import mint_secret
from soundmark.operating_system.files import make_private_folder
from soundmark.operating_system.one_time_tickets import make_ticket_folder, remove_ticket_folder
from soundmark.operating_system.os_user import OsUser
from soundmark.operating_system.signals import until_signalled
from soundmark.settings import Component
from soundmark.supervision import data_dir
from soundmark.supervision.cells_file import CellsMissing, find_cells_file, require_all_cells, write_cells
from soundmark.supervision.forking import ForkServer
from soundmark.supervision.plan import (
    SANDBOX,
    Options,
    Plan,
    Ports,
    SettingGiven,
    Unit,
    audience_credential,
    check,
    choose_console_host,
    choose_operator_token,
    component_of,
    foreign_environ,
    name_databases,
    read_given_settings,
)
from soundmark.supervision.ports import hold_ports, require_unreserved_ports
from soundmark.supervision.readiness import NotReady, Probe, readyz_probe, until_ready
from soundmark.supervision.reloading import CannotReload, require_watcher, restart_what_changes, write_environments
from soundmark.supervision.sign_in_link import console_state_folder, tickets_folder
from soundmark.supervision.supervisor import Program, Supervisor, soundmark, spawn

_POSTGRES: Final = "PostgreSQL"
_WITHOUT_DATABASE: Final[tuple[Component, ...]] = ("audio", "console")


class RootRefused(Exception):
    """Only root could run the components, and the caller has not allowed it; the message is one line for the user."""


class MigrationRefused(Exception):
    """A database could not be brought to the current schema; the process that tried has printed the reason."""


# The message of each is one line for the user; each leaves nothing running.
Refusal = (
    CannotListen,
    CannotReload,
    CellsMissing,
    ClusterFailed,
    MigrationRefused,
    NoPostgres,
    NotReady,
    RootRefused,
    SettingGiven,
    SettingsInvalid,
    data_dir.DataDirRefused,
)


@dataclass(frozen=True, slots=True)
class Postgres:
    """The PostgreSQL in use: the folder of its programs, its version, and whether it is the bundled one."""

    folder: Path
    version: int
    is_bundled: bool


@dataclass(frozen=True, slots=True)
class Reports:
    """The functions that report to the caller.

    `doing` is called with what begins, in a few words, `ready` once, when everything answers, `demo_failed` if the demo
    fails, and `stopping` at a signal.
    """

    doing: Callable[[str], None]

    ready: Callable[[Plan, Home, Postgres], None]
    demo_failed: Callable[[int], None]
    stopping: Callable[[], None]


async def run(options: Options, tell: Reports, *, demo: bool, reload: bool = False) -> None:
    """Run everything until SIGINT, SIGTERM or SIGHUP, then stop it in order.

    If `demo`, the demo runs once when everything is ready; serving continues whether or not it succeeds. If `reload`,
    the processes whose source changes are restarted.

    Raises: one of `Refusal`.
    """
    if reload:
        require_watcher()
    given = read_given_settings(os.environ, options.sandbox)
    data_dir.make_data_dir(options.data_dir)
    clock, entropy = SystemClock(), SystemEntropy()
    with data_dir.take_turn(options.data_dir) as turn, until_signalled():
        data_dir.remove_up_file(options.data_dir)
        console_host = choose_console_host(options, given)
        before = data_dir.find_console_port(options.data_dir)
        with hold_ports(
            options, console_host, clock, after_crash=turn.after_crash, console_port_before=before
        ) as ports:
            data_dir.keep_console_port(options.data_dir, ports.serving["console"])
            home = find_home(options.data_dir)
            postgres, user = await asyncio.gather(
                asyncio.to_thread(_find_postgres, home.user), asyncio.to_thread(_serving_user, home, options)
            )
            if user is not None:
                require_unreserved_ports(options, console_host, user)
            cluster = Cluster(home.path, home.user, postgres.folder)
            cluster.require_major(postgres.version)
            plan = _plan(options, ports, given, cluster, entropy)
            tickets = tickets_folder(home, options.data_dir)
            state = console_state_folder(home, options.data_dir)
            tickets_if_used = tickets if plan.can_operator_sign_in else None
            plan = replace(plan, user=user, tickets=tickets_if_used, console_state=state)
            cells_file = find_cells_file(options.data_dir)
            require_all_cells(cells_file, options.cells_count)
            make_home(home, options.data_dir)
            plan = _with_cells_file(plan, cells_file)
            check(plan)
            _prepare_tickets(tickets, plan)
            make_private_folder(state, plan.user)
            # A fork has the source as it was when the fork server imported it.
            fork_server = ForkServer(plan.user, foreign_environ(), is_used=not reload)
            async with _supervise(options.data_dir, clock, tell, fork_server) as supervisor:
                plan = await _bring_up(plan, cluster, supervisor, clock, entropy, tell.doing)
                data_dir.write_up_file(options.data_dir, _up_file(plan))
                tell.ready(plan, home, postgres)
                # It would keep memory that no other process shares: what each of them has written to since.
                await supervisor.until_started()
                await fork_server.close()
                if demo and (status := await _finish(_demo(options.data_dir))):
                    tell.demo_failed(status)
                if reload:
                    write_environments(plan, options.data_dir)
                    await restart_what_changes(supervisor)
                await asyncio.get_running_loop().create_future()


def _find_postgres(user: OsUser | None) -> Postgres:
    """Return the PostgreSQL that the environment chooses, or else the bundled one."""
    chosen = settings.read(settings.UpSettings, os.environ).postgres_bin
    folder = find_programs(user) if chosen is None else find_chosen_programs(chosen, user)
    return Postgres(folder, version_of(folder, user), is_bundled=chosen is None)


def _serving_user(home: Home, options: Options) -> OsUser | None:
    """Return the user for everything but PostgreSQL: the same one, or None (ourselves).

    Root itself serves only if that user cannot run the installation and the caller allows it.

    Raises: RootRefused.
    """
    if home.user is None or can_serve(home.user, foreign_environ()):
        return home.user
    if options.serve_as_root:
        return None
    raise RootRefused(
        f"the user {home.user.name} cannot read the installation {where_installed()}, and Soundmark does not serve "
        f"as root by default: run `up` as an ordinary user, install Soundmark where every user can read it, such as "
        f"in /opt, or pass --serve-as-root"
    )


def _plan(options: Options, ports: Ports, given: Mapping[str, str], cluster: Cluster, entropy: Entropy) -> Plan:
    """Return the plan, with placeholders for the URLs of the databases, which do not exist yet."""
    key = data_dir.master_key(
        options.data_dir, given=given.get("MASTER_KEY"), cluster_exists=cluster.exists(), entropy=entropy
    )
    return Plan(
        options=options,
        ports=ports,
        given=given,
        credentials={"audience": audience_credential(key, entropy), "audio": Secret(mint_secret(entropy, ""))},
        operator_token=choose_operator_token(given, entropy),
        master_key=key,
        database_urls={
            unit: Secret(f"postgresql://{name}@127.0.0.1:{ports.postgres}/{name}")
            for unit, name in name_databases(options.cells_count).items()
        },
    )


def _with_cells_file(plan: Plan, cells_file: Path) -> Plan:
    """Write the file of cells for Core, if there are several; return the plan with it."""
    if plan.options.cells_count == 1:
        return plan
    write_cells(cells_file, plan.describe_cells(), plan.user)
    return replace(plan, cells_file=cells_file)


def _prepare_tickets(folder: Path, plan: Plan) -> None:
    """Make an empty folder of tickets, or remove that of an earlier run if nobody signs in with one."""
    if plan.tickets is None:
        remove_ticket_folder(folder)
    else:
        make_ticket_folder(folder, plan.user)


async def _bring_up(
    plan: Plan,
    cluster: Cluster,
    supervisor: Supervisor,
    clock: Clock,
    entropy: Entropy,
    doing: Callable[[str], None],
) -> Plan:
    """Start each process as soon as possible; when all are ready, return the plan with the real database URLs."""
    port = plan.ports.postgres
    for component in _WITHOUT_DATABASE:
        supervisor.keep(plan.serving(component))
    probes: dict[str, Probe] = {unit: readyz_probe(plan.address(unit)) for unit in plan.units()}
    if plan.sandbox_url is not None:
        supervisor.keep(plan.sandboxing())
        probes[SANDBOX] = readyz_probe(plan.sandbox_url)
    doing("Starting PostgreSQL" if cluster.exists() else "Making the database cluster, once for this data dir")
    await asyncio.to_thread(cluster.prepare, entropy)
    doing("Starting PostgreSQL")
    supervisor.keep(_postgres(cluster, plan))
    await until_ready(supervisor, clock, {_POSTGRES: functools.partial(cluster.is_answering, port)})
    databases = name_databases(plan.options.cells_count)
    urls = await asyncio.to_thread(
        lambda: {unit: cluster.ensure_database(port, name, entropy) for unit, name in databases.items()}
    )
    plan = replace(plan, database_urls=urls)
    doing("Bringing the databases to the current schema")
    await asyncio.gather(*(_migrate(plan, unit) for unit in databases))
    doing("Starting the components")
    for unit in databases:
        supervisor.keep(plan.serving(unit))
    await until_ready(supervisor, clock, probes)
    # The workers come last: nobody waits for them, and their start would slow down the other processes.
    for unit in databases:
        supervisor.keep(plan.working(unit))
    return plan


def _postgres(cluster: Cluster, plan: Plan) -> Program:
    options = cluster.process_options()
    return Program(
        _POSTGRES,
        cluster.command(plan.ports.postgres),
        options["env"],
        # Fast shutdown: disconnect all clients, write a checkpoint, end.
        stop_signal=signal.SIGINT,
        grace_s=STOP_TIMEOUT_S,
        user=cluster.user,
        errors=plan.options.data_dir / "postgresql-start.log",
        before_start=cluster.clear_left_process,
    )


async def _migrate(plan: Plan, unit: Unit) -> None:
    """Bring a database to the current schema, in a separate process, unless it already has it."""
    url = plan.database_urls[unit].reveal()
    async with await psycopg.AsyncConnection.connect(
        url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S
    ) as connection:
        if await is_current(Tx(connection), f"soundmark.{component_of(unit)}"):
            return
    if await _finish(plan.migrating(unit)):
        raise MigrationRefused(f"the database of {unit} could not be brought to the current schema")


def _demo(directory: Path) -> Program:
    argv = soundmark("demo", "--up-file", str(directory / data_dir.UP_FILE))
    return Program("demo", argv, foreign_environ())


async def _finish(program: Program) -> int:
    """Run `program` to its end, and return its exit status."""
    process = await spawn(program)
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.send_signal(program.stop_signal)
            await process.wait()


def _up_file(plan: Plan) -> dict[str, Any]:
    return {
        "metrics_urls": {component: plan.metrics_url(component) for component in plan.ports.metrics},
        "base_url": plan.address("core"),
        "audience_url": plan.address("audience"),
        "audio_url": plan.address("audio"),
        "console_url": plan.address("console"),
        "operator_token": plan.operator_token.reveal(),
        "core_database_url": plan.database_urls["core"].reveal(),
        "audience_database_url": plan.database_urls["audience"].reveal(),
        "cells": [
            {
                "name": name,
                "audience_url": plan.address(unit),
                "audience_database_url": plan.database_urls[unit].reveal(),
            }
            for name, unit in plan.cells().items()
        ],
        **({} if plan.cells_file is None else {"audience_cells_file": str(plan.cells_file)}),
        "pid": os.getpid(),
        **({} if plan.sandbox_url is None else {"sandbox_url": plan.sandbox_url}),
    }


@contextlib.asynccontextmanager
async def _supervise(
    directory: Path, clock: Clock, tell: Reports, fork_server: ForkServer
) -> AsyncIterator[Supervisor]:
    """Yield a supervisor; stop its programs at the end of the block, whatever ends it."""
    supervisor = Supervisor(clock, fork_server.start)
    try:
        yield supervisor
    except asyncio.CancelledError:
        tell.stopping()
        raise
    finally:
        data_dir.remove_up_file(directory)
        # The database is stopped last, because the others still write to it while they finish.
        await supervisor.stop(name for name in supervisor.names() if name != _POSTGRES)
        await supervisor.stop(supervisor.names())
        await fork_server.close()
