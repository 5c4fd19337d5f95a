"""Records as tables: the fields of a case, how they follow from asparse_solve's report, CSV and JSON."""
import csv
import io
import json

from .study import Study

SCHEMA = 1  # raised when a field changes its name or meaning; fields may be added


def case(name):
    return lambda record: record["case"][name]


def outcome(name):
    return lambda record: record["outcome"].get(name)


def report(*path):
    """A value of asparse_solve's report; None where there is none."""
    def find(record):
        value = record["report"]
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value
    return find


def mean(name):
    """Of a quantity over ranks."""
    return lambda record: ratio(report("per_rank", name, "sum")(record), report("ranks")(record))


def imbalance(name):
    """Largest over mean of a quantity over ranks."""
    return lambda record: ratio(report("per_rank", name, "max")(record), mean(name)(record))


def ratio(above, below):
    return above / below if above is not None and below else None


def repeats(record):
    times = report("multiply", "sorted_seconds")(record)
    return None if times is None else " ".join(f"{time:.9g}" for time in times)


def predicted(record):
    """Nothing where there was no cost to predict from: shards loaded from a partition file."""
    return report("multiply", "predicted_seconds")(record) or None


def oversubscribed(record):
    share = report("machine", "core_share")(record)
    return None if share is None else share < 1


def grid(record):
    rows, columns = report("choices", "grid_rows")(record), report("choices", "grid_columns")(record)
    return None if rows is None else f"{rows}x{columns}"


def binding(record):
    places = report("machine", "binding")(record) or []
    return "; ".join(f"{place['host']}:{place['cores']}" for place in places[:64]) + ("; …" if len(places) > 64 else "")


def phase_fields():
    """(name, type, unit, meaning, value) of the phases."""
    parts = (("own_columns", "local", "multiplying own columns, while rows of B travel"),
             ("exposed_wait", "wait", "waiting for rows of B after that: exposed communication"),
             ("halo_columns", "halo", "multiplying halo columns"), ("packing", "pack", "packing rows of B to send"),
             ("layout", "layout", "B to blocks of columns and C back"))
    for name, key, words in parts:
        for how in ("mean", "max"):
            yield (f"{name}_{how}_seconds", "number", "s", f"{words}; {how} over ranks, median repeat",
                   report("phases", key, how))
    yield ("communication_max_seconds", "number", "s",
           "from the start of packing until all rows had come; max over ranks",
           report("phases", "communication", "max"))
    for key, words in (("read", "reading or generating the matrix"), ("partition", "cutting its rows"),
                       ("move", "rows to their ranks"), ("build", "choosing and building shards, exchange lists"),
                       ("b", "filling B"), ("copy", "B to the GPU and C back"), ("verify", "verification")):
        yield f"{key}_seconds", "number", "s", f"{words}; slowest rank", report("phases", key, "max")


FIELDS = [
    ("id", "string", "", "name of the case and of its record", lambda record: record["id"]),
    ("kind", "string", "", "strong or weak", case("kind")),
    ("matrix", "string", "", "file or description; weak: that of one rank", case("matrix")),
    ("input", "string", "", "what asparse_solve was given", case("input")),
    ("ranks", "integer", "", "p", case("ranks")),
    ("threads", "integer", "", "of each rank", case("threads")),
    ("columns", "integer", "", "N: columns of B and C", case("columns")),
    ("precision", "string", "", "fp64, fp32, bf16", case("precision")),
    ("exchange", "string", "", "as asked for; empty: one rank, no exchange", case("exchange")),
    ("placement", "string", "", "of B and C on a grid, as asked for", case("placement")),
    ("partition", "string", "", "as asked for", case("partition")),
    ("backend", "string", "", "as asked for", case("backend")),
    ("seed", "integer", "", "of a generated A, of B and of verification", case("seed")),
    ("options", "string", "", "further options of asparse_solve", case("options")),
    ("status", "string", "", "ok, failed, timeout", outcome("status")),
    ("exit_code", "integer", "", "of the launcher; empty after a timeout", outcome("exit_code")),
    ("signal", "integer", "", "that ended the program, where one did", outcome("signal")),
    ("message", "string", "", "what it said when it failed", outcome("message")),
    ("median_seconds", "number", "s", "of a multiplication, slowest rank, over repeats",
     report("multiply", "median_seconds")),
    ("min_seconds", "number", "s", "the fastest repeat", report("multiply", "min_seconds")),
    ("max_seconds", "number", "s", "the slowest repeat", report("multiply", "max_seconds")),
    ("repeat_seconds", "string", "s", "all repeats, ascending, separated by spaces", repeats),
    ("gflops", "number", "GFLOP/s", "2 nnz N / median_seconds", report("multiply", "gflops")),
    ("speedup", "number", "", "strong: baseline's median_seconds / this; weak: this gflops / baseline's", None),
    ("efficiency", "number", "", "speedup / ranks", None),
    ("baseline", "string", "", "id of the case on one rank that these are over", None),
    ("predicted_seconds", "number", "s", "of a multiplication, by cost model and links", predicted),
    ("predicted_over_measured", "number", "", "predicted_seconds / median_seconds",
     lambda record: ratio(predicted(record), report("multiply", "median_seconds")(record))),
    *phase_fields(),
    ("rows", "integer", "", "of A and C", report("matrix", "rows")),
    ("b_rows", "integer", "", "columns of A, rows of B", report("matrix", "columns")),
    ("nnz", "integer", "", "entries of A", report("matrix", "nnz")),
    ("nnz_per_rank", "number", "", "nnz / ranks", lambda record: ratio(report("matrix", "nnz")(record),
                                                                       report("ranks")(record))),
    ("nnz_max_over_mean", "number", "", "entries multiplied by a rank", imbalance("nnz")),
    ("cost_max_over_mean", "number", "", "predicted cost of a part", report("balance", "cost_max_over_mean")),
    ("bytes_received_max", "integer", "B", "a multiplication, by the exchange, rank with most",
     report("per_rank", "bytes_received", "max")),
    ("bytes_received_mean", "number", "B", "… mean over ranks", mean("bytes_received")),
    ("bytes_received_max_over_mean", "number", "", "", imbalance("bytes_received")),
    ("bytes_sent_max", "integer", "B", "… sent, rank with most", report("per_rank", "bytes_sent", "max")),
    ("layout_bytes_received_max", "integer", "B", "for the change of layout, rank with most",
     report("per_rank", "layout_bytes_received", "max")),
    ("layout_bytes_received_mean", "number", "B", "… mean over ranks", mean("layout_bytes_received")),
    ("replicate_bytes", "number", "B", "what all ranks would receive were all of B brought to each",
     report("balance", "replicate_bytes")),
    ("memory_max_bytes", "integer", "B", "largest sum of the program's own arrays, rank with most",
     report("per_rank", "peak_bytes", "max")),
    ("resident_max_bytes", "integer", "B", "largest resident set, rank with most",
     report("per_rank", "rss_bytes", "max")),
    ("gpu_memory_max_bytes", "integer", "B", "shards and workspace on the GPU, rank with most",
     report("per_rank", "device_bytes", "max")),
    ("verified", "boolean", "", "C passed verification", report("verification", "passed")),
    ("error_over_bound", "number", "", "largest |error| / rigorous bound; at most 1",
     report("verification", "error_over_bound")),
    ("max_relative_error", "number", "", "largest |error| / (|A||B|) of the elements checked",
     report("verification", "max_relative_error")),
    ("exchange_used", "string", "", "rows, replicate, cover, columns, grid", report("choices", "exchange")),
    ("grid", "string", "", "row parts x column blocks", grid),
    ("chunks", "integer", "", "chunks of columns that rows of B came in", report("choices", "chunks")),
    ("format", "string", "", "of the own columns' shards", report("choices", "format")),
    ("kernel", "string", "", "", report("choices", "kernel")),
    ("backend_used", "string", "", "host or cuda", report("choices", "backend")),
    ("transport", "string", "", "what rows of B travelled by", report("choices", "transport")),
    ("isa", "string", "", "instruction set of the host kernels", report("choices", "isa")),
    ("hosts", "string", "", "each once, separated by commas", report("hosts")),
    ("n_hosts", "integer", "", "", report("machine", "hosts")),
    ("cpu", "string", "", "processor of rank 0's host", report("machine", "cpu")),
    ("device", "string", "", "GPU", report("choices", "device")),
    ("cores_min", "integer", "", "cores that a rank may run on (sched_getaffinity), fewest",
     report("per_rank", "cores", "min")),
    ("cores_max", "integer", "", "… most", report("per_rank", "cores", "max")),
    ("binding", "string", "", "host:cores of each rank, the first 64", binding),
    ("oversubscribed", "boolean", "", "more threads than cores", oversubscribed),
    ("version", "string", "", "of asparse", report("versions", "asparse")),
    ("compiler", "string", "", "", report("versions", "compiler")),
    ("build", "string", "", "", report("versions", "build")),
    ("mpi", "string", "", "", report("versions", "mpi")),
    ("started", "string", "", "UTC", lambda record: record["started"]),
    ("wall_seconds", "number", "s", "of the whole run, start and end included", lambda record: record["wall_seconds"]),
    ("slurm_job", "string", "", "where it ran in one", lambda record: record["slurm_job"]),
    ("command", "string", "", "as it was run", lambda record: record["command"]),
]


SHORT = ("matrix", "n", "p", "kind", "placement", "mode", "chunks", "time_ms", "speedup", "exposed_fraction",
         "predicted_ms", "bytes_max")


def schema():
    fields = [{"name": name, "type": kind, "unit": unit, "meaning": meaning} for name, kind, unit, meaning, _ in FIELDS]
    return {"schema": SCHEMA, "program": "jobs/scaling", "fields": fields}


BASELINE_KEY = ("kind", "matrix", "columns", "precision", "backend", "threads", "seed", "options")


def baseline_key(row):
    """Cases with the same key have the same baseline."""
    return tuple(row[name] for name in BASELINE_KEY)


def add_speedups(rows):
    alone = {baseline_key(row): row for row in rows if row["ranks"] == 1 and row["status"] == "ok"}
    for row in rows:
        base = alone.get(baseline_key(row))
        if base is None or row["status"] != "ok":
            continue
        row["baseline"] = base["id"]
        row["speedup"] = (ratio(base["median_seconds"], row["median_seconds"]) if row["kind"] == "strong"
                          else ratio(row["gflops"], base["gflops"]))
        row["efficiency"] = ratio(row["speedup"], row["ranks"])


def rows_of(found):
    """One dictionary of all fields a record; None where a case has no such value."""
    rows = [{name: value(record) if value else None for name, _, _, _, value in FIELDS} for record in found]
    add_speedups(rows)
    return rows


def to_csv(rows):
    """Empty: None. One line a case."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [field[0] for field in FIELDS], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: int(value) if isinstance(value, bool) else value for name, value in row.items()})
    return out.getvalue()


def short(row):
    """What a table in a paper holds of a case."""
    used = row["exchange_used"] if row["exchange"] else "none"
    exposed, received, layout = (row[name] for name in ("exposed_wait_max_seconds", "bytes_received_max",
                                                        "layout_bytes_received_max"))
    return {"matrix": row["matrix"], "n": row["columns"], "p": row["ranks"], "kind": row["kind"],
            "placement": row["placement"], "mode": f"grid {row['grid']}" if used == "grid" else used,
            "chunks": row["chunks"], "time_ms": in_ms(row["median_seconds"]), "speedup": row["speedup"],
            "exposed_fraction": ratio(exposed, row["median_seconds"]), "predicted_ms": in_ms(row["predicted_seconds"]),
            "bytes_max": None if received is None else received + layout}


def in_ms(seconds):
    return None if seconds is None else 1e3 * seconds


def to_short_csv(rows):
    """Twelve fields of the cases that ended well."""
    out = io.StringIO()
    kept = [short(row) for row in rows if row["status"] == "ok"]
    writer = csv.DictWriter(out, SHORT, lineterminator="\n")
    writer.writeheader()
    for row in kept:
        writer.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()})
    return out.getvalue()


def to_json(rows):
    return json.dumps({"schema": SCHEMA, "program": "jobs/scaling", "cases": rows}, indent=1, ensure_ascii=False) + "\n"


def load(path):
    """Rows of a study's folder, or of what it exported as JSON. OSError, ValueError."""
    if path.is_dir():
        if not (path / "study.json").exists():
            raise ValueError("there is no study.json")
        return rows_of(Study(path).all_records())
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept.get("program") != "jobs/scaling" or kept.get("schema") != SCHEMA:
        raise ValueError(f"not schema {SCHEMA} of jobs/scaling")
    return kept["cases"]
