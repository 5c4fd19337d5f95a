"""asparse_partition and back: the right C from saved shards, clear words at another number of ranks."""
import json

import h5py
import numpy as np
import scipy.sparse as sp

from asparse_testing import (BRIEF, DATA_ERROR, OK, RUNTIME, USAGE, Checks, Folder, agrees, main, read_dense, run, said,
                             write_csr)

rng = np.random.default_rng(5)


def matrices():
    a = sp.random(300, 300, 0.03, format="csr", random_state=rng)
    yield "square", a
    yield "rectangular", sp.random(120, 77, 0.1, format="csr", random_state=rng)
    yield "fewer rows than parts", sp.random(3, 9, 0.5, format="csr", random_state=rng)
    yield "no entries", sp.csr_matrix((20, 20))
    blocks = sp.kron(sp.random(20, 20, 0.2, random_state=rng), np.ones((16, 16)), format="csr")
    blocks.data = rng.uniform(-1, 1, blocks.nnz)
    yield "blocks", blocks


def round_trip(checks, folder):
    methods = ["contiguous"] + (["metis"] if "METIS" in run("asparse_solve", "--version").stdout else [])
    path, out = folder / "a.h5", folder / "c.h5"
    index = 0
    for name, matrix in matrices():
        b = rng.uniform(-1, 1, (matrix.shape[1], 33))
        write_csr(path, matrix, b=b)
        for parts in (1, 3) if BRIEF else (1, 2, 3, 8):
            for method in methods:
                if method == "metis" and matrix.shape[0] != matrix.shape[1]:
                    continue
                wanted = ("auto", "csr", "wcsr", "bcsr")[index % 4]
                precision = ("fp64", "fp32", "bf16")[index % 3]
                ranks = (None, 2, 3)[index % 3]  # parts need not equal ranks
                index += 1
                label = f"{name}, {parts} parts, {method}, {wanted}, {precision}, made by {ranks or 1}"
                saved = folder / f"a.p{parts}.h5"
                result = run("asparse_partition", path, "--parts", parts, "-o", saved, "--partition", method,
                             "--format", wanted, "--precision", precision, "--cols", 33, ranks=ranks)
                if not checks.that(result.returncode == OK, f"{label}: {said(result)}"):
                    continue
                result = run("asparse_solve", saved, "--b", f"{path}::/B", "-o", out, "--json", "-", "--repeat", 1,
                             ranks=parts)
                if not checks.that(result.returncode == OK, f"{label}: {said(result)}"):
                    continue
                record = json.loads(result.stdout)
                checks.that(record["choices"]["ready_shards"], f"{label}: shards were built again")
                checks.that(record["choices"]["precision"] == precision, f"{label}: {record['choices']}")
                checks.that(record["saved_seconds"] > 0, f"{label}: no time saved reported")
                problem = agrees(read_dense(out), matrix, b, precision)
                checks.that(problem is None, f"{label}: {problem}")


def misuse(checks, folder):
    path, saved = folder / "m.h5", folder / "m.p4.h5"
    write_csr(path, sp.identity(50, format="csr"))
    result = run("asparse_partition", path, "--parts", 4, "-o", saved)
    checks.that(result.returncode == OK, said(result))
    for ranks in (1, 3):
        result = run("asparse_solve", saved, ranks=ranks)
        checks.that(result.returncode == USAGE, f"4 parts on {ranks} ranks: {said(result)}")
        for word in ("4", str(ranks), "asparse_partition"):
            checks.that(word in result.stderr, f"4 parts on {ranks} ranks, '{word}' missing: {said(result)}")
    result = run("asparse_solve", saved, "--precision", "bf16", ranks=4)
    checks.that(result.returncode == USAGE and "precision" in result.stderr, said(result))
    for arguments in ([path, "-o", saved], [path, "--parts", 4], [path, "--parts", 0, "-o", saved],
                      ["--parts", 2, "-o", saved]):
        result = run("asparse_partition", *arguments)
        checks.that(result.returncode == USAGE, f"{arguments}: {said(result)}")
    result = run("asparse_partition", path, "--parts", 2, "-o", path)
    checks.that(result.returncode == USAGE, f"output over input: {said(result)}")
    result = run("asparse_partition", path, "--parts", 2, "-o", folder / "no" / "x.h5")
    checks.that(result.returncode == RUNTIME, said(result))
    damage(checks, saved)


def datasets_of(file):
    names = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) and item.size else None)
    return names


def damage(checks, saved):
    """One number changed in any dataset of a saved partition is bad data, not a wrong result."""
    whole = saved.read_bytes()
    with h5py.File(saved) as file:
        names = datasets_of(file)
    checks.that(len(names) > 8, f"datasets: {names}")
    for name in names:
        saved.write_bytes(whole)
        with h5py.File(saved, "r+") as file:
            data = file[name][...]
            data.flat[data.size // 2] += 1
            file[name][...] = data
        result = run("asparse_solve", saved, ranks=4)
        checks.that(result.returncode == DATA_ERROR, f"changed {name}: {said(result)}")
        checks.that(result.stderr.count("error:") == 1, f"changed {name}: {said(result)}")
    saved.write_bytes(whole[: len(whole) // 2])
    result = run("asparse_solve", saved, ranks=4)
    checks.that(result.returncode == DATA_ERROR, f"truncated: {said(result)}")


def test():
    checks = Checks()
    with Folder() as folder:
        round_trip(checks, folder)
        misuse(checks, folder)
    return checks.finish(least=120)


main(test)
