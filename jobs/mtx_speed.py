#!/usr/bin/env python3
"""Reading Matrix Market files: asparse_convert beside scipy.io.mmread, in one run on one machine.

usage: mtx_speed.py [--repeat N] ASPARSE_CONVERT [FILE.mtx ...]

Without files, two are made: the Mycielskian graph M15 (pattern, symmetric) and a 60 × 60 × 60 seven-point grid with
random values (%.17g, general). Each is read N times (default 5; scipy 2 times), plain and as .gz, and the fastest
counts. MB/s: megabytes of uncompressed text per second until the matrix is in memory: CSR for asparse_convert
(its "read_seconds"), COO for scipy.
"""
import argparse
import gzip
import json
import os
import pathlib
import platform
import subprocess
import tempfile
import time

import numpy as np
import scipy
import scipy.io


def mycielskian(levels):
    """Lower triangle, by columns, from K2 by [[A, A, 0], [A, 0, 1], [0, 1ᵀ, 0]]."""
    rows, cols, n = np.array([1]), np.array([0]), 2
    for _ in range(levels - 2):
        both = np.concatenate([rows, cols]), np.concatenate([cols, rows])
        last = np.arange(n, 2 * n)
        rows = np.concatenate([rows, both[0] + n, np.full(n, 2 * n)])
        cols = np.concatenate([cols, both[1], last])
        n = 2 * n + 1
    order = np.lexsort((rows, cols))
    return n, rows[order] + 1, cols[order] + 1


def write_mycielskian(path):
    n, rows, cols = mycielskian(15)
    with open(path, "w") as file:
        file.write(f"%%MatrixMarket matrix coordinate pattern symmetric\n{n} {n} {len(rows)}\n")
        file.writelines(f"{i} {j}\n" for i, j in zip(rows.tolist(), cols.tolist()))


def write_grid(path, side=60):
    random = np.random.default_rng(1)
    point = np.arange(side**3).reshape(side, side, side)
    pairs = [(point.ravel(), point.ravel())]
    for axis in range(3):
        low, high = np.split(point, [side - 1], axis)[0].ravel(), np.split(point, [1], axis)[1].ravel()
        pairs += [(low, high), (high, low)]
    rows, cols = np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])
    order = np.lexsort((cols, rows))
    values = random.standard_normal(len(rows))
    with open(path, "w") as file:
        file.write(f"%%MatrixMarket matrix coordinate real general\n{side**3} {side**3} {len(rows)}\n")
        file.writelines("%d %d %.17g\n" % entry
                        for entry in zip((rows[order] + 1).tolist(), (cols[order] + 1).tolist(), values.tolist()))


def seconds_asparse(program, path, output, repeat):
    times = []
    for _ in range(repeat):
        run = subprocess.run([program, "--quiet", "--json", "-", str(path), str(output)], check=True,
                             stdout=subprocess.PIPE)
        record = json.loads(run.stdout)
        times.append(record["read_seconds"])
    return min(times), record["nnz"]


def seconds_scipy(path, repeat):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        scipy.io.mmread(str(path))
        times.append(time.perf_counter() - start)
    return min(times)


def compressed(path, folder):
    target = folder / (path.name + ".gz")
    with open(path, "rb") as source, gzip.open(target, "wb", compresslevel=6) as file:
        file.write(source.read())
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("program")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    print(f"{platform.node()}, {len(os.sched_getaffinity(0))} cores, scipy {scipy.__version__}, "
          f"best of {options.repeat} (scipy: of 2)")
    print(f"{'file':28} {'text MB':>8} {'entries':>10} {'scipy s':>8} {'MB/s':>7} {'asparse s':>10} {'MB/s':>7} "
          f"{'ratio':>7}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if not options.files:
            options.files = [folder / "mycielskian15.mtx", folder / "grid60.mtx"]
            write_mycielskian(options.files[0])
            write_grid(options.files[1])
        for path in options.files:
            megabytes = path.stat().st_size / 1e6
            for variant in (path, compressed(path, folder)):
                ours, nnz = seconds_asparse(options.program, variant, folder / "matrix.h5", options.repeat)
                theirs = seconds_scipy(variant, 2)
                print(f"{variant.name:28} {megabytes:8.1f} {nnz:10} {theirs:8.2f} {megabytes / theirs:7.1f} "
                      f"{ours:10.3f} {megabytes / ours:7.1f} {theirs / ours:6.1f}x", flush=True)


if __name__ == "__main__":
    main()
