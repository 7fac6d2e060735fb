"""What workloads say that must hold of a plan: of their parameters, and of each other. Pure.

In: workloads, unfolded, and their jobs. Out: nothing, or an error that says why they cannot run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError
from benchrunner.expressions import evaluate, names_of_expression, to_text
from benchrunner.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchrunner.definitions import Workload
    from benchrunner.model import Job


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
