"""A study: its cases, kept in DIR/study.json, and the records of those that are done, DIR/cases/<id>.json."""
import hashlib
import json
import os
import pathlib
import re
import shlex

from . import weak

SCHEMA = 1
PRECISIONS = {"fp64", "fp32", "bf16"}
EXCHANGES = {"auto", "rows", "replicate", "cover", "columns"}
CHOICES = {"placement": {"planner", "rows"}, "partition": {"contiguous", "metis"}, "backend": {"host", "cuda", "auto"}}


class Refused(Exception):
    """What was asked for cannot be run; the text says why."""


def write_whole(path, text):
    """The file has all of the text or is not touched."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


class Study:
    def __init__(self, folder):
        self.folder = folder
        self.records = folder / "cases"
        self.cases, self.settings = [], {}
        if (folder / "study.json").exists():
            kept = json.loads((folder / "study.json").read_text(encoding="utf-8"))
            if kept["schema"] != SCHEMA:
                raise Refused(f"{folder}/study.json has schema {kept['schema']}, this program writes {SCHEMA}")
            self.cases, self.settings = kept["cases"], kept["settings"]

    def save(self):
        self.records.mkdir(parents=True, exist_ok=True)
        kept = {"schema": SCHEMA, "settings": self.settings, "cases": self.cases}
        write_whole(self.folder / "study.json", json.dumps(kept, indent=1) + "\n")

    def record_path(self, case):
        return self.records / f"{case_id(case)}.json"

    def is_done(self, case):
        return self.record_path(case).exists()

    def ranks(self):
        return sorted({case["ranks"] for case in self.cases})

    def all_records(self):
        """Records of done cases, in the order of the study."""
        paths = (self.record_path(case) for case in self.cases)
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def case_id(case):
    """Readable, and different for every case."""
    matrix = pathlib.Path(case["matrix"]).stem if not case["generate"] else case["matrix"]
    words = [case["kind"], matrix, f"p{case['ranks']}", f"n{case['columns']}", case["precision"],
             case["exchange"] or "alone"]
    digest = hashlib.sha256(json.dumps(case, sort_keys=True).encode()).hexdigest()[:8]
    return re.sub(r"[^A-Za-z0-9.]+", "-", "_".join(words))[:90].strip("-") + "-" + digest


def is_description(text):
    return not pathlib.Path(text.split("::")[0]).exists() and text.split(":")[0] in weak.KINDS


def check_choices(options):
    for name, allowed in dict(CHOICES, precision=PRECISIONS).items():
        wrong = set(getattr(options, name)) - allowed
        if wrong:
            raise Refused(f"--{name} takes {', '.join(sorted(allowed))}, not '{wrong.pop()}'")
    for exchange in options.exchange:
        if exchange not in EXCHANGES and not re.fullmatch(r"grid:[1-9]\d*", exchange):
            raise Refused(f"--exchange takes {', '.join(sorted(EXCHANGES))}, grid:PN, not '{exchange}'")


def ways(options, ranks):
    """Exchange, placement and partition of the cases on so many ranks; alone there is nothing to choose."""
    if ranks == 1:
        yield None, None, None
        return
    for exchange in options.exchange:
        if exchange.startswith("grid:") and ranks % int(exchange[5:]):
            continue
        for placement in options.placement:
            for partition in options.partition:
                yield exchange, placement, partition


def expand(options):
    """Every combination of the options as a case; a baseline on one rank for each."""
    for kind, matrices in (("strong", options.strong), ("weak", options.weak)):
        for matrix in matrices:
            generate = is_description(matrix)
            if kind == "weak" and not generate:
                raise Refused(f"--weak takes a description ({', '.join(weak.KINDS)}), not '{matrix}'")
            if not generate and not pathlib.Path(matrix.split("::")[0]).exists():
                raise Refused(f"--strong {matrix}: no such file, and no description ({', '.join(weak.KINDS)})")
            if not generate:
                matrix = os.path.abspath(matrix)
            yield from expand_matrix(options, kind, matrix, generate)


def expand_matrix(options, kind, matrix, generate):
    for ranks in sorted({1, *options.ranks}):
        try:
            given = weak.scaled(matrix, ranks) if kind == "weak" else matrix
        except ValueError as error:
            raise Refused(f"--weak {matrix}: {error}") from None
        for columns in options.cols:
            for precision in options.precision:
                for backend in options.backend:
                    for threads in options.threads:
                        for exchange, placement, partition in ways(options, ranks):
                            yield {"kind": kind, "matrix": matrix, "input": given, "generate": generate,
                                   "ranks": ranks, "threads": threads, "columns": columns, "precision": precision,
                                   "backend": backend, "exchange": exchange, "placement": placement,
                                   "partition": partition, "repeat": options.repeat, "warmup": options.warmup,
                                   "seed": options.seed, "options": options.options}


def prepare(options, default_build):
    """The study of the folder with what the options add to it, saved. Refused: what makes no sense."""
    found = Study(options.output)
    check_choices(options)
    try:
        shlex.split(options.options)
    except ValueError as error:
        raise Refused(f"--options: {error}") from None
    known = {case_id(case) for case in found.cases}
    found.cases += [case for case in expand(options) if case_id(case) not in known]
    if not found.cases:
        raise Refused("there is nothing to run; give --strong MATRIX or --weak DESCRIPTION")
    settings = {"build": os.path.abspath(options.build or default_build), "launcher": None, "timeout": 900}
    settings.update(found.settings)
    for name in ("build", "launcher", "timeout"):
        value = getattr(options, name)
        if value is not None:
            settings[name] = os.path.abspath(value) if name == "build" else value
    found.settings = settings
    try:
        (settings["launcher"] or "").format(ranks=1, threads=1)
        shlex.split(settings["launcher"] or "")
    except (LookupError, ValueError) as error:
        raise Refused(f"--launcher knows {{ranks}} and {{threads}} only, and needs matching quotes: {error}") from None
    if not (pathlib.Path(settings["build"]) / "asparse_solve").exists():
        raise Refused(f"{settings['build']} has no asparse_solve; build it, or give --build FOLDER")
    found.save()
    return found
