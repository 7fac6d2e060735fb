"""What must hold of a plan: of what a sweep names, of parameters, of workloads together. Pure.

In: a sweep, workloads, unfolded, and their jobs. Out: nothing, or an error that says what is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError
from benchrunner.expressions import evaluate, names_of_expression, to_text
from benchrunner.params import check_parameter
from benchrunner.plan_cells import CELL_KEYS
from benchrunner.plan_cost import step_threads
from benchrunner.suggest import did_you_mean, listed
from benchrunner.unfolding import used_services

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.definitions import Sweep, Workload
    from benchrunner.model import Job
    from benchrunner.plan_cells import Definitions


def check_parameters(workload: Workload, job: Job) -> None:
    """Makes sure that a job's parameters are such as its workload can run with.

    Raises:
        ConfigurationError: They are not; says what goes wrong.
    """
    for check in workload.check:
        if not evaluate(check.that, job.params, where=f"check of {workload.name}"):
            used = sorted(names_of_expression(check.that))
            values = ", ".join(f"{name}={to_text(job.params[name])}" for name in used)
            raise ConfigurationError(
                f"{workload.name} cannot run with {values}: {check.why}", f"choose {check.that}"
            )


def check_places(workloads: Sequence[Workload]) -> None:
    """Makes sure that the databases of one sweep lie in one place on a host.

    Raises:
        ConfigurationError: Some lie in memory and some do not.
    """
    inside = [one.name for one in workloads if one.data_on == "memory"]
    outside = [one.name for one in workloads if one.data_on != "memory"]
    if inside and outside:
        raise ConfigurationError(
            f"databases of {', '.join(inside)} lie in memory, those of {', '.join(outside)} do not",
            "two sweeps, one after the other",
        )


def check_groups(only: Sequence[str], workloads: Sequence[Workload]) -> None:
    """Makes sure that what ``--only`` names are groups of steps.

    Raises:
        ConfigurationError: There is none of that name.
    """
    known = list(dict.fromkeys(name for workload in workloads for name in workload.groups))
    where = ", ".join(workload.name for workload in workloads)
    for name in only:
        if not known:
            raise ConfigurationError(
                f"--only {name}: {where} has no groups of steps", "leave --only out"
            )
        if name not in known:
            raise ConfigurationError(
                f"--only: {where} has no group {name!r}{did_you_mean(name, known)}",
                f"--only {','.join(known)}",
            )


def check_threads(workload: Workload, job: Job, definitions: Definitions) -> None:
    """Makes sure that no program is asked for more threads than it can make.

    Raises:
        ConfigurationError: One is; says which step asks.
    """
    for step in workload.steps:
        most = definitions.tool(step.tool).max_threads
        threads = step_threads(step, workload, job.params)
        if most is not None and threads > most:
            raise ConfigurationError(
                f"step {step.name} of {workload.name} asks for {threads:g} threads, and "
                f"{step.tool} can make {most}",
                f"at most {most}",
            )


def check_server(sweep: Sweep, jobs: Sequence[Job], definitions: Definitions) -> None:
    """Makes sure that the host of ``--server`` can run what services there are, for one client.

    Raises:
        ConfigurationError: It cannot, is the client itself, or there are none.
    """
    if sweep.server is None:
        return
    where, server = f"--server {sweep.server}", definitions.host(sweep.server)
    if "server" not in server.roles:
        raise ConfigurationError(
            f"{where}: that host is no server (roles: {', '.join(server.roles) or 'none'})",
            f'roles = ["client", "server"] in hosts/{sweep.server}.toml, or another --server',
        )
    if sweep.server in sweep.hosts:
        raise ConfigurationError(
            f"{where}: that host runs the clients (--host), and the server is another one",
            "leave --server out: services then run beside their clients",
        )
    if len(sweep.hosts) > 1:
        raise ConfigurationError(
            f"{where}: a server has one client host, and here are {', '.join(sweep.hosts)}",
            f"a sweep for each: --host {sweep.hosts[0]} --server {sweep.server}",
        )
    served = [job for job in jobs if job.server]
    if not served:
        chosen = f" (--only {','.join(sweep.only)})" if sweep.only else ""
        raise ConfigurationError(
            f"{where}: no step of {', '.join(sweep.workloads)}{chosen} needs a service",
            "leave --server out",
        )
    for job in served:
        _check_programs(job, definitions)


def _check_programs(job: Job, definitions: Definitions) -> None:
    """Services on another host are programs that are installed there: builds are the client's."""
    workload = definitions.workload(job.workload)
    used = used_services(workload, job.steps)
    for service in workload.services:
        if service.name in used and not definitions.tool(service.tool).is_free:
            raise ConfigurationError(
                f"--server {job.server}: service {service.name} of {job.workload} is a program of "
                "the engine's build, which is made for the client's host",
                "leave --server out",
            )


def check_sweep(
    sweep: Sweep, workloads: Sequence[Workload], ceilings: Sequence[tuple[Workload, str]]
) -> None:
    """Makes sure that what a sweep names is there in its workloads and their ceilings.

    Raises:
        ConfigurationError: A parameter, engine, group, axis or variant is not.
    """
    params = {name: None for workload in workloads for name in workload.params}
    settable = params | {name: None for workload, _ in ceilings for name in workload.params}
    for name in sweep.set:
        check_parameter(name, settable, where=f"--set {name}")
    _check_engines(sweep, workloads)
    check_groups(sweep.only, workloads)
    for name, values in sweep.axes.items():
        check_parameter(name, params, where=f"axis {name}")
        if not values:
            raise ConfigurationError(f"axis {name} has no values", f"{name} = [1, 2]")
    for cell in sweep.exclude:
        for key in cell:
            check_parameter(key, {**dict.fromkeys(CELL_KEYS), **params}, where="exclude")
    variants = {variant.name for workload in workloads for variant in workload.variants}
    for name in sweep.variants:
        if name not in variants:
            names = ", ".join(workload.name for workload in workloads)
            raise ConfigurationError(
                f"there is no variant {name!r} in {names}{did_you_mean(name, variants)}",
                f"--variants {listed(variants)}",
            )


def _check_engines(sweep: Sweep, workloads: Sequence[Workload]) -> None:
    """Engines of a sweep are engines of a workload of it, where one has several."""
    if not any(workload.engines for workload in workloads):
        return
    known = {name for one in workloads for name in (one.engine, *one.engines) if name}
    for name in sweep.engines:
        if name not in known:
            where = ", ".join(workload.name for workload in workloads)
            raise ConfigurationError(
                f"{where} has no engine {name!r}{did_you_mean(name, known)}", listed(known)
            )
