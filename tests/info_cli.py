"""asparse_info against SciPy: every number, the same on 1, 2 and 3 ranks; the picture; the command line."""
import json
import struct
import zlib

import numpy as np
import scipy.sparse as sp

from asparse_testing import (BRIEF, DATA_ERROR, NO_INPUT, OK, RUNTIME, USAGE, Checks, Folder, have_data, main, read_mtx,
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


def without_times(table):
    return {k: v for k, v in table.items() if k not in ("partition_seconds", "modes")} | {
        "modes": [{k: v for k, v in mode.items() if k != "chosen" and not k.endswith("_seconds")}
                  for mode in table["modes"]]}


def steady(record):
    """The record without what was measured on this host."""
    return dict(record, advice=None, exchange=[without_times(e) for e in record["exchange"]])


def check_numbers(checks, folder, have_metis):
    path = folder / "a.h5"
    for name, a in matrices(folder):
        a.sort_indices()
        write_csr(path, a)
        records = []
        how = ["--partition", "metis"] if have_metis and a.shape[0] == a.shape[1] else []
        for ranks in (None, 3) if BRIEF else (None, 2, 3):
            result = run("asparse_info", path, "--json", "-", "--ranks", "1,2,12", "--cols", 33, "--link",
                         "1e9,1e-6", *how, ranks=ranks)
            if not checks.that(result.returncode == OK, f"{name}, p={ranks}: {said(result)}"):
                continue
            records.append(json.loads(result.stdout))
            problem = differs(records[-1], expected(a))
            checks.that(problem is None, f"{name}, p={ranks}: {problem}")
            problem = differs(steady(records[-1]), steady(records[0]))
            checks.that(problem is None, f"{name}, p={ranks} against p=1: {problem}")
        if records:
            check_exchange(checks, name, a, records[0]["exchange"], 2 if how else 1)


def ways(table):
    return {(mode["mode"], mode["grid_rows"], mode["grid_columns"]): mode for mode in table["modes"]}


def check_exchange(checks, name, a, exchange, methods):
    checks.that(len(exchange) == 3 * methods, f"{name}: {len(exchange)} exchanges")
    for table in exchange:
        label = f"{name}, {table['ranks']} ranks, {table['partition']}"
        check_table(checks, label, a, table)
    for table in exchange:  # parts of a grid are those of as many ranks
        for smaller in exchange:
            check_grid(checks, f"{name}, {table['ranks']} ranks, {table['partition']}", table, smaller)


def block_start(n, blocks, j):
    """Of n columns in blocks: multiples of 8 where every block gets that many."""
    units = -(-n // 8)
    even = lambda count: count // blocks * j + min(j, count % blocks)
    return even(n) if units < blocks else min(8 * even(units), n)


def check_table(checks, label, a, table):
    p, modes = table["ranks"], ways(table)
    (m, k), wanted = a.shape, {("rows", p, 1)}
    if p > 1:
        wanted |= {("replicate", p, 1), ("cover", p, 1), ("columns", 1, p)}
        wanted |= {("grid", i, p // i) for i in range(2, p) if p % i == 0}
    if not checks.that(set(modes) == wanted, f"{label}: {set(modes)}"):
        return
    checks.that(table["nnz_imbalance"] >= 1 and table["cost_imbalance"] >= 1, f"{label}: {table}")
    best = [mode for mode in modes.values() if mode["chosen"]]
    checks.that(len(best) == 1 and all(0.98 * best[0]["predicted_seconds"] <= mode["predicted_seconds"]
                                       for mode in modes.values()), f"{label}: chosen {best}")
    for key, mode in modes.items():
        checks.that(mode["exact"] and mode["bytes_received_max"] <= mode["bytes_received_total"] <=
                    p * mode["bytes_received_max"], f"{label}: {mode}")
        checks.that(mode["bytes_received_total"] <= (p - 1) * k * 33 * 8, f"{label}: {mode}")
        slowest = max(mode["compute_seconds"], mode["exchange_seconds"], mode["layout_seconds"])
        checks.that(slowest * (1 - 1e-9) <= mode["predicted_seconds"] <=
                    (mode["compute_seconds"] + mode["exchange_seconds"] + mode["layout_seconds"]) * (1 + 1e-9),
                    f"{label}: {mode}")
        exchange = 1e-6 * mode["messages_max"] + max(mode["bytes_received_max"], mode["bytes_sent_max"]) / 1e9
        checks.that(mode["exchange_seconds"] <= exchange * (1 + 1e-9), f"{label}: {mode}")
    if p == 1:
        return
    total = {key[0]: mode["bytes_received_total"] for key, mode in modes.items()}
    checks.that(total["cover"] <= total["rows"] <= total["replicate"] == (p - 1) * k * 33 * 8, f"{label}: {total}")
    checks.that(total["columns"] == 0, f"{label}: {total}")
    # Of each element of B and C the rank whose block it is in or whose slice it is in receives it, unless they are one.
    columns = modes["columns", 1, p]
    starts = [block_start(33, p, j) for j in range(p + 1)]
    kept = sum((starts[j + 1] - starts[j]) * (rows // p + (j < rows % p)) for j in range(p) for rows in (m, k))
    checks.that(columns["layout_bytes_total"] == ((m + k) * 33 - kept) * 8, f"{label}: {columns}")


def check_grid(checks, label, table, smaller):
    p, parts = table["ranks"], smaller["ranks"]
    grid = ways(table).get(("grid", parts, p // parts))
    if grid and table["partition"] == smaller["partition"]:
        rows = ways(smaller)["rows", parts, 1]
        checks.that(grid["bytes_received_total"] == rows["bytes_received_total"], f"{label}: {grid}, {rows}")


def check_known_halos(checks, folder):
    """A chain of equal rows: each cut costs one row on either side. fp32 and bf16 rows are smaller."""
    path = folder / "chain.h5"
    write_csr(path, sp.diags([1.0, 2.0, 1.0], [-1, 0, 1], (640, 640), format="csr"))
    for precision, size in (("fp64", 8), ("fp32", 4), ("bf16", 2)):
        result = run("asparse_info", path, "--json", "-", "--ranks", "2,5", "--precision", precision)
        if checks.that(result.returncode == OK, said(result)):
            for e in json.loads(result.stdout)["exchange"]:
                for mode in ("rows", "cover"):
                    way, cuts = ways(e)[mode, e["ranks"], 1], e["ranks"] - 1
                    checks.that(way["rows_total"] == 2 * cuts and way["messages_total"] == 2 * cuts, f"chain: {way}")
                    checks.that(way["bytes_received_total"] == 2 * cuts * 128 * size, f"chain: {way}")
                    checks.that(way["bytes_received_max"] == way["rows_max"] * 128 * size, f"chain: {way}")
    text = run("asparse_info", path, ranks=2).stdout
    for word in ("640 × 640", "1918 entries", "symmetric", "contiguous", "best:", "replicate", "cover", "grid 2 × 2"):
        checks.that(word in text, f"'{word}' is missing in\n{text}")


def check_known_covers(checks, folder):
    """A dense row and a dense column: with covers one row a pair of ranks, where rows need all the others of B."""
    n, path = 600, folder / "arrow.h5"
    a = sp.lil_matrix((n, n))
    a.setdiag(1)
    a[0, :] = 1
    a[:, 0] = 1
    write_csr(path, sp.csr_matrix(a))
    result = run("asparse_info", path, "--json", "-", "--ranks", "4", ranks=2)
    if checks.that(result.returncode == OK, said(result)):
        table, = json.loads(result.stdout)["exchange"]
        rows, cover = ways(table)["rows", 4, 1], ways(table)["cover", 4, 1]
        checks.that(cover["rows_total"] == 6, f"arrow: {cover}")  # to part 0 partial rows of C, from it row 0 of B
        checks.that(rows["rows_total"] >= n // 4 + 3, f"arrow: {rows}")


def check_against_runs(checks, folder, have_metis):
    """What 1 rank says of 3 and 4 is what 3 and 4 ranks count when they multiply."""
    path = folder / "run.h5"
    square = sp.random(401, 401, 0.02, format="csr", random_state=rng) + sp.identity(401)
    for a in (sp.csr_matrix(square), sp.random(210, 333, 0.03, format="csr", random_state=rng)):
        write_csr(path, a)
        for partition in ["contiguous"] + ["metis"] * (have_metis and a.shape[0] == a.shape[1]):
            said_before = run("asparse_info", path, "--json", "-", "--cols", 9, "--ranks", "3,4", "--partition", partition)
            tables = [t for t in json.loads(said_before.stdout)["exchange"] if t["partition"] == partition]
            for table in tables:
                for mode in ("rows", "replicate"):
                    result = run("asparse_solve", path, "--json", "-", "-q", "--cols", 9, "--exchange", mode,
                                 "--partition", partition, ranks=table["ranks"])
                    counted, way = json.loads(result.stdout)["per_rank"], ways(table)[mode, table["ranks"], 1]
                    for name in ("received", "sent"):
                        largest = counted[f"bytes_{name}"]["max"]
                        checks.that(largest == way[f"bytes_{name}_max"], f"{partition}: {counted}, {way}")
                    checks.that(counted["bytes_received"]["sum"] == way["bytes_received_total"],
                                f"{partition}: {counted}, {way}")


def check_links(checks, folder):
    """A slower link takes longer; on a GPU less; operands in place need no layout."""
    path = folder / "links.h5"
    write_csr(path, sp.random(3000, 3000, 0.01, format="csr", random_state=rng))
    times = {}
    for how in ("shared", "nvlink", "infiniband", "1e6", "1e6,1", "1e13"):
        result = run("asparse_info", path, "--json", "-", "--ranks", 4, "--link", how, "--device", "--precision", "bf16")
        if checks.that(result.returncode == OK, said(result)):
            record = json.loads(result.stdout)
            checks.that(record["advice"]["device"] == "H200", f"{record['advice']}")
            times[how] = ways(record["exchange"][0])
    rows = [times[how]["rows", 4, 1]["predicted_seconds"] for how in ("1e13", "nvlink", "shared", "1e6", "1e6,1")]
    checks.that(rows == sorted(rows) and rows[0] < 1e-3 < rows[3] and rows[4] > 3, f"times of rows: {rows}")
    checks.that(times["1e6"]["columns", 1, 4]["chosen"], f"{times['1e6']}")
    machine = ["--node", 2, "--link", "1e13", "--network", "1e6"]
    result = run("asparse_info", path, "--json", "-", "--ranks", "2,4", "--device", *machine)
    if checks.that(result.returncode == OK, said(result)):
        rates = [table["link_bytes_per_second"] for table in json.loads(result.stdout)["exchange"]]
        checks.that(rates == [1e13, 1e6], f"links within a node of 2 and beyond: {rates}")
    result = run("asparse_info", path, "--ranks", "1,2,4", *machine)
    checks.that(result.returncode == OK and "beyond 2 ranks the time falls by less than 5 %" in result.stdout,
                said(result))
    result = run("asparse_info", path, "--network", "fast")
    checks.that(result.returncode == USAGE and "--network takes" in result.stderr, said(result))
    result = run("asparse_info", path, "--json", "-", "--ranks", "4", "--placement", "planner", "--link", "1e6")
    if checks.that(result.returncode == OK, said(result)):
        way = ways(json.loads(result.stdout)["exchange"][0])["columns", 1, 4]
        checks.that(way["layout_seconds"] == 0 and np.isclose(way["predicted_seconds"], way["compute_seconds"]),
                    f"{way}")


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
            ([path, "--ranks", "70000"], USAGE, "--ranks"), ([path, "--link", "fast"], USAGE, "--link"),
            ([path, "--link", "0"], USAGE, "--link"), ([path, "--link", "1e9,"], USAGE, "--link"),
            ([path, "--link", "1e9,-1"], USAGE, "--link"), ([path, "--link", "1e9,1e-6x"], USAGE, "--link"),
            ([path, "--placement", "columns"], USAGE, "--placement"), ([path, "--device"], OK, "H200"),
            ([path, "--precision", "fp8"], USAGE, "--precision"), ([path, "--partition", "x"], USAGE, "--partition"),
            ([path, "--partition", "metis"], OK, "without metis"), ([folder / "none.h5"], NO_INPUT, "none.h5"),
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
        check_known_covers(checks, folder)
        check_against_runs(checks, folder, have_metis)
        check_links(checks, folder)
        check_picture(checks, folder)
        check_command_line(checks, folder)
    return checks.finish(least=250)


main(test)
