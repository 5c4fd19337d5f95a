"""The batch scripts of jobs/ on a real Slurm: two nodes within this machine (tests/slurm/cluster). Scripts are edited
as a user edits them, submitted with sbatch, launched by srun and by mpirun; ranks are killed, jobs asked to end early.
Skipped (77) where Slurm is not installed, without root, and where namespaces cannot be made."""
import itertools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from asparse_testing import (BIN, DATA_ERROR, INTERRUPTED, OK, ROOT, USAGE, Checks, Folder, main, programs_with,
                             read_dense, run, said, seconds_used)

SKIPPED = 77
NAMESPACES = ["unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--net", "--uts"]
TOOLS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "ip", "nsenter", "unshare"]
# Two nodes share one loopback device; ranks share two cores.
ENVIRONMENT = {"OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_oob_tcp_if_include": "lo",
               "OMPI_MCA_mpi_yield_when_idle": "1",
               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LAUNCHERS = ("srun", "mpirun")
RUNNING = 1.5  # seconds of processor time, some of it waiting for others, after which a rank multiplies
COLUMNS = 16
ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")
LATER = 2.5  # seconds after which a requeued job may be started again
PAIR = ["--ntasks-per-node=2", "--gpus-per-node=2", "--cpus-per-task=1"]  # of eight ranks
ENDLESS = "--repeat 1000000"


def why_not():
    """Why there can be no cluster here; None if there can be."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=path)]
    if missing:
        return f"not installed: {' '.join(missing)} (jobs/install-packages tests)"
    if os.geteuid() != 0:
        return "slurmd has to be started as root"
    attempt = [*NAMESPACES, "sh", "-c", "mount -t tmpfs shm /dev/shm && mknod /dev/shm/gpu c 1 3"]
    if subprocess.run(attempt, capture_output=True).returncode != 0:
        return "namespaces, mounts or devices cannot be made here"
    return None


class Cluster:
    """A Slurm cluster that lives as long as this process holds its standard input."""

    def __init__(self, folder):
        self.state = folder / "cluster"
        self.log = folder / "cluster.log"

    def __enter__(self):
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*NAMESPACES, ROOT / "tests/slurm/cluster", self.state], stderr=log,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        if not ready or self.process.stdout.readline() != b"ready\n":
            self.process.kill()
            raise RuntimeError("no cluster after 60 s:\n" + self.log.read_text()[-4000:])
        pid = self.process.pid
        self.first = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def run(self, *command, cwd=None, **environment):
        command = ["nsenter", "--target", self.first, "--pid", "--net", "--uts", *map(str, command)]
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_", "PMI"))}
        env |= {"SLURM_CONF": str(self.state / "slurm.conf"), "TMPDIR": str(self.state), **ENVIRONMENT, **environment}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=cwd, env=env)


class Job:
    """A script of jobs/ in a folder of its own, edited and submitted."""

    numbers = itertools.count()

    def __init__(self, cluster, folder, script, *options, launcher="srun", arguments=None, programs=BIN, **environment):
        self.cluster, self.label = cluster, f"{script}, {launcher}"
        self.folder = folder / f"{script}-{launcher}-{next(Job.numbers)}"
        self.folder.mkdir()
        (self.folder / "matrix.h5").symlink_to(folder / "a.h5")
        arguments = (arguments or "-o C.h5 --json report.json") + f" {self.folder}/matrix.h5 --cols {COLUMNS}"
        lines = {"programs": f"programs={programs}", "launcher": f"launcher={launcher}",
                 "arguments": f"arguments=({arguments})"}
        if script == "array":
            del lines["arguments"]
            lines["folder"] = f"folder={self.folder}/matrices results=results arguments=(--cols {COLUMNS})"
        text = (ROOT / f"jobs/{script}.sbatch").read_text()
        for name, line in lines.items():
            text, count = re.subn(f"^{name}=.*$", line, text, flags=re.M)
            assert count == 1, f"{script}: {count} lines {name}="
        (self.folder / "job.sbatch").write_text(text)
        self.options, self.environment, self.number = options, environment, None

    def submit(self):
        command = ["sbatch", "--parsable", *self.options, "job.sbatch"]
        result = self.cluster.run(*command, cwd=self.folder, **self.environment)
        assert result.returncode == 0, f"{self.label}: {said(result)}"
        self.number = result.stdout.strip()
        return self

    def command(self, *command):
        """A command to Slurm, which may lose connections on a busy machine."""
        for _ in range(5):
            result = self.cluster.run(*command)
            if result.returncode == 0:
                return result
            time.sleep(1)
        raise AssertionError(f"{self.label}: {' '.join(command)}: {said(result)}")

    def show(self, task=""):
        """What Slurm says of the job: {"JobState": "RUNNING", …}."""
        result = self.command("scontrol", "--oneliner", "show", "job", self.number + task)
        return dict(part.split("=", 1) for part in result.stdout.split() if "=" in part)

    def wait(self, what, until, task, seconds=120):
        """What Slurm says of the job once that is as it should be."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            shown = self.show(task)
            if until(shown):
                return shown
            time.sleep(0.2)
        raise TimeoutError(f"{self.label}: not {what} after {seconds} s: {shown}\n{self.output()}")

    def ended(self, task=""):
        return self.wait("ended", lambda shown: shown["JobState"] in ENDED, task)

    def requeued(self, task=""):
        return self.wait("requeued", lambda shown: shown["JobState"] == "PENDING" and shown["Restarts"] != "0", task)

    def ask(self, task=""):
        """To end early, as Slurm does before the time limit."""
        self.command("scancel", "--batch", "--signal=USR1", self.number + task)

    def steps(self, task=""):
        """Sockets of the job's steps that still live."""
        name = re.compile(rf"(?<!\d){self.show(task)['JobId']}\.\d+$")
        return [path for path in self.cluster.state.glob("n[12]/*") if name.search(path.name)]

    def again(self, task=""):
        """Starts a requeued job at once, not after the two minutes that Slurm lets it wait: for the sake of its old
        steps, beside which a new one of the same name cannot start (and srun then ends with 0)."""
        self.requeued(task)
        time.sleep(LATER)
        self.wait("rid of its steps", lambda _: not self.steps(task), task)
        self.command("scontrol", "update", f"JobId={self.number}{task}", "StartTime=now")

    def output(self):
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("asparse-*.out")))

    def report(self):
        return json.loads((self.folder / "report.json").read_text())

    def ranks(self, count):
        """Their processes, once all of them multiply."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            found = [pid for pid in programs_with(str(self.folder)) if seconds_used(pid) > RUNNING]
            if len(found) == count:
                return found
            time.sleep(0.1)
        raise TimeoutError(f"{self.label}: {count} ranks do not multiply\n{self.output()}")


def wrapper(folder, *lines):
    """A folder with an asparse_solve that does something before and then is the real one."""
    folder.mkdir()
    path = folder / "asparse_solve"
    path.write_text("\n".join(["#!/bin/bash", *lines, f'exec {BIN}/asparse_solve "$@"', ""]))
    path.chmod(0o755)
    return folder


def check_product(checks, job, expected, ranks):
    """The job ended well: C, its verification, who took part."""
    shown = job.ended()
    hosts = shown["NodeList"].replace("n[1-2]", "n1,n2")
    if not checks.that((shown["JobState"], shown["ExitCode"]) == ("COMPLETED", "0:0"), f"{job.label}: {job.output()}"):
        return
    record = job.report()
    checks.that((record["ranks"], record["hosts"]) == (ranks, hosts), f"{job.label}: {record['ranks']} on {hosts}")
    checks.that(record["verification"]["passed"] and not record["interrupted"], f"{job.label}: {job.output()}")
    checks.that("verified   yes" in job.output() and "exit code 0" in job.output(), f"{job.label}: {job.output()}")
    checks.that(np.allclose(read_dense(job.folder / "C.h5"), expected, rtol=1e-12, atol=1e-12), f"{job.label}: C")


def check_devices(checks, job, ranks, visible):
    """Every rank takes the GPU of its place among the node's ranks: all different. What it sees, seen.* has."""
    for node in job.report()["hosts"].split(","):
        seen = [(job.folder / f"seen.{node}.{local}").read_text().split(",") for local in range(ranks)]
        checks.that([len(devices) for devices in seen] == [visible] * ranks, f"{job.label}: {node} sees {seen}")
        taken = [devices[local % len(devices)].strip() for local, devices in enumerate(seen)]
        checks.that(len(set(taken)) == ranks and all(map(str.isdigit, taken)), f"{job.label}: {node} takes {taken}")


def products(checks, cluster, folder, expected):
    """Every script by both launchers; the GPUs each rank sees, where all are seen and where one is."""
    watched = wrapper(folder / "watched", 'echo "$CUDA_VISIBLE_DEVICES" >'
                      '"seen.$(hostname).${OMPI_COMM_WORLD_LOCAL_RANK:-$SLURM_LOCALID}"')
    two, small = ("--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=1"), "--cpus-per-task=1"
    cases = [  # script, launcher, options, nodes, ranks of each, GPUs each sees
        *(("one-gpu", launcher, ["--cpus-per-task=2"], 1, 1, 1) for launcher in LAUNCHERS),
        *(("cpu", launcher, two, 2, 2, 0) for launcher in LAUNCHERS),
        *(("many-nodes", launcher, two, 2, 2, 8) for launcher in LAUNCHERS),
        ("eight-gpus", "srun", [small], 1, 8, 8),
        ("eight-gpus", "srun", [small, "--ntasks-per-node=4", "--gpu-bind=single:1"], 1, 4, 1),
        ("eight-gpus", "mpirun", [small, "--ntasks-per-node=2"], 1, 2, 8),
    ]
    jobs = [Job(cluster, folder, script, "--time=5", *options, launcher=launcher, programs=watched).submit()
            for script, launcher, options, *_ in cases]
    for job, (_, _, _, nodes, ranks, visible) in zip(jobs, cases):
        check_product(checks, job, expected, nodes * ranks)
        if visible:
            check_devices(checks, job, ranks, visible)


def endless_once(path):
    """A wrapper that multiplies for ever unless the job was requeued."""
    return wrapper(path, f'[ "${{SLURM_RESTART_COUNT:-0}}" != 0 ] || set -- "$@" {ENDLESS}')


def time_limit(checks, cluster, folder, expected):
    """Slurm asks two minutes before a time limit of two minutes: soon after the start, perhaps before a product."""
    programs = endless_once(folder / "limited")
    job = Job(cluster, folder, "one-gpu", "--cpus-per-task=1", "--time=2", programs=programs).submit()
    job.again()
    check_product(checks, job, expected, 1)
    checks.that("exit code 85" in job.output(), f"{job.label}, time limit: {job.output()}")


def asked(checks, cluster, folder, expected):
    """Asked to end early: exit code 85, C and a report of an interrupted run, requeued, and whole the second time."""
    programs = endless_once(folder / "asked")
    jobs = [Job(cluster, folder, "eight-gpus", *PAIR, launcher=launcher, programs=programs).submit()
             for launcher in LAUNCHERS]
    for job in jobs:
        job.ranks(2)
        job.ask()
    for job in jobs:
        checks.that(job.requeued()["Restarts"] == "1", f"{job.label}: {job.show()}")
        record = job.report()
        checks.that(record["interrupted"] and record["verification"]["passed"], f"{job.label}: {job.output()}")
        checks.that(0 < record["multiply"]["repeats_done"] < record["multiply"]["repeat"], f"{job.label}: {job.output()}")
        checks.that("exit code 85" in job.output(), f"{job.label}: {job.output()}")
        checks.that(np.allclose(read_dense(job.folder / "C.h5"), expected, rtol=1e-12, atol=1e-12), f"{job.label}: C")
    for job in jobs:
        job.again()
        check_product(checks, job, expected, 2)


def last_restart(checks, cluster, folder, _):
    """A job that was started three times before is not requeued."""
    job = Job(cluster, folder, "eight-gpus", *PAIR, arguments=ENDLESS, SLURM_RESTART_COUNT="3").submit()
    job.ranks(2)
    job.ask()
    shown = job.ended()
    checks.that((shown["JobState"], shown["ExitCode"]) == ("FAILED", f"{INTERRUPTED}:0"), f"{shown}\n{job.output()}")


def killed_rank(checks, cluster, folder, _):
    """The job ends within seconds and says why."""
    jobs = [Job(cluster, folder, "eight-gpus", *PAIR, launcher=launcher, arguments=f"{ENDLESS} -o C.h5").submit()
            for launcher in LAUNCHERS]
    for launcher, job in zip(LAUNCHERS, jobs):
        os.kill(job.ranks(2)[1], signal.SIGKILL)
        start = time.monotonic()
        shown = job.ended()
        took = time.monotonic() - start
        checks.that(took < 30, f"{job.label}: ended after {took:.1f} s")
        code = shown["ExitCode"].partition(":")[0]  # srun: of the last signal, which the other ranks got
        checks.that(code == "137" or code == "143" and launcher == "srun", f"{shown}\n{job.output()}")
        checks.that("Killed" in job.output() and f"exit code {code}" in job.output(), f"{job.label}: {job.output()}")
        checks.that(not (job.folder / "C.h5").exists() and not programs_with(str(job.folder)), f"{job.label}: left")


def usage(checks, cluster, folder, _):
    """An error is said once, not by every rank."""
    job = Job(cluster, folder, "eight-gpus", *PAIR, arguments="--no-such-option").submit()
    shown = job.ended()
    checks.that(shown["ExitCode"] == f"{USAGE}:0", f"{shown}\n{job.output()}")
    checks.that(job.output().count("Try 'asparse_solve --help'") == 1, job.output())


def array(checks, cluster, folder, _):
    """A good matrix, one that is cut off, one whose task is asked to end early; a task too many. The last task of an
    array has the number of the whole: only this one may be requeued."""
    programs = wrapper(folder / "endless-c", f'[[ "$*" = *c.h5* && -z $SLURM_RESTART_COUNT ]] && set -- "$@" {ENDLESS}')
    job = Job(cluster, folder, "array", "--array=1-3%8", "--cpus-per-task=1", programs=programs)
    matrices, results = job.folder / "matrices", job.folder / "results"
    matrices.mkdir()
    whole = (folder / "a.h5").read_bytes()
    for name, content in (("a", whole), ("b", whole[:len(whole) // 2]), ("c", whole)):
        (matrices / f"{name}.h5").write_bytes(content)
    job.submit().ranks(1)
    job.ask("_3")
    job.again("_3")
    codes = {task: job.ended(f"_{task}") for task in range(1, 4)}
    found = [(shown["ExitCode"], shown["Restarts"]) for shown in codes.values()]
    checks.that(found == [("0:0", "0"), (f"{DATA_ERROR}:0", "0"), ("0:0", "1")], f"{found}\n{job.output()}")
    rows = sorted(line.split("\t")[:2] for line in (results / "codes.tsv").read_text().splitlines())
    rows = [(Path(path).name, code) for path, code in rows if code != str(INTERRUPTED)]
    checks.that(rows == [("a.h5", "0"), ("b.h5", str(DATA_ERROR)), ("c.h5", "0")], f"{rows}")
    checks.that({path.stem for path in results.glob("*.json")} == {"a", "c"}, f"{list(results.iterdir())}")
    records = [json.loads(path.read_text()) for path in results.glob("*.json")]
    good = [record["verification"]["passed"] and not record["interrupted"] for record in records]
    checks.that(good == [True, True] and "b.h5" in job.output(), job.output())
    empty = Job(cluster, folder, "array", "--array=4", "--cpus-per-task=1", programs=programs).submit()
    checks.that(empty.ended("_4")["ExitCode"] == "0:0" and not (empty.folder / "results").exists(), empty.output())


def same_tail(checks):
    """What is below the lines to edit is the same in all scripts."""
    tails = {path.name: path.read_text().partition("# ---- nothing to edit below ----")[2]
             for path in (ROOT / "jobs").glob("*.sbatch")}
    checks.that(len(tails) == 5 and len(set(tails.values())) == 1 and all(tails.values()), f"they differ: {set(tails)}")


def at_once(checks, parts, *arguments):
    """Runs parts of the test side by side: they mostly wait."""
    def run_part(part):
        own = Checks()
        part(own, *arguments)
        return own

    with ThreadPoolExecutor(len(parts)) as pool:
        for own in pool.map(run_part, parts):
            checks.passed += own.passed
            checks.failed += own.failed


def test():
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    checks = Checks()
    same_tail(checks)
    with Folder() as folder:
        made = run("asparse_generate", "grid2d:200", "-o", folder / "a.h5", "-q")
        whole = run("asparse_solve", folder / "a.h5", "--cols", COLUMNS, "-o", folder / "c.h5", "-q")
        assert made.returncode == whole.returncode == OK, said(made) + said(whole)
        expected = read_dense(folder / "c.h5")
        with Cluster(folder) as cluster:
            at_once(checks, (time_limit, asked, last_restart, killed_rank, usage, array), cluster, folder, expected)
            products(checks, cluster, folder, expected)
        checks.that(not cluster.state.exists(), "the cluster's folder is left")
    return checks.finish(least=70)


main(test)
