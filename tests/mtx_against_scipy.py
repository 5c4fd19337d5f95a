"""asparse_convert against scipy.io.mmread, element by element: equal to the last bit.

Small matrices that are made here are always compared; with the real data also the Matrix Market files that other
programs wrote, valid and invalid, and a dozen real matrices.
"""
import gzip
import io
import json
import re

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from asparse_testing import (DATA, DATA_ERROR, OK, RUNTIME, Checks, Folder, have_data, main, real_matrices, run, said)

# Valid for their authors, refused here: file name -> what the message says.
REFUSED = {
    r"LAGraph__data__(full|west0067)_noheader": "no banner",
    r"longdouble_(array|coordinate)": "out of range",
    r"matrix_coordinate_real_skew-symmetric": "diagonal of a skew-symmetric",
}
# Invalid for their authors (a value beyond the type that a comment names, or vectors), well-formed here.
ACCEPTED = (r"LAGraph__data__mangled_(bool|int16|int32|uint8|uint16|uint32|skew)\.", r"vector_array_real_general",
            r"overflow_(index_gt_int8|value_gt_int32)\.")
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


def canonical(text):
    """The same matrix in the narrow form that scipy reads: no blank lines, comments, vectors or uint64."""
    lines = [line.strip() for line in re.split(r"\r\n|\r|\n", text)]
    lines = [line for i, line in enumerate(lines) if line and (i == 0 or not line.startswith("%"))]
    banner = "%%" + lines[0].lower().lstrip("%").replace("matrixmarket", "MatrixMarket")
    lines[0] = banner.replace(" vector ", " matrix ").replace(" integer ", " real ")
    if " vector " in banner:
        sizes = lines[1].split()
        lines[1] = " ".join([sizes[0], "1"] + sizes[1:])
        if " coordinate " in banner:
            lines[2:] = [line.replace(" ", " 1 ", 1) for line in lines[2:]]
    return "\n".join(lines) + "\n"


def read_scipy(content):
    text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("latin1")
    is_array = " array " in re.sub(r"\s+", " ", text.split("\n")[0].lower())
    try:
        matrix = scipy.io.mmread(io.BytesIO(text.encode("latin1")))
    except (ValueError, TypeError, OverflowError):
        matrix = scipy.io.mmread(io.BytesIO(canonical(text).encode("latin1")))
    matrix = sp.csr_matrix(matrix.astype(np.float64), dtype=np.float64)
    matrix.sum_duplicates()  # sorts too
    if is_array:
        matrix.eliminate_zeros()
    return matrix


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


def check_refused(checks, name, path, output, code, words):
    output.unlink(missing_ok=True)
    result = run("asparse_convert", "--quiet", path, output)
    checks.that(result.returncode == code and words in result.stderr, f"{name}: expected '{words}': {said(result)}")
    checks.that(not output.exists(), f"{name}: an output file was left behind")


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


def is_complex(content):
    text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    return b"complex" in text.split(b"\n")[0].lower()


def check_valid_files(checks, output):
    for path in sorted((DATA / "io-files/mtx").iterdir()):
        content = path.read_bytes()
        refused = [words for name, words in REFUSED.items() if re.search(name, path.name)]
        if is_complex(content):
            refused = ["complex values are not supported yet"]
        if refused:
            check_refused(checks, path.name, path, output, DATA_ERROR, refused[0])
        else:
            check_equal(checks, path.name, path, output, content)


def check_invalid_files(checks, output):
    for path in sorted((DATA / "io-files/mtx-invalid").iterdir()):
        if any(re.search(name, path.name) for name in ACCEPTED):
            check_equal(checks, path.name, path, output, path.read_bytes())
        elif "dim_over_32_bit" in path.name:
            check_refused(checks, path.name, path, output, RUNTIME, "GiB")
        else:
            check_refused(checks, path.name, path, output, DATA_ERROR, path.name)


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
        check_valid_files(checks, output)
        check_invalid_files(checks, output)
        for name, path in real_matrices(MATRICES, folder):
            check_equal(checks, name, path, output, path.read_bytes())
    return checks.finish(least=450)


if __name__ == "__main__":
    main(test)
