"""Measurements for Extra-P, which fits performance models: JSON lines, one for each repeat and metric."""
import json

from .study import is_description
import pathlib


def lines_of(row):
    name = row["matrix"] if is_description(row["matrix"]) else pathlib.Path(row["matrix"]).stem
    where = f"{row['kind']} {name} {row['precision']} {row['exchange'] or 'alone'}"
    params = {"p": row["ranks"], "n": row["columns"]}
    for seconds in row["repeat_seconds"].split():
        yield {"params": params, "callpath": where, "metric": "time", "value": float(seconds)}
    for metric in ("own_columns_max_seconds", "exposed_wait_max_seconds", "halo_columns_max_seconds",
                   "packing_max_seconds", "layout_max_seconds", "bytes_received_max", "memory_max_bytes"):
        yield {"params": params, "callpath": f"{where}->{metric.rsplit('_max', 1)[0]}", "metric": metric,
               "value": row[metric]}


def to_lines(rows):
    found = (line for row in rows if row["status"] == "ok" for line in lines_of(row))
    return "".join(json.dumps(line) + "\n" for line in found)
