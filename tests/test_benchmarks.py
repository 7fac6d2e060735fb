"""The statistics that benchmarks rest on, the logs they make, and one benchmark for real."""

from __future__ import annotations

import itertools
import json
import math
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.figures import Figure, Target, machine
from benchmarks.pairs import Pairs, estimate, interleave
from benchmarks.parsing import LOGS
from benchmarks.perturbation import own_memory, own_share
from benchmarks.processes import python
from benchmarks.remote import Sweeps, write_catalog
from benchmarks.remote_hosts import Hosts, SlowLine
from benchmarks.toggled import SETTLING_S, paired, toggle
from benchrunner.parse import parse_output

ROOT = Path(__file__).parents[1]
FIGURES = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=40)


# ------------------------------------------------------------------ statistics


def test_neighbouring_seconds_make_pairs_and_each_side_goes_first_as_often() -> None:
    watched = [True, False, False, True, True, False, False, True, True, False]
    rates = [float(second) for second in range(10)]
    pairs = paired(watched, rates)
    assert SETTLING_S == 2
    assert pairs == Pairs(ours=(3.0, 4.0, 7.0, 8.0), bare=(2.0, 5.0, 6.0, 9.0))
    assert paired(watched, rates[:5]).ours == (3.0,)  # the last second has no neighbour
    stalled = [*rates[:4], 0.0, *rates[5:]]
    assert paired(watched, stalled).ours == (3.0, 7.0, 8.0)  # no quotient with nothing


@pytest.mark.parametrize("seconds", [8, 9, 10, 11])
def test_a_run_that_ends_while_its_supervisor_is_stopped_is_seen(
    tmp_path: Path, seconds: int
) -> None:
    """One of these numbers of seconds ends in an unwatched one, whichever it is that counts."""
    report = tmp_path / "report.csv"
    run = 'sleep 0.05; for i in $(seq "$1"); do echo "$i,5" >>"$0"; sleep 0.1; done'
    report.write_text("secs_elapsed,interval_qps\n")
    watching = ["sh", "-c", 'sh -c "$1" "$2" "$3" & wait $!', "sh", run, str(report), str(seconds)]
    pairs = toggle(subprocess.Popen(watching), report)
    assert set(pairs.ours) == set(pairs.bare) == {5.0}


@pytest.mark.parametrize("count", range(6, 15))
def test_the_interval_misses_the_median_as_rarely_as_it_says_and_no_narrower_one_does(
    count: int,
) -> None:
    """Exactly: of values around a median each is above or below it with equal chance."""
    missed = narrower_missed = 0
    for signs in itertools.product((-1, 1), repeat=count):
        values = sorted(float(sign * (index + 1)) for index, sign in enumerate(signs))
        found = estimate(values)
        missed += not found.low <= 0 <= found.high
        place = values.index(found.low) + 1
        narrower_missed += not values[place] <= 0 <= values[count - 1 - place]
    assert missed / 2**count == pytest.approx(1 - (estimate(range(count)).confidence or 0))
    assert missed / 2**count <= 0.05
    assert narrower_missed / 2**count > 0.05


@pytest.mark.parametrize(
    ("count", "low", "high"), [(6, 0, 5), (9, 1, 7), (12, 2, 9), (20, 5, 14), (41, 13, 27)]
)
def test_intervals_are_those_of_the_tables(count: int, low: int, high: int) -> None:
    found = estimate(range(count))
    assert (found.low, found.high) == (low, high)


@given(FIGURES)
def test_an_estimate_lies_in_order_within_its_values(values: list[float]) -> None:
    found = estimate(values)
    assert min(values) <= found.low <= found.median <= found.high <= max(values)
    assert found.median == statistics.median(values)
    assert found.count == len(values)
    assert (found.confidence is None) == (len(values) < 6)
    assert found.confidence is None or found.confidence >= 0.95


@given(FIGURES, st.floats(0.01, 100))
def test_an_estimate_in_another_unit_is_that_of_the_scaled_values(
    values: list[float], factor: float
) -> None:
    found, scaled = estimate(values).scaled(factor), estimate([v * factor for v in values])
    for name in ("median", "low", "high"):
        assert math.isclose(getattr(found, name), getattr(scaled, name), rel_tol=1e-12)


@given(st.lists(st.tuples(st.floats(0.1, 1e3), st.floats(0.1, 1e3)), min_size=1))
def test_ratios_are_taken_pair_by_pair(pairs: list[tuple[float, float]]) -> None:
    found = Pairs(tuple(a for a, _ in pairs), tuple(b for _, b in pairs))
    assert found.ratio.median == statistics.median(a / b for a, b in pairs)
    assert found.difference.median == statistics.median(a - b for a, b in pairs)


@given(st.integers(0, 20))
def test_sides_alternate_so_that_a_steady_drift_cancels(count: int) -> None:
    clock = itertools.count()
    order: list[str] = []

    def side(name: str) -> float:
        order.append(name)
        return float(next(clock))

    pairs = interleave(lambda: side("A"), lambda: side("B"), 2 * count)
    assert "".join(order) == "AB" + "ABBA" * count
    assert sum(pairs.ours) == sum(pairs.bare)


# ------------------------------------------------------------------ rows


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([79.0] * 6, "met"),
        ([81.0] * 6, "missed"),
        ([70.0] * 5 + [90.0] * 4, "met by the median, not by the whole interval"),
        ([70.0] * 4 + [90.0] * 5, "missed by the median, not by the whole interval"),
        ([70.0] * 5, "too few pairs to say"),
        ([70.0], "met"),
    ],
)
def test_verdicts(values: list[float], verdict: str) -> None:
    assert Target(at_most=80).verdict(estimate(values)) == verdict


def test_an_interval_around_a_narrow_target_decides_nothing() -> None:
    ratios = estimate([0.90, 0.95, 0.97, 1.02, 1.05, 1.1, 1.2])
    assert Target(0.995, 1.005).verdict(ratios) == "missed by the median, not by the whole interval"
    assert Target(0.8, 0.85).verdict(ratios) == Target(1.3, 1.4).verdict(ratios) == "missed"


def test_a_row_says_everything_on_one_line() -> None:
    found = Figure(
        "help", estimate([60.0, 61.0, 62.0, 63.0, 64.0, 65.5]), "ms", Target(at_most=80),
        estimate([5.0, 5.25]), "python -c pass", "a note",
    )  # fmt: skip
    assert " ".join(found.row().split()) == (
        "help 62.5 [60, 65.5] ms ratio 5.125 [5 .. 5.25] to python -c pass (a note) "
        "target <= 80 ms: met"
    )
    assert found.data()["verdict"] == "met"
    assert Figure("size", estimate([3.0]), "MiB").row().split() == [
        "size",
        "3",
        "MiB",
        "no",
        "target",
    ]


def test_targets_say_which_way_is_good() -> None:
    assert Target(at_least=50_000).text("measurements/s") == ">= 50,000 measurements/s"
    assert Target(0.995, 1.005).text("") == "0.995 to 1.005"


def test_the_machine_is_named(tmp_path: Path) -> None:
    line = machine(tmp_path)
    for word in ("processors", "GiB", "Linux", "Python", str(tmp_path), "load"):
        assert word in line


# ------------------------------------------------------------------ what is measured


@pytest.mark.parametrize("name", LOGS)
def test_made_logs_read_like_the_run_they_are_made_of(name: str, tmp_path: Path) -> None:
    pieces = LOGS[name]()
    end = next(pieces)
    log = tmp_path / "log"
    log.write_text("".join(itertools.islice(pieces, 20)) + end, encoding="utf-8", newline="")
    parsed = parse_output("db_bench", log)
    found = {(m.phase, m.metric) for m in parsed.measurements}
    phase = "readwhilewriting" if name == "progress" else "fillrandom"
    assert {(phase, "ops_per_sec"), (phase, "p99_us")} <= found
    assert not parsed.problems
    assert len(parsed.series.get("ops_per_sec", ())) == (0 if name == "progress" else 19)


def test_the_supervisors_cost_comes_from_its_status() -> None:
    used = {"user_s": 0.001, "sys_s": 0.003, "maxrss_kib": 2048}
    statuses = [{"supervisor": used, "wall_s": 8.0}] * 6
    share = own_share("CPU", statuses, Target(at_most=0.1))
    assert share.value.median == pytest.approx(0.05)
    assert share.row().endswith("(8 s, one sample per second)  target <= 0.1 % of a core: met")
    assert own_memory(statuses).value.median == 2.0


def test_a_slow_line_takes_its_time_and_loses_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = SlowLine(server.getsockname()[1], 0.1)
        with socket.create_connection(("127.0.0.1", line.port)) as near:
            far, _ = server.accept()
            sent = bytes(range(256)) * 4000
            began = time.monotonic()
            near.sendall(sent)
            near.shutdown(socket.SHUT_WR)
            with far, far.makefile("rb") as arriving:
                assert arriving.read() == sent
                assert time.monotonic() - began >= 0.05
                far.sendall(b"thanks")
            with near.makefile("rb") as arriving:
                assert arriving.read() == b"thanks"
        line.close()
    assert len(line.accepted_at) == 1


def test_a_process_says_what_it_used_and_why_it_failed(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, 0)
    script = "import os, pathlib; print(pathlib.Path.home()); bytes(50 << 20)"
    done = hosts.run(python(script))
    assert done.stdout == f"{tmp_path}/home\n"
    assert done.rss_mib > 50
    assert done.cpu_s > 0
    with pytest.raises(RuntimeError, match="ended with 3: no luck"):
        hosts.run(python("print('no luck'); raise SystemExit(3)"))


@pytest.mark.ssh
def test_a_trial_on_a_host_is_measured_for_real(tmp_path: Path) -> None:
    with Hosts(tmp_path, 2) as hosts:
        write_catalog(hosts.folder / "catalog")
        done, started_at = Sweeps(hosts).on(["host1", "host2"], 1)
        assert 0 < time.time() - started_at < done.wall_s + 60
        with pytest.raises(RuntimeError, match="there is no host 'host3'"):
            Sweeps(hosts).on(["host3"], 1)


def test_without_sshd_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.remote_hosts._SSHD", None)
    with pytest.raises(RuntimeError, match="there is no sshd: apt-get install -y openssh-server"):
        Hosts(tmp_path, 1)


# ------------------------------------------------------------------ command line


def test_help_is_measured_for_real(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--dir", str(tmp_path), "help", "--json",
         str(figures)], cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    command, row, where = done.stdout.splitlines()
    assert command == f"# python -m benchmarks help --quick --dir {tmp_path}"
    assert row.startswith("help ")
    assert " to python -c pass  target <= 80 ms: " in row
    data = json.loads(figures.read_text())
    assert data["machine"] == where
    assert data["figures"][0]["value"]["count"] == 5
    assert data["figures"][0]["command"] == command.removeprefix("# ")
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]


def test_what_cannot_be_measured_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perturbation", "--db-bench", "no-such-program"]) == 1
    printed = capsys.readouterr().out
    assert "not measured: no-such-program is not a program" in printed
    assert "apt-get install -y rocksdb-tools" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["helf"], "there is no benchmark 'helf'; there are help, status"),
        (["--pairs", "0"], "0 is not a number of pairs"),
        (["--dir", "no-such-folder"], "no-such-folder is not a folder"),
    ],
)
def test_bad_options_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_every_benchmark_is_described() -> None:
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    for name in BENCHMARKS:
        assert f"`{name}`" in text
