"""asparse_convert against scipy.io.mmread, element by element: equal to the last bit.

Small matrices that are made here are always compared; with the real data also a dozen real matrices. The files that
other programs wrote are io_files.py's.
"""
import gzip
import io
import json

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from asparse_testing import OK, Checks, Folder, have_data, main, real_matrices, run, said
from reference_readers import read_scipy

MATRICES = ("suitesparse/ACTIVSg10K", "suitesparse/bcsstk28", "suitesparse/commanche_dual", "suitesparse/e20r0100",
            "gnn/fb100_Reed98", "suitesparse/jagmesh7", "suitesparse/lowThrust_12", "chemistry/ntpoly_input512",
            "circuit/trilinos_basker_matrix1", "gnn/polblogs", "suitesparse/west2021", "suitesparse/zenios")


def read_hdf5(path):
    with h5py.File(path) as file:
        header = json.loads(file.attrs["binsparse"])["binsparse"]
        indices = file["indices_1"][:].astype(np.int64)
        values = file["values"][:]
        if header["data_types"]["values"].startswith("iso["):
            values = np.full(len(indices), values[0])
        pointers = file["pointers_to_1"][:].astype(np.int64)
        return sp.csr_matrix((values.astype(np.float64), indices, pointers), shape=tuple(header["shape"]))


def difference(ours, theirs):
    """What differs, or ''. Explicit zeros count as entries."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, scipy {theirs.shape}"
    if not np.array_equal(ours.indptr, theirs.indptr) or not np.array_equal(ours.indices, theirs.indices):
        return f"{ours.nnz} entries at other places than scipy's {theirs.nnz}"
    unequal = np.flatnonzero((ours.data != theirs.data) & ~(np.isnan(ours.data) & np.isnan(theirs.data)))
    if len(unequal):
        return f"{len(unequal)} values, the first {ours.data[unequal[0]]!r}, scipy {theirs.data[unequal[0]]!r}"
    return ""


def check_equal(checks, name, path, output, content):
    result = run("asparse_convert", "--quiet", path, output)
    if checks.that(result.returncode == OK, f"{name}: {said(result)}"):
        reason = difference(read_hdf5(output), read_scipy(content))
        checks.that(not reason, f"{name}: {reason}")


def small_cases():
    """(name, content), most of them as scipy.io.mmwrite writes them."""
    random = np.random.default_rng(1)
    general = sp.random(97, 53, 0.05, random_state=2, data_rvs=random.standard_normal).tocoo()
    square = sp.random(80, 80, 0.05, random_state=3, data_rvs=random.standard_normal)
    large = sp.random(3000, 2000, 0.02, random_state=4, data_rvs=random.standard_normal).tocoo()
    order = random.permutation(large.nnz)
    shuffled = sp.coo_matrix((large.data[order], (large.row[order], large.col[order])), large.shape)
    cases = [("general", general, {}), ("17 digits", general, {"precision": 17}),
             ("symmetric", square + square.T, {"symmetry": "symmetric"}),
             ("skew", square - square.T, {"symmetry": "skew-symmetric"}),
             ("pattern", general, {"field": "pattern"}),
             ("integer", (general * 1000).astype(np.int64), {}),
             ("shuffled", shuffled, {"precision": 17}),
             ("array", np.round(random.standard_normal((30, 20)), 1), {}),
             ("array symmetric", np.add.outer(np.arange(9.0), np.arange(9.0)), {"symmetry": "symmetric"}),
             ("one dense row", sp.coo_matrix(np.eye(1, 50, 7) + np.ones((1, 50))), {}),
             ("no entries", sp.coo_matrix((5, 4)), {}), ("1 x 1", sp.coo_matrix([[3.0]]), {})]
    yield "pattern with duplicates", b"%%MatrixMarket matrix coordinate pattern general\n3 3 4\n1 1\n2 3\n1 1\n1 1\n"
    for name, matrix, options in cases:
        file = io.BytesIO()
        scipy.io.mmwrite(file, matrix, **options)
        yield name, file.getvalue()


def test():
    checks = Checks()
    with Folder() as folder:
        output = folder / "matrix.h5"
        for case, content in small_cases():
            for path, stored in ((folder / "case.mtx", content), (folder / "case.mtx.gz", gzip.compress(content))):
                path.write_bytes(stored)
                check_equal(checks, f"{case} ({path.name})", path, output, content)
        if not have_data():
            return checks.finish(least=52)
        for name, path in real_matrices(MATRICES, folder):
            check_equal(checks, name, path, output, path.read_bytes())
    return checks.finish(least=70)


if __name__ == "__main__":
    main(test)
