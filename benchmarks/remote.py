"""``remote``: what a host over SSH costs beyond its commands. Real sshds on loopback.

A trial (sweeps of N and of 2N, as in ``overhead``), directly and over a line of 50 ms; the way from
the first packet to the first step; the controller of twenty hosts; fetching against ``sftp -r``.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import time
from itertools import count
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Target, number
from benchmarks.overhead import CATALOG, PROGRAM
from benchmarks.pairs import estimate, interleave
from benchmarks.processes import benchrunner
from benchmarks.remote_hosts import Finished, Hosts, SlowLine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.processes import Options

ROUND_TRIP_S = 0.05
HOSTS = 20
TRIALS_PER_HOST = 20
LARGE_BYTES = 1 << 30
QUICK_BYTES = 200 << 20
SMALL_FILES = 200
SMALL_BYTES = 16 << 10


def remote(options: Options) -> Iterator[Figure]:
    """All figures about hosts over SSH.

    Raises:
        RuntimeError: There is no sshd, or a sweep did not end as it should.
    """
    folder = options.directory / "remote"
    folder.mkdir()
    with Hosts(folder, 2 if options.quick else HOSTS) as hosts:
        write_catalog(folder / "catalog")
        yield from _trials(options, hosts)
        yield _first_step(options, hosts)
        yield from _many_hosts(options, hosts)
        yield _fetch(options, hosts)


def write_catalog(folder: Path) -> None:
    """The engine, tool and workload that do nothing."""
    for name, text in CATALOG.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class Sweeps:
    """Sweeps of trivial trials on hosts, each into a store of its own."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    def on(self, names: list[str], trials: int) -> tuple[Finished, float]:
        """A sweep of so many trials on each host; and when its first step started there.

        Raises:
            RuntimeError: Not every trial ended well.
        """
        data = self._hosts.folder / "data"
        places = ["--catalog", str(self._hosts.folder / "catalog"), "--data", str(data)]
        places += ["--cache", str(self._hosts.folder / "cache"), "--quiet", "--format", "none"]
        chosen = [word for name in names for word in ("--host", name)]
        argv = benchrunner("sweep", "trivial", *places, "--repeat", str(trials), *chosen)
        done = self._hosts.run(argv)
        with sqlite3.connect(data / "store.db") as store:
            # As the supervisor says: the journal's time is that of the decision to start.
            query = (
                "SELECT count(*), min(json_extract(status, '$.started_at')) FROM step_run "
                "WHERE state = 'ok'"
            )
            ended, started_at = store.execute(query).fetchone()
        store.close()
        if ended != trials * len(names):
            raise RuntimeError(f"{ended} of {trials * len(names)} trivial trials ended well")
        shutil.rmtree(data)
        return done, float(started_at)


def _trials(options: Options, hosts: Hosts) -> Iterator[Figure]:
    """What one more trial takes beyond its command: directly, over the slow line, in round trips.

    The slow line's sweep and the direct one's make a pair: what differs is round trips alone.
    """
    trials = 5 if options.quick else 20
    sweeps, numbers = Sweeps(hosts), count()
    line = SlowLine(hosts.ports[0], ROUND_TRIP_S)
    hosts.define("far", line.port)

    def slope_s(name: str) -> float:
        sizes = [trials, 2 * trials] if next(numbers) % 2 else [2 * trials, trials]
        taken = {size: sweeps.on([name], size)[0].wall_s for size in sizes}
        return (taken[2 * trials] - taken[trials]) / trials

    pairs = interleave(lambda: slope_s("far"), lambda: slope_s("host1"), options.count(6))
    line.close()
    bare_s = _bare_s()
    note = f"sweeps of {trials} and {2 * trials}; the command {number(bare_s * 1000)} ms"
    for name, slopes, round_trip_s in (("0", pairs.bare, 0.0), ("50", pairs.ours, ROUND_TRIP_S)):
        over = estimate([slope - bare_s for slope in slopes]).scaled(1000)
        target = Target(at_most=3000 * round_trip_s + 50)
        yield Figure(f"remote trial, {name} ms", over, "ms/trial", target, note=note)
    trips = [difference / ROUND_TRIP_S for difference in _differences(pairs.ours, pairs.bare)]
    yield Figure("remote trial, waits", estimate(trips), "round trips", Target(at_most=3),
                 note="what 50 ms add to a trial, over 50 ms")  # fmt: skip


def _differences(ours: tuple[float, ...], bare: tuple[float, ...]) -> list[float]:
    return [a - b for a, b in zip(ours, bare, strict=True)]


def _bare_s() -> float:
    """Wall time of the command alone."""
    taken = []
    for _ in range(51):
        began = time.perf_counter()
        subprocess.run([PROGRAM, "--ops_per_sec=42"], check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - began)
    return estimate(taken).median


def _first_step(options: Options, hosts: Hosts) -> Figure:
    """From the first connection to a prepared host until the first step started there.

    What the controller does before it connects (Python, planning) is in no figure of a network.
    """
    sweeps = Sweeps(hosts)
    line = SlowLine(hosts.ports[0], 0.0)
    hosts.define("near", line.port)

    def ours_s() -> float:
        del line.accepted_at[:]
        _, started_at = sweeps.on(["near"], 1)
        return started_at - line.accepted_at[0]

    def bare_s() -> float:
        return hosts.run([*hosts.client("ssh", hosts.ports[0]), "127.0.0.1", "true"]).wall_s

    pairs = interleave(ours_s, bare_s, options.count(12))
    line.close()
    return Figure(
        "remote first step", estimate(pairs.ours), "s", Target(at_most=1), pairs.ratio,
        "ssh HOST true", "from the first connection on, at 0 ms",
    )  # fmt: skip


def _many_hosts(options: Options, hosts: Hosts) -> Iterator[Figure]:
    """What the controller of many hosts uses."""
    names = [f"host{place}" for place in range(1, len(hosts.ports) + 1)]
    sweeps = Sweeps(hosts)
    sweeps.on(names, 1)
    done = [sweeps.on(names, TRIALS_PER_HOST)[0] for _ in range(options.count(6, 1))]
    rate = estimate([len(names) * TRIALS_PER_HOST / one.wall_s for one in done]).median
    note = f"{len(names)} hosts x {TRIALS_PER_HOST} trials, none lost; {number(rate)} trials/s"
    yield Figure("remote many hosts, CPU", estimate([one.cpu_s / one.wall_s for one in done]),
                 "cores", Target(at_most=1), note=note)  # fmt: skip
    yield Figure("remote many hosts, RSS", estimate([one.rss_mib for one in done]), "MiB",
                 Target(at_most=250))  # fmt: skip


def _fetch(options: Options, hosts: Hosts) -> Figure:
    """Bytes/s of a run folder that comes from a host, over those of ``sftp -r``."""
    from benchrunner.definitions import Host
    from benchrunner.transports.ssh import connect

    source, target = hosts.folder / "run", hosts.folder / "fetched"
    size = QUICK_BYTES if options.quick else LARGE_BYTES
    _make_run_folder(source, size)
    host = Host(name="host1", address=f"127.0.0.1:{hosts.ports[0]}", agent=False,
                key_files=[str(hosts.key_file)])  # fmt: skip
    empty = hosts.folder / "empty"
    empty.write_text("")
    transport = connect(host, known_hosts=hosts.known_hosts, config=empty)
    argv = [*hosts.client("sftp", hosts.ports[0]), "-q", "-r", f"127.0.0.1:{source}", str(target)]

    def fetched_mib_s(fetch: str) -> float:
        began = time.perf_counter()
        if fetch == "ours":
            transport.get(str(source), target)
        else:
            hosts.run(argv)
        taken_s = time.perf_counter() - began
        if (target / "stdout").stat().st_size != size:
            raise RuntimeError(f"{fetch}: not all of the run folder came")
        shutil.rmtree(target)
        return size / 2**20 / taken_s

    try:
        pairs = interleave(
            lambda: fetched_mib_s("ours"), lambda: fetched_mib_s("sftp"), options.count(6)
        )
    finally:
        transport.close()
        shutil.rmtree(source)
    rates = " and ".join(number(estimate(side).median) for side in (pairs.ours, pairs.bare))
    return Figure(
        "remote fetch", pairs.ratio, "of sftp -r", Target(at_least=0.6),
        note=f"{rates} MiB/s; {size >> 20} MiB and {SMALL_FILES} small files, checked by SHA-256",
    )  # fmt: skip


def _make_run_folder(folder: Path, size: int) -> None:
    """One large file that does not compress, and many small ones."""
    folder.mkdir()
    block = os.urandom(1 << 20)
    with (folder / "stdout").open("wb") as file:
        for _ in range(size >> 20):
            file.write(block)
    for place in range(SMALL_FILES):
        (folder / f"small-{place}").write_bytes(block[:SMALL_BYTES])
