"""What asparse_solve reports: JSON, CSV, text, dry runs, and the defaults it chose."""
import csv
import json

import numpy as np
import scipy.sparse as sp

from asparse_testing import OK, RUNTIME, USAGE, Checks, Folder, main, read_dense, run, said, write_csr

PHASES = {"read", "partition", "move", "build", "b", "copy", "multiply", "pack", "communication", "local", "wait", "halo",
          "layout", "verify", "gather", "write"}


def matrix():
    a = sp.random(200, 150, 0.05, format="csr", random_state=3)
    return a


def check_machine(checks, record, ranks):
    machine = record["machine"]
    hosts = {place["host"] for place in machine["binding"]}
    checks.that(len(machine["binding"]) == ranks and hosts == set(record["hosts"].split(",")), f"binding {machine}")
    counts = sorted(sum(int(r.split("-")[-1]) - int(r.split("-")[0]) + 1 for r in place["cores"].split(","))
                    for place in machine["binding"])
    cores = record["per_rank"]["cores"]
    checks.that([counts[0], counts[-1], sum(counts)] == [cores["min"], cores["max"], cores["sum"]], f"cores {machine}")
    checks.that(0 < machine["core_share"] <= 1 and machine["cpu"], f"machine {machine}")
    predicted = record["multiply"]["predicted_seconds"]
    checks.that(predicted >= record["choices"]["predicted_seconds"] * (1 - 1e-12) > 0, f"predicted {predicted}")
    checks.that(ranks > 1 or predicted == record["choices"]["predicted_seconds"], "one rank exchanges nothing")
    for name, phase in record["phases"].items():
        checks.that(phase["min"] <= phase["mean"] <= phase["max"] * (1 + 1e-12), f"mean of {name}: {phase}")


def check_json(checks, path):
    for ranks in (1, 3):
        result = run("asparse_solve", path, "--json", "-", "--repeat", 4, "--cols", 9, "--exchange", "rows", ranks=ranks)
        checks.that(result.returncode == OK, said(result))
        record = json.loads(result.stdout)  # nothing but the JSON on standard output
        checks.that(record["schema"] == 1 and record["ranks"] == ranks, f"{record['schema']}, {record['ranks']}")
        checks.that(record["matrix"]["rows"] == 200 and record["matrix"]["columns"] == 150, record["matrix"])
        checks.that(record["b"] == {"source": "random", "rows": 150, "columns": 9}, record["b"])
        times = record["multiply"]["sorted_seconds"]
        checks.that(len(times) == 4 and times == sorted(times) and times[0] > 0, f"repeats {times}")
        checks.that(times[0] <= record["multiply"]["median_seconds"] <= times[-1], f"median of {times}")
        gflops = 2e-9 * record["matrix"]["nnz"] * 9 / record["multiply"]["median_seconds"]
        checks.that(np.isclose(gflops, record["multiply"]["gflops"]), f"{gflops} GFLOP/s")
        checks.that(set(record["phases"]) == PHASES, f"phases {set(record['phases'])}")
        for name, quantity in record["per_rank"].items():
            checks.that(quantity["min"] <= quantity["median"] <= quantity["max"], f"{name}: {quantity}")
        per_rank = record["per_rank"]
        check_machine(checks, record, ranks)
        checks.that(per_rank["rows"]["sum"] == 200 and per_rank["b_rows"]["sum"] == 150, "rows over ranks")
        checks.that(per_rank["nnz"]["sum"] == record["matrix"]["nnz"], f"nnz over ranks {per_rank['nnz']}")
        checks.that(per_rank["bytes_sent"]["sum"] == per_rank["bytes_received"]["sum"], "bytes sent and received")
        checks.that(ranks > 1 or per_rank["bytes_sent"]["sum"] == 0, "one rank sends nothing")
        checks.that(record["verification"]["rows_checked"] == 200, record["verification"])


def check_hash(checks, path, other):
    """The hash names the matrix, whatever the ranks, options or file layout."""
    hashes = set()
    for ranks, extra in ((1, []), (2, ["--precision", "bf16"]), (3, ["--partition", "contiguous", "--format", "wcsr"])):
        hashes.add(json.loads(run("asparse_solve", path, "--json", "-", *extra, ranks=ranks).stdout)["matrix"]["hash"])
    checks.that(len(hashes) == 1, f"one matrix, hashes {hashes}")
    hashes.add(json.loads(run("asparse_solve", other, "--json", "-").stdout)["matrix"]["hash"])
    checks.that(len(hashes) == 2, f"two matrices, hashes {hashes}")


def check_files(checks, folder, path):
    table, report = folder / "runs.csv", folder / "report.json"
    for cols in (3, 5):
        result = run("asparse_solve", path, "--csv", table, "--json", report, "--cols", cols, ranks=2)
        checks.that(result.returncode == OK and "verified   yes" in result.stdout, said(result))
        checks.that(json.loads(report.read_text())["b"]["columns"] == cols, "JSON file is the latest run")
    rows = list(csv.DictReader(table.open()))
    checks.that([row["b.columns"] for row in rows] == ["3", "5"], f"CSV rows {rows}")
    checks.that(float(rows[1]["multiply.median_seconds"]) > 0 and rows[0]["ranks"] == "2", f"CSV row {rows[1]}")
    table.write_text("a,b\n1,2\n")
    result = run("asparse_solve", path, "--csv", table)
    checks.that(result.returncode == USAGE and "columns" in result.stderr, said(result))
    checks.that(table.read_text() == "a,b\n1,2\n", "a CSV file of another kind was changed")
    result = run("asparse_solve", path, "--json", folder / "no/such/report.json")
    checks.that(result.returncode == RUNTIME and "report.json" in result.stderr, said(result))
    checks.that(not [p for p in folder.iterdir() if p.suffix == ".tmp"], "temporary report left")


def check_switches(checks, folder, path):
    result = run("asparse_solve", path, "--verify=off")
    checks.that(result.returncode == OK and "not checked" in result.stdout, said(result))
    out = folder / "dry.h5"
    result = run("asparse_solve", path, "--dry-run", "-o", out, ranks=2)
    checks.that(result.returncode == OK and "not run" in result.stdout and "predicted" in result.stdout, said(result))
    checks.that(not out.exists(), "a dry run wrote C")
    for seed in (1, 2):
        run("asparse_solve", path, "--seed", seed, "--cols", 4, "-o", folder / f"seed{seed}.h5", "-q")
    differ = not np.array_equal(read_dense(folder / "seed1.h5"), read_dense(folder / "seed2.h5"))
    checks.that(differ, "two seeds gave the same C")
    result = run("asparse_solve", path, "--threads", 2, "--json", "-")
    checks.that(json.loads(result.stdout)["threads"] == 2, "threads asked for")


def check_defaults(checks, folder):
    """Own types decide the precision: the wider of A and B; integers and patterns are fp64."""
    path = folder / "types.h5"
    for a_type, b_type, expected in ((np.float32, None, "fp32"), (np.float64, None, "fp64"), (np.int32, None, "fp64"),
                                     (np.float32, np.float32, "fp32"), (np.float32, np.float64, "fp64"),
                                     (np.float64, np.float32, "fp64")):
        b = None if b_type is None else np.ones((150, 3), b_type)
        write_csr(path, matrix().astype(a_type), b=b)
        record = json.loads(run("asparse_solve", path, "--json", "-", ranks=2).stdout)
        checks.that(record["choices"]["precision"] == expected, f"A {a_type}, B {b_type}: {record['choices']}")
        checks.that(record["b"]["columns"] == (128 if b is None else 3), f"columns {record['b']}")


def test():
    checks = Checks()
    with Folder() as folder:
        path, other = folder / "a.h5", folder / "other.h5"
        write_csr(path, matrix())
        changed = matrix()
        changed.data[7] += 1
        write_csr(other, changed)
        check_json(checks, path)
        check_hash(checks, path, other)
        check_files(checks, folder, path)
        check_switches(checks, folder, path)
        check_defaults(checks, folder)
    return checks.finish(least=70)


main(test)
