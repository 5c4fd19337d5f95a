"""asparse_bench on the host: fields and ratios of CSV and JSON, the summary, the plot, broken files, the command line."""
import csv
import json
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import scipy.sparse as sp

from asparse_testing import (DATA_ERROR, NO_INPUT, OK, RUNTIME, USAGE, Checks, Folder, main, run, said, write_csr)

rng = np.random.default_rng(17)
COLUMNS = {"matrix", "rows", "cols", "nnz", "n", "precision", "kernel", "chosen", "time_ms", "tflops", "best_cusparse",
           "speedup_best_cusparse", "fraction_of_least", "plan_ms", "unit", "result", "time_p5_ms", "time_p95_ms",
           "predicted_ms", "max_error", "preprocess_ms", "longest_row", "outcome", "note"}
COLUMNS |= {f"window_{what}_{h}" for what in ("columns", "padded", "widest") for h in (8, 16, 32, 64)}
COLUMNS |= {f"blocks_{size}" for size in (16, 32, 64)}
KERNELS = [("csr", 1)] + [("wcsr", h) for h in (8, 16, 32, 64)] + [("bcsr", size) for size in (16, 32, 64)]
QUICK = ("--backend", "host", "--repeat", 3, "--seconds", 0.002)


def matrices():
    """Densities in three bands."""
    yield "dense", sp.random(80, 60, 0.2, format="csr", random_state=rng)
    yield "sparse", sp.random(700, 500, 0.004, format="csr", random_state=rng)
    yield "scattered", sp.random(3000, 2500, 0.0005, format="csr", random_state=rng)
    yield "empty", sp.csr_matrix((30, 40))


def distinct(a, height, width):
    """Non-empty pieces of height × width in each band of rows."""
    coo = a.tocoo()
    band, piece = coo.row.astype(np.int64) // height, coo.col.astype(np.int64) // width
    pieces = np.unique(band * (a.shape[1] + 1) + piece)
    return np.bincount(pieces // (a.shape[1] + 1), minlength=1)


def check_profile(checks, row, a):
    for h in (8, 16, 32, 64):
        columns = distinct(a, h, 1)
        wanted = [columns.sum(), (-(-columns // 16) * 16).sum(), columns.max()]
        found = [int(row[f"window_{what}_{h}"]) for what in ("columns", "padded", "widest")]
        checks.that(found == [int(x) for x in wanted], f"{row['matrix']}, height {h}: {found}, not {wanted}")
    for size in (16, 32, 64):
        checks.that(int(row[f"blocks_{size}"]) == distinct(a, size, size).sum(), f"{row['matrix']}: blocks of {size}")
    checks.that(int(row["longest_row"]) == np.diff(a.indptr).max(), f"{row['matrix']}: longest row")


def check_case(checks, rows, a):
    """All kernels of one matrix and number of columns."""
    where = f"{rows[0]['matrix']}, n {rows[0]['n']}"
    checks.that([(r["kernel"], int(r["unit"])) for r in rows] == KERNELS, f"{where}: kernels")
    checks.that(sum(int(r["chosen"]) for r in rows) == 1, f"{where}: one kernel is chosen")
    checks.that((int(rows[0]["rows"]), int(rows[0]["cols"]), int(rows[0]["nnz"])) == (*a.shape, a.nnz), where)
    for row in rows:
        time, least = float(row["time_ms"]), float(row["least_ms"])
        label = f"{where}, {row['kernel']} {row['unit']}"
        checks.that(row["outcome"] == "timed" and time > 0, f"{label}: {row['outcome']} {row['note']}")
        checks.that(0 <= float(row["max_error"]) <= 1, f"{label}: error {row['max_error']} of the bound")
        checks.that(float(row["time_p5_ms"]) <= time <= float(row["time_p95_ms"]), f"{label}: spread")
        tflops = 2e-9 * a.nnz * int(row["n"]) / time
        checks.that(math.isclose(float(row["tflops"]), tflops, rel_tol=1e-5), f"{label}: TFLOP/s")
        checks.that(math.isclose(float(row["fraction_of_least"]), least / time, rel_tol=1e-5), f"{label}: least")
        ratio = float(rows[0]["time_ms"]) / time
        checks.that(math.isclose(float(row["speedup_csr"]), ratio, rel_tol=1e-5), f"{label}: speed-up over CSR")
        checks.that(row["best_cusparse"] == "" and row["speedup_best_cusparse"] == "", f"{label}: cuSPARSE on the host")
        checks.that(float(row["predicted_ms"]) > 0 and float(row["plan_ms"]) >= 0, f"{label}: prediction, plan")
    check_profile(checks, rows[0], a)


def check_tables(checks, folder, all_matrices):
    table, report, plot = folder / "t.csv", folder / "r.json", folder / "p.svg"
    result = run("asparse_bench", *QUICK, "--cols", "5,16", "--csv", table, "--json", report, "--plot", plot, folder)
    checks.that(result.returncode == OK, said(result))
    rows = list(csv.DictReader(table.open()))
    checks.that(COLUMNS <= set(rows[0]), f"columns missing: {COLUMNS - set(rows[0])}")
    checks.that(len(rows) == len(all_matrices) * 2 * len(KERNELS), f"{len(rows)} rows")
    for name, a in all_matrices.items():
        for n in (5, 16):
            case = [r for r in rows if r["matrix"] == name and int(r["n"]) == n]
            check_case(checks, case, a) if case else checks.that(False, f"{name}, n {n}: no rows")
    check_report(checks, json.loads(report.read_text()), rows, all_matrices)
    check_plot(checks, plot, all_matrices)
    for name in all_matrices:
        checks.that(f"\n{name}: " in result.stdout, f"{name} is missing in the text")


def check_report(checks, record, rows, all_matrices):
    checks.that(record["program"] == "asparse_bench" and record["backend"] == "host", record["backend"])
    checks.that(record["matrices"] == len(all_matrices) and record["failures"] == [], "matrices and failures")
    checks.that(record["options"]["cols"] == [16, 5] and "--csv" in record["command"], record["command"])
    checks.that({"asparse", "compiler", "build", "mpi", "peers"} <= set(record["versions"]), record["versions"])
    checks.that([set(r) for r in record["results"]] == [set(r) for r in rows], "JSON and CSV have the same fields")
    for group in record["summary"]:
        low, high = {"all": (0, 2), ">= 1 %": (1e-2, 2), "0.1-1 %": (1e-3, 1e-2), "0.01-0.1 %": (1e-4, 1e-3),
                     "< 0.01 %": (0, 1e-4)}[group["density"]]
        cases = [r for r in rows if int(r["n"]) == group["n"] and low <= float(r["density"]) < high]
        speedups = [float(r["speedup_csr"]) for r in cases if r["chosen"] == "1"]
        checks.that(group["cases"] == len(speedups), f"{group['density']}: {group['cases']} cases")
        mean = math.exp(np.mean(np.log(speedups)))
        checks.that(math.isclose(group["chosen_speedup"], mean, rel_tol=1e-4), f"{group}: mean {mean}")
        checks.that(group["best_speedup"] >= group["chosen_speedup"] * 0.9999, f"{group}: fastest below chosen")
        checks.that(math.isclose(group["choice_loss"], group["best_speedup"] / group["chosen_speedup"], rel_tol=1e-4),
                    f"{group}: loss of the choice")
        below = np.mean([s < 1 for s in speedups])
        checks.that(math.isclose(group["below_share"], below, abs_tol=1e-9), f"{group}: share below 1")
    bands = {(g["n"], g["density"]) for g in record["summary"]}
    checks.that(len(bands) == len(record["summary"]) and (16, "all") in bands and (5, "0.01-0.1 %") in bands, bands)


def check_plot(checks, plot, all_matrices):
    space = "{http://www.w3.org/2000/svg}"
    picture = ElementTree.parse(plot).getroot()
    checks.that(picture.tag == space + "svg", picture.tag)
    points = [c for c in picture.iter(space + "circle") if c.get("class") == "point"]
    checks.that(len(points) == 2 * sum(a.nnz > 0 for a in all_matrices.values()), f"{len(points)} points")
    width, height = float(picture.get("width")), float(picture.get("height"))
    inside = all(0 < float(c.get("cx")) < width and 0 < float(c.get("cy")) < height for c in points)
    checks.that(inside, "points outside of the picture")
    texts = {t.text for t in picture.iter(space + "text")}
    checks.that({"N = 16", "N = 5", "speed-up", "density of A"} <= texts, f"labels {texts}")


def check_kernels(checks, folder):
    for names, wanted in (("csr", KERNELS[:1]), ("wcsr:16,bcsr", [("wcsr", 16)] + KERNELS[5:]), ("wcsr", KERNELS[1:5])):
        result = run("asparse_bench", *QUICK, "--kernel", names, "--cols", 3, "--json", "-", folder / "dense.h5")
        found = [(r["kernel"], r["unit"]) for r in json.loads(result.stdout)["results"]]
        checks.that(result.returncode == OK and found == wanted, f"--kernel {names}: {found}")
    for names in ("cusolver", "wcsr:9", "csr,", ""):
        result = run("asparse_bench", *QUICK, "--kernel", names, folder / "dense.h5")
        checks.that(result.returncode == USAGE and "csr, wcsr, bcsr" in result.stderr, said(result))


def check_limits(checks, folder):
    """Layouts that are too large are said to be; small matrices are skipped; precisions."""
    result = run("asparse_bench", *QUICK, "--max-bytes", 100000, "--cols", 3, "--json", "-", folder / "scattered.h5")
    rows = json.loads(result.stdout)["results"]
    outcomes = {(r["kernel"], r["unit"]): r["outcome"] for r in rows}
    checks.that(result.returncode == OK and outcomes[("csr", 1)] == "timed", said(result))
    checks.that(outcomes[("bcsr", 64)] == "too large", f"{outcomes}")
    large = next(r for r in rows if r["outcome"] == "too large")
    checks.that(large["time_ms"] is None and "--max-bytes" in large["note"], f"{large}")
    result = run("asparse_bench", *QUICK, "--min-nnz", 1000, "--cols", 3, "--json", "-", folder)
    record = json.loads(result.stdout)
    checks.that(record["skipped"] == 2 and record["matrices"] == 2, f"skipped {record['skipped']}")
    for precision, c in (("bf16", "fp32"), ("fp32", "fp32"), ("fp64", "fp64")):
        result = run("asparse_bench", *QUICK, "--precision", precision, "--cols", 8, "--json", "-",
                     folder / "sparse.h5")
        rows = json.loads(result.stdout)["results"]
        checks.that(all(r["precision"] == precision and r["result"] == c and r["outcome"] == "timed" and
                        r["max_error"] <= 1 for r in rows), f"{precision}: {rows[0]}")


def check_generated(checks):
    specs = ("grid2d:nx=20,ny=10", "blocks:m=256,k=192,size=32,empty=0.5")
    arguments = [word for spec in specs for word in ("--generate", spec)]
    result = run("asparse_bench", *QUICK, "--cols", 4, "--json", "-", *arguments)
    rows = json.loads(result.stdout)["results"]
    checks.that(result.returncode == OK and {r["matrix"] for r in rows} == set(specs), said(result))
    grid = next(r for r in rows if r["matrix"] == specs[0])
    checks.that((grid["rows"], grid["nnz"]) == (200, 200 + 2 * (19 * 10 + 20 * 9)), f"{grid}")
    result = run("asparse_bench", *QUICK, "--generate", "moebius:3")
    checks.that(result.returncode == USAGE and "moebius" in result.stderr, said(result))


def check_broken(checks, folder, n_good):
    (folder / "broken.h5").write_text("no matrix\n")
    (folder / "ignored.txt").write_text("not looked at\n")
    result = run("asparse_bench", *QUICK, "--cols", 2, "--json", folder / "r.json", folder)
    record = json.loads((folder / "r.json").read_text())
    checks.that(result.returncode == DATA_ERROR and "broken.h5" in result.stderr, said(result))
    checks.that(record["matrices"] == n_good and len(record["failures"]) == 1, f"{record['failures']}")
    checks.that("broken.h5" in record["failures"][0]["message"], f"{record['failures']}")
    checks.that("1 failed" in result.stdout, said(result))
    result = run("asparse_bench", *QUICK, folder / "none.h5")
    checks.that(result.returncode == NO_INPUT and "none.h5" in result.stderr, said(result))
    result = run("asparse_bench", *QUICK, "--cols", 2, folder / "none.h5", folder / "broken.h5", folder / "dense.h5")
    checks.that(result.returncode == DATA_ERROR and "2 of 3 matrices failed" in result.stderr, said(result))


def check_command_line(checks, folder):
    path = folder / "dense.h5"
    for arguments in ([], ["--cols", "0", path], ["--cols", "8,x", path], ["--repeat", "0", path], ["--fast", path],
                      ["--seconds", "-1", path], ["--precision", "fp8", path], ["--result", "fp64", path],
                      ["--all", "--kernel", "csr", path], ["--result", "bf16", "--precision", "fp32", path],
                      ["--backend", "host", "--flush-l2", path], ["--backend", "host", "--result", "bf16", path],
                      ["--csv", path, path]):
        result = run("asparse_bench", *arguments)
        checks.that(result.returncode == USAGE and result.stderr.startswith("asparse_bench: error: "), said(result))
    result = run("asparse_bench", *QUICK, path, ranks=2)
    checks.that(result.returncode == USAGE and "one rank" in result.stderr, said(result))
    result = run("asparse_bench", *QUICK, "--csv", folder / "no/such.csv", path)
    checks.that(result.returncode == RUNTIME and "such.csv" in result.stderr, said(result))
    (folder / "void").mkdir()
    result = run("asparse_bench", *QUICK, folder / "void")
    checks.that(result.returncode == NO_INPUT and "*.h5" in result.stderr, said(result))
    result = run("asparse_bench", "--help")
    checks.that(result.returncode == OK and "--flush-l2" in result.stdout, said(result))


def test():
    checks = Checks()
    with Folder() as folder:
        all_matrices = dict(matrices())
        for name, a in all_matrices.items():
            write_csr(folder / f"{name}.h5", a)
        check_tables(checks, folder, all_matrices)
        check_kernels(checks, folder)
        check_limits(checks, folder)
        check_generated(checks)
        check_broken(checks, folder, len(all_matrices))
        check_command_line(checks, folder)
    return checks.finish(least=500)


main(test)
