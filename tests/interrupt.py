"""SIGUSR1: asparse_solve ends after the multiplication at hand with C, a report and exit code 85, asparse_bench after
the matrix at hand; before the first multiplication nothing is written."""
import csv
import json
import os
import signal
import subprocess
import time

import numpy as np
import scipy.sparse as sp

from asparse_testing import (BIN, INTERRUPTED, MPIEXEC, OK, Checks, Folder, main, programs_with, read_dense, run, said,
                             seconds_used, write_csr)

RUNNING = 0.5  # seconds of processor time, times the ranks that wait for each other, after which they multiply
ENDLESS = 1000000
PRODUCT = ["--cols", 16, "--exchange", "rows"]  # sums in one order, whatever the planner thinks of the machine


def ask_launcher(command, mark, ranks, by=signal.SIGUSR1):
    """Starts command, sends the signal to its first process once all ranks are multiplying; the result."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", ASPARSE_CHECK_LEAKS="1")
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=environment, start_new_session=True)
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        if len([pid for pid in programs_with(mark) if seconds_used(pid) > RUNNING * ranks]) == ranks:
            break
        time.sleep(0.05)
    process.send_signal(by)
    try:
        stdout, stderr = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def mpirun(checks, folder, expected):
    """As a batch script does it: the launcher gets the signal and hands it to all ranks."""
    for ranks in (1, 3):
        report, out = folder / f"report{ranks}.json", folder / f"c{ranks}.h5"
        solve = [BIN / "asparse_solve", folder / "a.h5", "--repeat", ENDLESS, *PRODUCT, "--json", report, "-o", out]
        launcher = [*MPIEXEC, "-np", ranks] if ranks > 1 else []
        result = ask_launcher([*launcher, *solve], str(out), ranks)
        if not checks.that(result.returncode == INTERRUPTED, f"{ranks} ranks: {said(result)}"):
            continue
        record = json.loads(report.read_text())
        times = record["multiply"]["sorted_seconds"]
        checks.that(record["interrupted"] and record["verification"]["passed"], f"{ranks} ranks: {record}")
        done, wanted = record["multiply"]["repeats_done"], record["multiply"]["repeat"]
        checks.that(0 < done == len(times) < wanted == ENDLESS and times[0] > 0, f"{done} of {wanted}: {len(times)}")
        checks.that(f"after {len(times)} of {ENDLESS} timed multiplications" in result.stderr, said(result))
        checks.that("leaks" not in result.stderr, said(result))
        checks.that(np.array_equal(read_dense(out), expected[ranks]), f"{ranks} ranks: C differs from a whole run's")


def terminated(checks, folder):
    """SIGTERM does what it does to any program."""
    out = folder / "terminated.h5"
    command = [BIN / "asparse_solve", folder / "a.h5", "--repeat", ENDLESS, *PRODUCT, "-o", out]
    result = ask_launcher(command, str(out), 1, by=signal.SIGTERM)
    checks.that(result.returncode == -signal.SIGTERM and not out.exists(), said(result))


def one_rank(checks, folder, expected):
    """Only one rank gets the signal: all end together, at whatever step it came."""
    report, out, again = folder / "report.json", folder / "c.h5", ["--repeat", 3000, *PRODUCT]
    faults = {"0:reading": False, "1:building": False, "2:exchange": True}
    for fault, written in faults.items():
        result = run("asparse_solve", folder / "a.h5", *again, "--json", report, "-o", out, ranks=3,
                     environment={"ASPARSE_FAULT": f"ask:{fault}", "ASPARSE_CHECK_LEAKS": "1"})
        checks.that(result.returncode == INTERRUPTED and "leaks" not in result.stderr, f"{fault}: {said(result)}")
        checks.that("ended early on SIGUSR1, after" in result.stderr and "error" not in result.stderr, said(result))
        checks.that(out.exists() == report.exists() == written, f"{fault}: what was written")
        checks.that(not list(folder.glob(".*")), f"{fault}: temporary files")
    record = json.loads(report.read_text())
    checks.that(record["interrupted"] and record["multiply"]["repeats_done"] == 0, str(record))
    checks.that("not timed" in result.stdout and "C          written" in result.stdout, said(result))
    checks.that(np.array_equal(read_dense(out), expected[3]), "C of the untimed multiplication differs")


def too_late(checks, folder, expected):
    """What was asked for is all done, but for verifying and writing it: that is not an interrupted run."""
    report, out = folder / "late.json", folder / "late.h5"
    result = run("asparse_solve", folder / "a.h5", *PRODUCT, "--json", report, "-o", out, ranks=3,
                 environment={"ASPARSE_FAULT": "ask:1:verifying"})
    checks.that(result.returncode == OK, said(result))
    record = json.loads(report.read_text())
    checks.that(not record["interrupted"] and record["multiply"]["repeats_done"] == 5, str(record))
    checks.that(np.array_equal(read_dense(out), expected[3]), "C differs from a whole run's")


def bench(checks, folder):
    """Asked at the first path: that matrix is finished and its rows are written, the others left."""
    table, report = folder / "bench.csv", folder / "bench.json"
    for name in ("first", "second"):
        write_csr(folder / f"{name}.h5", sp.random(400, 400, 0.05, format="csr", random_state=5))
    result = run("asparse_bench", folder / "first.h5", folder / "second.h5", "--backend", "host", "--cols", 8,
                 "--repeat", 3, "--csv", table, "--json", report, environment={"ASPARSE_FAULT": "ask:0:/"})
    checks.that(result.returncode == INTERRUPTED and "after 1 matrices" in result.stderr, said(result))
    checks.that("ended early on SIGUSR1" in result.stdout, said(result))
    record = json.loads(report.read_text())
    checks.that(record["interrupted"] and record["matrices"] == 1, f"{record['matrices']} matrices")
    checks.that({row["matrix"] for row in csv.DictReader(table.open())} == {"first"}, table.read_text())


def test():
    checks = Checks()
    with Folder() as folder:
        made = run("asparse_generate", "grid2d:40", "-o", folder / "a.h5", "-q")
        assert made.returncode == OK, said(made)
        expected = {}
        for ranks in (1, 3):
            result = run("asparse_solve", folder / "a.h5", *PRODUCT, "-o", folder / "whole.h5", ranks=ranks)
            checks.that(result.returncode == OK, said(result))
            expected[ranks] = read_dense(folder / "whole.h5")
        mpirun(checks, folder, expected)
        terminated(checks, folder)
        one_rank(checks, folder, expected)
        too_late(checks, folder, expected)
        bench(checks, folder)
    return checks.finish(least=35)


main(test)
