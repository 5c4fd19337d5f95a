"""Measurements for Extra-P, which fits performance models: JSON lines, one for each repeat and metric.

Extra-P wants every call path at every point (p, or p and n where N varies): a call path here is a series of cases with
the run on one rank as its first point, and series that lack a point are left out.
"""
import json

from .figures import SERIES_KEY, matrix_name, varying
from .records import baseline_key

METRICS = ("own_columns_max_seconds", "exposed_wait_max_seconds", "halo_columns_max_seconds", "packing_max_seconds",
           "layout_max_seconds", "bytes_received_max", "memory_max_bytes")
OTHERS = ("kind", "matrix", "precision", "backend", "threads", "seed", "options", *SERIES_KEY)


def series_of(rows):
    """Name of a call path → {(p, n): row}."""
    good = [row for row in rows if row["status"] == "ok"]
    names = varying([row for row in good if row["ranks"] > 1], OTHERS)
    alone = {baseline_key(row): row for row in good if row["ranks"] == 1}
    found = {}
    for row in good:
        if row["ranks"] > 1:
            words = [matrix_name(row) if name == "matrix" else str(row[name]) for name in names]
            points = found.setdefault(" ".join(words) or "multiply", {})
            for one in filter(None, (row, alone.get(baseline_key(row)))):
                points[one["ranks"], one["columns"]] = one
    return found


def lines_of(name, points, with_n):
    for (p, n), row in sorted(points.items()):
        params = {"p": p, "n": n} if with_n else {"p": p}
        for seconds in row["repeat_seconds"].split():
            yield {"params": params, "callpath": name, "metric": "time", "value": float(seconds)}
        for metric in METRICS:
            yield {"params": params, "callpath": name, "metric": metric, "value": row[metric]}


def to_lines(rows):
    """(text, names of the series left out)."""
    found = series_of(rows)
    every = {point for points in found.values() for point in points}
    left_out = [name for name, points in found.items() if set(points) != every]
    with_n = len({n for _, n in every}) > 1
    lines = (line for name, points in found.items() if name not in left_out for line in lines_of(name, points, with_n))
    return "".join(json.dumps(line) + "\n" for line in lines), left_out
