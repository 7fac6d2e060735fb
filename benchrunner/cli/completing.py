"""What a shell may put where Tab is pressed: names that the catalog has.

In: what stands on the command line so far. Out: words. It says nothing and raises nothing: a shell
has no place for a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchrunner.errors import BenchrunnerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    from benchrunner.catalog import Catalog
    from benchrunner.definitions import Workload

    Completer = Callable[[click.Context, click.Parameter, str], list[str]]
    Words = Callable[[Catalog, click.Context], Iterable[str]]


def _completer(words: Words) -> Completer:
    """The words that begin like the one at the cursor; in a list, like the last one."""

    def complete(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
        from benchrunner.catalog import Catalog

        before, comma, last = typed.rpartition(",")
        try:
            known = list(words(Catalog(context.params.get("catalog")), context))
        except BenchrunnerError:
            return []
        return [f"{before}{comma}{word}" for word in known if word.startswith(last)]

    return complete


def names(*kinds: str) -> Completer:
    """Names of definitions: ``workloads``, ``hosts``, ..."""
    return _completer(lambda catalog, _: [name for kind in kinds for name in catalog.names(kind)])


def of_workload(words: Callable[[Workload], Iterable[str]]) -> Completer:
    """Words of the workload that stands on the command line already."""

    def chosen(catalog: Catalog, context: click.Context) -> Iterable[str]:
        # An option that still lacks its value keeps click from naming the arguments before it.
        workload: Any = context.params.get("workload") or next(iter(context.args), None)
        return words(catalog.workload(workload)) if workload else ()

    return _completer(chosen)


workloads = names("workloads", "sweeps")
pages = names("workloads")
engines = names("engines")
tools = names("tools")
hosts = names("hosts")
metrics = _completer(lambda catalog, _: sorted(catalog.metrics()))
variants = of_workload(lambda workload: [variant.name for variant in workload.variants])
scales = of_workload(lambda workload: workload.scale)
rivals = of_workload(lambda workload: workload.engines)
"""The engines that a workload compares."""
