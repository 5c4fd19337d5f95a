"""Ranks on two hosts: two network namespaces with names and addresses of their own stand in for them, so that messages
go by TCP and nothing is shared. Skipped (77) where namespaces may not be made."""
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from asparse_testing import BIN, MPIEXEC, OK, Checks, Folder, main, read_dense, run, said

NAMES = [f"asp{os.getpid() % 100000}{side}" for side in "ab"]
ADDRESSES = ["10.213.7.1", "10.213.7.2"]
SKIPPED = 77


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True).returncode == 0


def inside(side):
    """What a command is put behind to run on that host."""
    name = NAMES[side]
    return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", f'hostname {name} && exec "$@"', "sh"]


def make_hosts():
    return all([
        *(ip("netns", "add", name) for name in NAMES),
        ip("link", "add", NAMES[0], "netns", NAMES[0], "type", "veth", "peer", "name", NAMES[1], "netns", NAMES[1]),
        *(ip("-n", name, "addr", "add", f"{address}/24", "dev", name) for name, address in zip(NAMES, ADDRESSES)),
        *(ip("-n", name, "link", "set", device, "up") for name in NAMES for device in ("lo", name)),
    ]) and subprocess.run([*inside(0), "true"]).returncode == 0


def give_up_soon():
    """Each host's kernel drops a line after some 3 s without an answer, not after 15 minutes."""
    return all(subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.tcp_retries2=3"],
                              capture_output=True).returncode == 0 for name in NAMES)


def remove_hosts():
    for name in NAMES:
        ip("netns", "del", name)


def write_agent(folder):
    """Stands in for ssh: starts the launcher's daemon on the other host."""
    agent = folder / "agent"
    agent.write_text(f'#!/bin/sh\nshift\nexec {shlex.join(inside(1))} sh -c "$*"\n')
    agent.chmod(0o755)
    return agent


# The launcher notices within seconds, not minutes, that the line to its daemon is dead.
KEEPALIVE = [part for name, value in (("time", 2), ("intvl", 1), ("probes", 2))
             for part in ("--mca", f"oob_tcp_keepalive_{name}", value)]


def solve(folder, *arguments, ranks=4, fault=None):
    """On both hosts, ranks / 2 each; (result, seconds)."""
    command = [*inside(0), *MPIEXEC, "--host", ",".join(f"{address}:{ranks // 2}" for address in ADDRESSES), "-np",
               ranks, *KEEPALIVE, "--mca", "plm_rsh_agent", str(folder / "agent"), "-x", "OMP_NUM_THREADS=1"]
    if fault:
        command += ["-x", f"ASPARSE_FAULT={fault}"]
    command += [BIN / "asparse_solve", folder / "a.h5", "--cols", 16, *arguments]
    start = time.monotonic()
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120,
                            errors="replace")
    return result, time.monotonic() - start


def left_over(folder):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        found = [path for path in Path("/proc").glob("[0-9]*/cmdline")
                 if str(folder / "a.h5").encode() in read_or_empty(path)]
        if not found:
            return False
        time.sleep(0.1)
    return True


def read_or_empty(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def multiply(checks, folder):
    report = folder / "report.json"
    for exchange in ("rows", "replicate"):
        result, _ = solve(folder, "-q", "--exchange", exchange, "--json", report, "-o", folder / "two.h5")
        if not checks.that(result.returncode == OK, said(result)):
            continue
        record = json.loads(report.read_text())
        checks.that(record["hosts"] == ",".join(NAMES), f"hosts: {record['hosts']}")
        checks.that(record["verification"]["passed"] and record["choices"]["transport"] == "mpi", str(record))
        one = run("asparse_solve", folder / "a.h5", "--cols", 16, "-q", "-o", folder / "one.h5")
        checks.that(one.returncode == OK, said(one))
        checks.that(np.allclose(read_dense(folder / "two.h5"), read_dense(folder / "one.h5"), rtol=1e-12, atol=1e-12),
                    f"{exchange}: C differs between one host and two")


def received():
    """Bytes the first host has received from the other."""
    show = subprocess.run(["ip", "-n", NAMES[0], "-s", "-j", "link", "show", NAMES[0]], capture_output=True, text=True)
    return json.loads(show.stdout)[0]["stats64"]["rx"]["bytes"]


def cut_line(cut):
    """Once multiplications have moved more than starting the job does; cut: receives the time."""
    before, end = received(), time.monotonic() + 60
    while received() < before + 2e6 and time.monotonic() < end:
        time.sleep(0.1)
    ip("-n", NAMES[0], "link", "set", NAMES[0], "down")
    cut.append(time.monotonic())


def failures(checks, folder):
    """A rank of the other host is killed, hangs; the line between them is cut."""
    for fault in ("kill:3:multiplying", "kill:2:reading", "hang:3:exchange"):
        result, took = solve(folder, "-q", "--exchange", "rows", "--repeat", 50, "--timeout", 2, fault=fault)
        checks.that(result.returncode != OK and took < 40, f"{fault}: {took:.1f} s, {said(result)}")
        checks.that("signal 9" in result.stderr or "waited 2 s" in result.stderr, f"{fault}: {said(result)}")
        checks.that(not left_over(folder), f"{fault}: processes are left")
    cut = []
    cutter = threading.Thread(target=cut_line, args=(cut,))
    cutter.start()
    result, _ = solve(folder, "-q", "--exchange", "rows", "--repeat", 1000000, "--timeout", 3)
    took = time.monotonic() - cut[0] if cut else 0
    cutter.join()
    checks.that(result.returncode != OK and 0 < took < 40, f"cut: {took:.1f} s, {said(result)}")
    checks.that("waited 3 s for" in result.stderr, f"cut: {said(result)}")
    checks.that(not left_over(folder), "cut: processes are left")


def test():
    checks = Checks()
    with Folder() as folder:
        try:
            if not (make_hosts() and give_up_soon()):
                print("skipped: network namespaces cannot be made here")
                sys.exit(SKIPPED)
            write_agent(folder)
            made = run("asparse_generate", "grid2d:60", "-o", folder / "a.h5", "-q")
            assert made.returncode == OK, said(made)
            multiply(checks, folder)
            failures(checks, folder)
        finally:
            remove_hosts()
    return checks.finish(least=15)


main(test)
