"""Submitting a study to Slurm: one job for each number of ranks, from a template that users edit."""
import pathlib
import shlex
import subprocess
import sys

from .study import write_whole

TEMPLATE = pathlib.Path(__file__).resolve().parent / "job.sbatch"
DRIVER = pathlib.Path(__file__).resolve().parent.parent / "scaling"


def fill(template, values):
    """Puts {name} in place; other braces are the shell's."""
    for name, value in values.items():
        template = template.replace("{" + name + "}", str(value))
    return template


def submit(study, template, dry_run):
    """A job for each number of ranks that has cases to run. Exit code: 0, or sbatch's."""
    try:
        text = template.read_text(encoding="utf-8")
    except OSError as error:
        sys.exit(f"scaling: error: --template: {error}")
    folder = study.folder / "jobs"
    folder.mkdir(exist_ok=True)
    for ranks in study.ranks():
        todo = [case for case in study.cases if case["ranks"] == ranks and not study.is_done(case)]
        if not todo:
            continue
        path = folder / f"p{ranks}.sbatch"
        driver = [sys.executable, str(DRIVER), "run", "-o", str(study.folder.resolve()), "--only-ranks", str(ranks)]
        write_whole(path, fill(text, {"ranks": ranks, "threads": max(case["threads"] for case in todo),
                                      "log": folder.resolve() / f"p{ranks}.log", "command": shlex.join(driver)}))
        print(f"{path}: {len(todo)} cases on {ranks} ranks", flush=True)
        if dry_run:
            continue
        try:
            code = subprocess.run(["sbatch", str(path)], check=False).returncode
        except OSError as error:
            sys.exit(f"scaling: error: cannot run sbatch: {error}")
        if code != 0:
            return code
    return 0
