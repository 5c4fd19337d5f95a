"""A rank that is killed or hangs, at random moments of every phase: the job ends within seconds with an exit code and a
message, leaves no process, and an output file is the older one or whole."""
import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from asparse_testing import BRIEF, OK, SANITIZED, Checks, Folder, main, read_dense, run, said

KILLS = 9 if BRIEF else 51
AT_ONCE = 3  # a launcher that ends a job waits for a second
SECONDS = 10  # in which a job must end once a rank is gone
PHASES = {  # as the program names them, and what the report calls the time they take
    "reading": ["read"],
    "partitioning": ["partition", "move"],
    "building": ["build"],
    "multiplying": ["multiply"],
    "exchange": ["multiply"],
    "verifying": ["verify"],
    "writing": ["write"],
}
COLUMNS, REPEAT, OLDER = 16, 40, b"an older file"


def left_over(folder):
    """Processes whose command line names the folder of this test."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes() and path.parent.name != str(os.getpid()):
                found.append(path.parent.name)
        except OSError:
            pass
    return found


def gone(folder):
    """True once no process of the job is left; what was killed may take a moment to vanish."""
    end = time.monotonic() + 3
    while left_over(folder):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def solve(folder, ranks, *arguments, fault=None):
    start = time.monotonic()
    environment = {"OMP_NUM_THREADS": "1", **({"ASPARSE_FAULT": fault} if fault else {})}
    result = run("asparse_solve", folder.parent / "a.h5", "--cols", COLUMNS, "--exchange", "rows", "--repeat", REPEAT,
                 "-q", *arguments,
                 ranks=ranks, environment=environment)
    return result, time.monotonic() - start


def phase_seconds(folder):
    """How long each phase takes, so that moments within it can be drawn; and C."""
    report = folder / "report.json"
    result, _ = solve(folder, 3, "--json", report, "-o", folder / "whole.h5")
    assert result.returncode == OK, said(result)
    phases = json.loads(report.read_text())["phases"]
    seconds = {name: sum(phases[part]["max"] for part in parts) for name, parts in PHASES.items()}
    for name in ("multiplying", "exchange"):
        seconds[name] *= REPEAT
    return seconds, read_dense(folder / "whole.h5")


def whole(path, expected):
    """C as a run that ends gives it, up to the order in which ranks sum."""
    return np.allclose(read_dense(path), expected, rtol=1e-12, atol=1e-12)


def kill_once(folder, phase, seconds, expected, draw):
    """Kills one rank once, the job's output in folder; the checks, and False when the job was over before."""
    checks, out, ranks = Checks(), folder / "c.h5", draw.randrange(2, 5)
    older = draw.random() < 0.5
    out.unlink(missing_ok=True)
    if older:
        out.write_bytes(OLDER)
    fault = f"kill:{draw.randrange(ranks)}:{phase}:{int(1000 * draw.random() * seconds)}"
    result, took = solve(folder, ranks, "-o", out, fault=fault)
    label = f"{fault} of {ranks}"
    checks.that(gone(folder), f"{label}: processes are left")
    if result.returncode == OK:
        checks.that(whole(out, expected), f"{label}: fine, but C is wrong")
        return checks, False
    checks.that(took < SECONDS, f"{label}: took {took:.1f} s")
    launcher_ended = result.returncode < 0  # see asparse_testing.run
    checks.that(launcher_ended or "signal 9" in result.stderr, f"{label}: {said(result)}")
    untouched = out.read_bytes() == OLDER if older and out.exists() else not older and not out.exists()
    checks.that(untouched or whole(out, expected), f"{label}: the output is neither as before nor whole")
    return checks, True


def kill_many(checks, folders, seconds, expected):
    """Phase after phase, until KILLS jobs were struck."""
    struck, tries = dict.fromkeys(PHASES, 0), 0

    def kill(number, folder):
        phase = list(PHASES)[number % len(PHASES)]
        return phase, *kill_once(folder, phase, seconds[phase], expected, random.Random(number))

    with ThreadPoolExecutor(len(folders)) as pool:
        while sum(struck.values()) < KILLS and tries < 3 * KILLS:
            for phase, found, hit in pool.map(kill, range(tries, tries + len(folders)), folders):
                checks.passed += found.passed
                checks.failed += found.failed
                struck[phase] += hit
            tries += len(folders)
    print("kills:", ", ".join(f"{phase} {count}" for phase, count in struck.items()))
    checks.that(sum(struck.values()) >= KILLS and min(struck.values()) > 0, f"kills: {struck}")


def hang(checks, folder):
    """A rank that sleeps in the exchange, or comes to no agreement: the others wait no longer than they were told."""
    faults = {"hang:1:exchange": "waited 1 s for rows of B from rank", "hang:1:verifying": "waited 1 s for"}
    for fault, says in faults.items():
        result, took = solve(folder, 3, "--timeout", 1, fault=fault)
        checks.that(result.returncode not in (OK, None) and took < SECONDS, f"{fault}: {took:.1f} s, {said(result)}")
        checks.that(says in result.stderr and "--timeout" in result.stderr, f"{fault}: {said(result)}")
        checks.that(gone(folder), f"{fault}: processes are left")
    result, _ = solve(folder, 2, "--timeout", 1, fault="hang:1:exchange")
    checks.that("rank 0 of 2" in result.stderr and "from rank 1" in result.stderr, said(result))


def crash(checks, folder):
    """What crashes says where; a sanitizer speaks for itself."""
    for phase, advice in (("reading", "h5repack"), ("multiplying", "report it")):
        result, took = solve(folder, 2, fault=f"crash:1:{phase}")
        checks.that(result.returncode != OK and took < SECONDS, f"crash {phase}: {took:.1f} s, {said(result)}")
        checks.that(SANITIZED or (f"crashed while {phase}" in result.stderr and advice in result.stderr), said(result))
        checks.that(gone(folder), f"crash {phase}: processes are left")


def test():
    checks = Checks()
    with Folder() as top:
        made = run("asparse_generate", "grid2d:160", "-o", top / "a.h5", "-q")
        assert made.returncode == OK, said(made)
        folders = [top / f"worker{i}" for i in range(AT_ONCE)]
        for folder in folders:
            folder.mkdir()
        kill_many(checks, folders, *phase_seconds(folders[0]))
        hang(checks, folders[0])
        crash(checks, folders[0])
        # What killed writers left is cleared by the next.
        for folder in folders:
            result, _ = solve(folder, 2, "-o", folder / "c.h5")
            checks.that(result.returncode == OK, said(result))
            left = [path.name for path in folder.glob(".c.h5*")]
            checks.that(not left, f"temporary files are left: {left}")
    return checks.finish(least=4 * KILLS)


main(test)
