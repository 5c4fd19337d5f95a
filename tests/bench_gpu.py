"""asparse_bench on a GPU: every kernel of the table and every peer, checked and timed; skipped (77) without a GPU."""
import json
import math
import sys

import numpy as np
import scipy.sparse as sp

from asparse_testing import OK, USAGE, Checks, Folder, main, run, said, write_csr

rng = np.random.default_rng(23)
CUSPARSE = {("cusparse-csr-1", 1), ("cusparse-csr-2", 1), ("cusparse-csr-3", 1)}
OURS = {("csr", 1), ("csr-resident", 1), ("wcsr-gather", 8), ("wcsr-gather", 16), ("wcsr-gather", 32),
        ("wcsr-gather", 64), ("bcsr", 64)}
QUICK = ("--backend", "cuda", "--repeat", 5, "--seconds", 0.01)


def matrices():
    yield "blocks", sp.csr_matrix(sp.kron(sp.random(9, 7, 0.3, random_state=rng), np.ones((64, 64))))
    yield "ragged", sp.random(1001, 777, 0.02, format="csr", random_state=rng)
    skewed = sp.lil_matrix((300, 2000))
    skewed[7] = rng.uniform(-1, 1, 2000)
    yield "skewed", sp.csr_matrix(skewed) + sp.random(300, 2000, 0.002, format="csr", random_state=rng)


def check_rows(checks, rows, label):
    timed = {(r["kernel"], r["unit"]): r for r in rows if r["outcome"] == "timed"}
    checks.that(not [r for r in rows if r["outcome"] == "wrong"], f"{label}: wrong results")
    checks.that(OURS <= set(timed), f"{label}: not timed: {OURS - set(timed)}")
    for row in timed.values():
        checks.that(row["time_ms"] > 0 and 0 <= row["max_error"] <= 1, f"{label}: {row}")
    for row in rows:
        checks.that(row["outcome"] == "timed" or row["note"], f"{label}, {row['kernel']}: no reason")
    if not CUSPARSE <= set(timed):
        return
    best = min(r["time_ms"] for r in timed.values() if r["kernel"].startswith("cusparse"))
    for row in timed.values():
        checks.that(math.isclose(row["speedup_best_cusparse"], best / row["time_ms"], rel_tol=1e-5),
                    f"{label}, {row['kernel']}: {row['speedup_best_cusparse']}")


def test():
    checks = Checks()
    with Folder() as folder:
        for name, a in matrices():
            write_csr(folder / f"{name}.h5", a)
        first = run("asparse_bench", *QUICK, "--all", "--cols", "40,256", "--json", "-", folder)
        if first.returncode != OK and ("no GPU" in first.stderr or "driver" in first.stderr):
            print("skipped: no GPU:", first.stderr)
            sys.exit(77)
        checks.that(first.returncode == OK, said(first))
        record = json.loads(first.stdout)
        for name, _ in matrices():
            for n in (40, 256):
                rows = [r for r in record["results"] if r["matrix"] == name and r["n"] == n]
                checks.that(sum(r["chosen"] for r in rows) == 1, f"{name}: chosen")
                check_rows(checks, rows, f"{name}, n {n}")
        for option in ("--flush-l2", "--no-graph", "--no-peers"):
            result = run("asparse_bench", *QUICK, option, "--cols", 64, "--json", "-", folder / "ragged.h5")
            rows = json.loads(result.stdout)["results"]
            check_rows(checks, rows, option)
            method = {"--flush-l2": "L2 cold", "--no-graph": "launches", "--no-peers": "L2 warm"}[option]
            checks.that(method in rows[0]["method"], f"{option}: {rows[0]['method']}")
        result = run("asparse_bench", *QUICK, "--kernel", "tensor", folder / "ragged.h5")
        checks.that(result.returncode == USAGE and "wcsr-gather" in result.stderr, said(result))
    return checks.finish(least=60)


main(test)
