"""asparse_info against SciPy: every number, the same on 1, 2 and 3 ranks; the picture; the command line."""
import json
import struct
import zlib

import numpy as np
import scipy.sparse as sp

from asparse_testing import (DATA_ERROR, NO_INPUT, OK, RUNTIME, USAGE, Checks, Folder, have_data, main, read_mtx,
                             real_matrices, run, said, write_csr)

rng = np.random.default_rng(11)


def matrices(folder):
    yield "rectangular", sp.random(150, 90, 0.05, format="csr", random_state=rng)
    yield "wide", sp.random(9, 3000, 0.02, format="csr", random_state=rng)
    square = sp.random(257, 257, 0.02, format="csr", random_state=rng)
    yield "unsymmetric", square
    yield "symmetric", sp.csr_matrix(square + square.T)
    yield "skew", sp.csr_matrix(square - square.T)
    pattern = sp.csr_matrix(square + square.T)
    pattern.data = rng.uniform(1, 2, pattern.nnz)
    yield "symmetric pattern", pattern
    yield "grid", sp.csr_matrix(sp.kronsum(sp.diags([1, -2, 1], [-1, 0, 1], (30, 30)),
                                           sp.diags([1, -2, 1], [-1, 0, 1], (40, 40))))
    yield "diagonal", sp.identity(100, format="csr")
    dense_row = sp.lil_matrix((70, 500))
    dense_row[65] = 1
    yield "one dense row", sp.csr_matrix(dense_row)
    yield "no entries", sp.csr_matrix((40, 40))
    yield "1 × 1", sp.csr_matrix(np.array([[2.0]]))
    yield "blocks", sp.csr_matrix(sp.kron(sp.random(8, 8, 0.3, random_state=rng), np.ones((32, 32))))
    for name, path in real_matrices(["suitesparse/bcsstk32", "suitesparse/ex11"], folder):
        yield name, read_mtx(path)


def degrees(counts, nnz):
    counts = np.sort(counts)
    n = len(counts)
    return {"least": int(counts[0]), "median": int(counts[(n - 1) // 2]), "largest": int(counts[-1]),
            "empty": int((counts == 0).sum()), "mean": nnz / n}


def units(a, height, width):
    """Distinct (rows // height, columns // width)."""
    coo = a.tocoo()
    return len(np.unique(coo.row.astype(np.int64) // height * (a.shape[1] + 1) + coo.col // width))


def expected(a):
    m, k = a.shape
    coo = a.tocoo()
    row, col = coo.row.astype(np.int64), coo.col.astype(np.int64)
    distance = np.abs(row - col)
    off = row != col
    wanted = {"row_degrees": degrees(np.diff(a.indptr), a.nnz),
              "column_degrees": degrees(np.bincount(col, minlength=k), a.nnz),
              "diagonal_entries": int((~off).sum()), "bandwidth": int(distance.max(initial=0)),
              "mean_distance": float(distance.mean()) if a.nnz else 0.0}
    mirrored = equal = opposite = 0
    if m == k:
        keys, mirror = row * k + col, col * k + row
        there = np.isin(mirror, keys) & off
        position = np.searchsorted(keys, mirror[there])  # a is sorted, so keys ascend
        mirrored = int(there.sum())
        equal = int((coo.data[there] == coo.data[position]).sum())
        opposite = int((coo.data[there] == -coo.data[position]).sum())
    count = int(off.sum())
    wanted["symmetry"] = {"pattern": m == k and mirrored == count, "numeric": m == k and equal == count,
                          "skew": m == k and opposite == count and count > 0, "off_diagonal": count,
                          "mirrored": mirrored, "equal": equal, "opposite": opposite}
    wanted["windows"] = []
    for h in (8, 16, 32, 64):
        columns = units(a, h, 1)
        wanted["windows"].append({"height": h, "columns": columns,
                                  "entries_per_column": a.nnz / columns if columns else 0.0,
                                  "fill": a.nnz / (columns * h) if columns else 0.0})
    wanted["blocks"] = []
    for r in (16, 32, 64):
        blocks = units(a, r, r)
        wanted["blocks"].append({"size": r, "blocks": blocks, "fill": a.nnz / (blocks * r * r) if blocks else 0.0})
    return wanted


def differs(found, wanted, where=""):
    """The first place where two JSON values differ, None if they agree (floats to 1e-12)."""
    if isinstance(wanted, dict):
        return next((d for key in wanted if (d := differs(found.get(key), wanted[key], f"{where}.{key}"))), None)
    if isinstance(wanted, list):
        if len(found) != len(wanted):
            return f"{where}: {len(found)} items instead of {len(wanted)}"
        return next((d for i, w in enumerate(wanted) if (d := differs(found[i], w, f"{where}[{i}]"))), None)
    same = np.isclose(found, wanted, rtol=1e-12, atol=0) if isinstance(wanted, float) else found == wanted
    return None if same else f"{where}: {found} instead of {wanted}"


def steady(record):
    """The record without what was measured on this host."""
    record = dict(record, advice=None)
    record["exchange"] = [{k: v for k, v in e.items() if k != "partition_seconds"} for e in record["exchange"]]
    return record


def check_numbers(checks, folder, have_metis):
    path = folder / "a.h5"
    for name, a in matrices(folder):
        a.sort_indices()
        write_csr(path, a)
        records = []
        how = ["--partition", "metis"] if have_metis and a.shape[0] == a.shape[1] else []
        for ranks in (None, 2, 3):
            result = run("asparse_info", path, "--json", "-", "--ranks", "1,2,7", "--cols", 33, *how, ranks=ranks)
            if not checks.that(result.returncode == OK, f"{name}, p={ranks}: {said(result)}"):
                continue
            records.append(json.loads(result.stdout))
            problem = differs(records[-1], expected(a))
            checks.that(problem is None, f"{name}, p={ranks}: {problem}")
            problem = differs(steady(records[-1]), steady(records[0]))
            checks.that(problem is None, f"{name}, p={ranks} against p=1: {problem}")
        if records:
            check_exchange(checks, name, a, records[0]["exchange"], 2 if how else 1)


def check_exchange(checks, name, a, exchange, methods):
    checks.that(len(exchange) == 3 * methods, f"{name}: {len(exchange)} exchanges")
    used = (np.bincount(a.indices, minlength=a.shape[1]) > 0).sum()
    for e in exchange:
        p, total, largest = e["ranks"], e["halo_rows_total"], e["halo_rows_max"]
        label = f"{name}, {p} ranks, {e['partition']}: {e}"
        checks.that(p > 1 or total == 0, label)
        checks.that(largest <= total <= p * used and total <= p * largest, label)
        checks.that(np.isclose(e["megabytes_max"], largest * 33 * 8 / 1e6), label)
        checks.that(p == 1 or np.isclose(e["fraction_of_all_gather"], total / ((p - 1) * a.shape[1])), label)
        checks.that(e["nnz_imbalance"] >= 1 and e["cost_imbalance"] >= 1, label)


def check_known_halos(checks, folder):
    """A chain of equal rows: each cut costs one row on either side. fp32 and bf16 rows are smaller."""
    path = folder / "chain.h5"
    write_csr(path, sp.diags([1.0, 2.0, 1.0], [-1, 0, 1], (640, 640), format="csr"))
    for precision, size in (("fp64", 8), ("fp32", 4), ("bf16", 2)):
        result = run("asparse_info", path, "--json", "-", "--ranks", "2,5", "--precision", precision)
        if checks.that(result.returncode == OK, said(result)):
            for e in json.loads(result.stdout)["exchange"]:
                checks.that(e["halo_rows_total"] == 2 * (e["ranks"] - 1), f"chain: {e}")
                checks.that(np.isclose(e["megabytes_max"], e["halo_rows_max"] * 128 * size / 1e6), f"chain: {e}")
    text = run("asparse_info", path, ranks=2).stdout
    for word in ("640 × 640", "1918 entries", "symmetric", "contiguous", "best:"):
        checks.that(word in text, f"'{word}' is missing in\n{text}")


def read_png(path):
    """An 8-bit gray PNG as an array."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
            assert (depth, color) == (8, 0)
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, width + 1).astype(int)
    image = np.zeros((height, width), int)
    for y, line in enumerate(lines):
        kind, above = line[0], image[y - 1] if y else np.zeros(width, int)
        for x in range(width):
            left, corner = (image[y, x - 1], above[x - 1]) if x else (0, 0)
            guess = left + above[x] - corner
            nearest = min((left, above[x], corner), key=lambda v: abs(guess - v))
            image[y, x] = (line[x + 1] + (0, left, above[x], (left + above[x]) // 2, nearest)[kind]) % 256
    return image


def check_picture(checks, folder):
    path, picture = folder / "s.h5", folder / "s.png"
    for m, k, height, width in ((100, 50, 1000, 500), (3, 1000, 16, 1000), (4096, 2048, 1024, 512), (5, 0, 1020, 16)):
        a = sp.random(m, k, 0.02, format="csr", random_state=rng) if k else sp.csr_matrix((m, 1))[:, :0]
        write_csr(path, a)
        shades = []
        for ranks in (None, 3):
            result = run("asparse_info", path, "--spy", picture, "--ranks", "1", ranks=ranks)
            if result.returncode == USAGE and "libpng" in result.stderr:
                print("note: built without libpng; pictures are not checked")
                return
            if checks.that(result.returncode == OK, f"picture of {m} × {k}: {said(result)}"):
                shades.append(read_png(picture))
        if len(shades) < 2:
            continue
        checks.that(shades[0].shape == (height, width), f"picture of {m} × {k} has {shades[0].shape} pixels")
        checks.that(np.array_equal(shades[0], shades[1]), f"picture of {m} × {k} depends on the ranks")
        if k:
            rows, cols = min(m, height), min(k, width)
            dark = np.zeros((rows, cols), bool)
            coo = a.tocoo()
            dark[coo.row.astype(int) * rows // m, coo.col.astype(int) * cols // k] = True
            y, x = np.arange(height) * rows // height, np.arange(width) * cols // width
            checks.that(np.array_equal(shades[0] < 255, dark[np.ix_(y, x)]), f"picture of {m} × {k} shows other entries")


def check_command_line(checks, folder):
    path = folder / "c.h5"
    write_csr(path, sp.random(20, 30, 0.2, format="csr", random_state=rng))
    damaged = folder / "damaged.h5"
    damaged.write_bytes(b"not HDF5")
    for arguments, code, words in (
            (["--help"], OK, "usage"), (["--version"], OK, "asparse_info"), ([], USAGE, "matrix"),
            ([path, path], USAGE, "one matrix"), ([path, "--colums", 3], USAGE, "--colums"),
            ([path, "--cols", 0], USAGE, "--cols"), ([path, "--cols", "x"], USAGE, "--cols"),
            ([path, "--ranks", "2,,4"], USAGE, "--ranks"), ([path, "--ranks", "0"], USAGE, "--ranks"),
            ([path, "--precision", "fp8"], USAGE, "--precision"), ([path, "--partition", "x"], USAGE, "--partition"),
            ([path, "--partition", "metis"], USAGE, "contiguous"), ([folder / "none.h5"], NO_INPUT, "none.h5"),
            ([damaged], DATA_ERROR, "damaged.h5"), ([path, "--json", path], USAGE, "c.h5"),
            ([path, "--json", folder / "no" / "x.json"], RUNTIME, "x.json"),
            ([path, "--spy", folder / "no" / "x.png"], RUNTIME, "x.png")):
        for ranks in (None, 2):
            result = run("asparse_info", *arguments, ranks=ranks)
            checks.that(result.returncode == code and words in result.stdout + result.stderr,
                        f"asparse_info {' '.join(map(str, arguments))}, p={ranks}: {said(result)}")
    out = folder / "record.json"
    result = run("asparse_info", path, "--json", out, ranks=2)
    checks.that(result.returncode == OK and json.loads(out.read_text())["matrix"]["rows"] == 20, said(result))
    checks.that("20 × 30" in result.stdout, said(result))


def test():
    checks = Checks()
    have_data()
    have_metis = "METIS" in run("asparse_info", "--version").stdout
    with Folder() as folder:
        check_numbers(checks, folder, have_metis)
        check_known_halos(checks, folder)
        check_picture(checks, folder)
        check_command_line(checks, folder)
    return checks.finish(least=250)


main(test)
