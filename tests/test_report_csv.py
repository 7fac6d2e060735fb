"""CSV files: every number comes back at full precision, with its coordinates and unit."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from report_data import METRICS, ROWS, parsed_rows, seed_data, small_data

from benchrunner.definitions import ColumnDefinition, TableDefinition
from benchrunner.report.csv_files import csv_texts


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_tables_come_back_equal() -> None:
    data = seed_data()
    files = csv_texts(data)
    for step in ROWS:
        got = {
            (row["version"], row["variant"]): {
                name: float(row[name])
                for name in parsed_rows(data.workload, step)["7.2.2", "None"]
                if row[name]
            }
            for row in read(files[f"{step}.csv"])
            if row["state"] == "ok"
        }
        assert got == parsed_rows(data.workload, step)
    assert f"{next(iter(ROWS))}-resources.csv" in files


def test_measurements_come_back_equal() -> None:
    data = seed_data()
    rows = read(csv_texts(data)["measurements.csv"])
    got = {
        (
            r["trial"],
            r["step"],
            r["phase"] or None,
            int(r["run"]),
            r["role"] or None,
            r["metric"],
        ): (float(r["value"]))
        for r in rows
    }
    expected = {
        (trial.id, name, *key): value
        for cell in data.cells
        for trial in cell.trials
        for name, step in trial.steps.items()
        for key, value in step.measurements.items()
    }
    assert got == expected
    assert all(row["unit"] == METRICS[row["metric"]].unit for row in rows)
    assert {row["workload"] for row in rows} == {"rocksdb-flash"}


def test_failures_and_taints_are_rows_without_numbers() -> None:
    files = csv_texts(small_data())
    rows = read(files["read.csv"])
    assert [(row["state"], row["ops_per_sec"], row["taints"], row["n"]) for row in rows] == [
        ("skipped", "", "", "0"),
        ("ok", "136915.2", "cpu-steal", "1"),
        ("failed", "", "", "0"),
        ("ok", "136915.2", "", "1"),
        ("invalid", "", "", "0"),
    ]
    assert rows[0]["version"] == "7.10<script>"
    long = read(files["measurements.csv"])
    assert {row["value"] for row in long if row["state"] == "invalid"} == {""}
    assert [row["trial"] for row in long if row["state"] == "skipped"] == ["t5"]
    assert [row["step"] for row in long if row["state"] == "failed"] == ["read"]


def test_columns_file_says_what_each_column_means() -> None:
    rows = read(csv_texts(seed_data())["columns.csv"])
    row = next(
        row for row in rows if (row["file"], row["column"]) == ("overwrite.csv", "w_amp_lsm")
    )
    assert (row["title"], row["unit"], row["better"]) == ("W-Amp", "ratio", "lower")
    du = next(row for row in rows if (row["file"], row["column"]) == ("bulkload.csv", "du_kib"))
    assert du["step"] == "bulkload-compact"


def test_one_metric_in_two_columns_and_twin_tables_keep_their_names_apart() -> None:
    data = small_data()
    columns = ["ops_per_sec", ColumnDefinition(metric="ops_per_sec", title="w", role="writer")]
    tables = [TableDefinition.model_validate({"step": "fill", "columns": columns})] * 2
    page = data.workload.page.model_copy(update={"tables": tables})
    cells = tuple(replace(cell, axes={"threads": 4}) for cell in data.cells)
    workload = data.workload.model_copy(update={"page": page})
    files = csv_texts(replace(data, workload=workload, cells=cells))
    assert set(files) == {"fill.csv", "fill-2.csv", "columns.csv", "measurements.csv"}
    row = read(files["fill.csv"])[1]
    assert row["threads"] == "4"
    assert (row["ops_per_sec.fill.fillrandom"], row["ops_per_sec.fill.fillrandom.writer"]) == (
        *("86617.4", ""),
    )
