"""Running cases: one after the other, each with a time limit, each leaving one whole record or none."""
import ctypes
import datetime
import fcntl
import itertools
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import time

from . import records
from .study import SCHEMA, case_id, write_whole

INTERRUPTED = 85  # exit code of a program, and of this one, that is to be run again
GRACE_SECONDS = 10
ROOT = str(pathlib.Path(__file__).resolve().parent.parent.parent)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interrupted(Exception):
    """A signal asks this program to end."""


def launcher(template, ranks, threads):
    """The words before the program: the template's, else Slurm's in an allocation, else Open MPI's."""
    if template is None and "SLURM_JOB_ID" in os.environ:
        template = "srun --ntasks={ranks} --cpus-per-task={threads} --cpu-bind=cores --kill-on-bad-exit=1"
    elif template is None and ranks * threads > len(os.sched_getaffinity(0)):
        template = "mpirun -np {ranks} --oversubscribe --bind-to none"
    elif template is None:
        template = "mpirun -np {ranks} --map-by slot:PE={threads} --bind-to core"
    return [word.format(ranks=ranks, threads=threads) for word in shlex.split(template)]


def command(case, settings, report):
    words = launcher(settings["launcher"], case["ranks"], case["threads"])
    words.append(str(pathlib.Path(settings["build"]) / "asparse_solve"))
    words += ["--generate", case["input"]] if case["generate"] else [case["input"]]
    for name in ("columns", "precision", "backend", "threads", "repeat", "warmup", "seed", "placement", "partition"):
        if case[name] is not None:
            words += ["--cols" if name == "columns" else f"--{name}", str(case[name])]
    if case["exchange"] and case["exchange"].startswith("grid:"):
        columns = int(case["exchange"][5:])
        words += ["--grid", f"{case['ranks'] // columns}x{columns}"]
    elif case["exchange"]:
        words += ["--exchange", case["exchange"]]
    return words + shlex.split(case["options"]) + ["--quiet", "--json", str(report)]


def end_with_parent():
    """In the child: should this program be killed, its launcher ends as well."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def stop(process):
    """Ends the launcher and its ranks: politely, then not."""
    process.terminate()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def execute(words, timeout, errors):
    """(exit code or None after the time limit, seconds). Standard error goes to the file errors."""
    start = time.monotonic()
    with open(errors, "wb") as file:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file,
                                   start_new_session=True, preexec_fn=end_with_parent)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            stop(process)
            code = None
        except BaseException:
            stop(process)
            raise
    return code, time.monotonic() - start


def outcome(code, timeout, errors):
    """What became of a case: status, exit code, signal and message."""
    said = errors.read_text(encoding="utf-8", errors="replace")
    found = re.search(r"signal (\d+)", said)
    number = -code if code is not None and code < 0 else int(found.group(1)) if code and found else None
    if code == 0:
        return {"status": "ok", "exit_code": 0, "signal": None, "message": ""}
    if code is None:
        return {"status": "timeout", "exit_code": None, "signal": None,
                "message": f"not done after {timeout:g} s, ended"}
    lines = [line.strip() for line in said.splitlines() if re.search(r"\w", line)]
    errors_said = [line for line in lines if "error:" in line] or lines[-1:] or ["no message"]
    return {"status": "failed", "exit_code": code, "signal": number, "message": errors_said[0][:500],
            "stderr": said[-4000:]}


def run_case(study, case):
    """Runs one case and writes its record, which is returned; None: it was interrupted and is to be run again."""
    name = case_id(case)
    report = study.records / f".{name}.{os.getpid()}.report"
    errors = study.records / f".{name}.{os.getpid()}.stderr"
    words = command(case, study.settings, report)
    started = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        try:
            code, seconds = execute(words, study.settings["timeout"], errors)
        except OSError as error:
            code, seconds = 127, 0.0
            errors.write_text(f"error: cannot start {words[0]}: {error}\n", encoding="utf-8")
        result = outcome(code, study.settings["timeout"], errors)
        found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else None
        if code == INTERRUPTED or (found and found.get("interrupted")):
            return None
        if code == 0 and found is None:
            result.update(status="failed", message="exit code 0, but no report")
        record = {"schema": SCHEMA, "id": name, "case": case, "outcome": result, "started": started,
                  "wall_seconds": seconds, "command": shlex.join(clean(words, report)),
                  "driver_host": socket.gethostname(), "slurm_job": os.environ.get("SLURM_JOB_ID"), "report": found}
        write_whole(study.record_path(case), json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        return record
    finally:
        for path in (report, errors):
            path.unlink(missing_ok=True)


def clean(words, report):
    """The command as somebody else would type it in a clone of this repository."""
    names = {str(report): "report.json"}
    return [names.get(word, word[len(ROOT) + 1:] if word.startswith(ROOT + os.sep) else word) for word in words]


def lock(study, ranks):
    """An open file whose lock says that this program runs the cases of so many ranks; None: another one does."""
    file = open(study.folder / f".p{ranks}.lock", "w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except OSError:
        pass  # a file system without locks: two drivers are then the user's to avoid
    return file


def is_wanted(study, case, again):
    """Has it no record, or one of a failure that is to be tried again?"""
    if not study.is_done(case):
        return True
    return again and json.loads(study.record_path(case).read_text(encoding="utf-8"))["outcome"]["status"] != "ok"


def clear_left_behind(study, ranks):
    """What a killed driver left of the cases of so many ranks; the lock is held."""
    for case in study.cases:
        if case["ranks"] == ranks:
            for path in study.records.glob(f".{case_id(case)}.*"):
                path.unlink(missing_ok=True)


def run_ranks(study, ranks, again, progress):
    """Runs the wanted cases of so many ranks; how many of them are still to be run."""
    held = lock(study, ranks)
    if held is None:
        print(f"p = {ranks}: another driver is running these cases", flush=True)
        return 0
    left = 0
    with held:
        clear_left_behind(study, ranks)
        for case in study.cases:
            if case["ranks"] == ranks and is_wanted(study, case, again):
                progress(case)
                record = run_case(study, case)
                left += record is None
                print("  " + describe(record), flush=True)
    return left


def describe(record):
    if record is None:
        return "interrupted; to be run again"
    if record["outcome"]["status"] != "ok":
        return f"{record['outcome']['status']}: {record['outcome']['message']}"
    multiply = record["report"]["multiply"]
    return f"{multiply['median_seconds'] * 1e3:.4g} ms, {multiply['gflops']:.4g} GFLOP/s"


def on_signal(number, _frame):
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Interrupted(signal.Signals(number).name)


def run(study, only_ranks, again):
    """All cases that are not done; exit code 0 when all are, 85 when some are to be run again."""
    wanted = only_ranks or study.ranks()
    for number in SIGNALS:
        signal.signal(number, on_signal)
    total = sum(case["ranks"] in wanted and is_wanted(study, case, again) for case in study.cases)
    print(f"{study.folder}: {total} of {len(study.cases)} cases to run", flush=True)
    count = itertools.count(1)

    def progress(case):
        print(f"[{next(count)}/{total}] {case_id(case)}", flush=True)

    try:
        left = sum(run_ranks(study, ranks, again, progress) for ranks in wanted)
    except Interrupted as name:
        print(f"{name}: stopped; the same command goes on from here", flush=True)
        return INTERRUPTED
    rows = records.rows_of(study.all_records())
    write_whole(study.folder / "scaling.csv", records.to_csv(rows))
    write_whole(study.folder / "scaling.json", records.to_json(rows))
    failed = sum(row["status"] != "ok" for row in rows)
    print(f"{len(rows)} of {len(study.cases)} cases done, {failed} of them failed; {study.folder}/scaling.csv, .json")
    return INTERRUPTED if left else 0
