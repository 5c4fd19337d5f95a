"""Files that other programs wrote, one by one: every row of io-files/MANIFEST.tsv whose format is in FORMATS.

A row that is fine: asparse_info finds its shape and entries, and asparse_convert its values, as h5py and SciPy read
them. A row that is not: the exit code and the word of REFUSED. FORMATS is the table to extend: a function of the row that
says what to expect. Where the manifest itself is wrong or silent, MANIFEST_SAYS_OTHERWISE has what is right and why.
"""
import csv
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import h5py
import numpy as np
import scipy.sparse as sp

from asparse_testing import BRIEF, DATA, DATA_ERROR, OK, Checks, Folder, main, run, said

FILES = DATA / "io-files"


@dataclass
class Case:
    """What a row of the manifest should give."""
    path: str  # what the programs are given
    exit: int = OK
    word: str = ""  # of the message, where exit is not OK
    shape: tuple = None
    stored: int = None  # entries in the file, before symmetric ones are mirrored
    matrix: sp.spmatrix = None  # the reference
    arguments: list = field(default_factory=list)


# ---- refused, and wrong in the manifest --------------------------------------------------------

# Words of the row's note or path, and the word that the message must have; the exit code is 65.
REFUSED = (
    ("('real', '<f8')", "complex"),
    ("complex[", "complex"),
    ("blosc", "blosc"),
    ("CompoundChunked", "compound"),
    ("no matrix", "no sparse matrix"),
)

# A MATLAB array with attribute MATLAB_empty holds its dimensions, not elements: the manifest takes them for a vector.
EMPTY_MATLAB_ARRAYS = ("/#refs#/a",)


def manifest_says_otherwise(row, case):
    """Why the manifest's shape or count is not the case's, None where it should be the same."""
    dense_matlab = row["format"] == "mat7.3" and "dense" in row["note"]
    if dense_matlab and row["cols"]:
        return "h5py's shape; MATLAB stores columns, its matrix is the transposed one"
    if not row["cols"]:
        return "a vector, read as one column"
    if not row["nnz"]:
        return "dense: the count is that of all elements"
    return None


# ---- the reference -----------------------------------------------------------------------------

def text_of(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def compressed(group, names, shape, by_rows):
    data, indices, indptr = (np.asarray(group[name]).ravel() for name in names)
    kind = sp.csr_matrix if by_rows else sp.csc_matrix
    return kind((data.astype(np.float64), indices, indptr), shape=tuple(int(n) for n in shape))


def binsparse(group):
    d = json.loads(text_of(group.attrs["binsparse"]))["binsparse"]
    shape = tuple(d["shape"]) + (1,) * (2 - len(d["shape"]))
    values = group["values"][:].astype(np.float64)
    if d["format"].startswith("D") and "indices_1" not in group:
        order = "F" if d["format"] == "DMATC" else "C"
        return sp.csr_matrix(values.reshape(shape, order=order)), values.size
    stored = d["number_of_stored_values"]
    if d["data_types"]["values"].startswith("iso"):
        values = np.repeat(values, stored)
    minor = group["indices_1"][:].astype(int) if "indices_1" in group else np.zeros(stored, int)
    major = group["indices_0"][:].astype(int) if "indices_0" in group else np.arange(len(group["pointers_to_1"]) - 1)
    if "pointers_to_1" in group:
        major = np.repeat(major, np.diff(group["pointers_to_1"][:].astype(int)))
    if d["format"] in ("CSC", "DCSC", "COOC"):
        major, minor = minor, major
    a = sp.coo_matrix((values, (major, minor)), shape=shape).tocsr()
    structure = d.get("structure", "general")
    if structure != "general":
        mirrored = (a - sp.diags(a.diagonal())).T
        a = a - mirrored if structure.startswith("skew") else a + mirrored
    return a, stored


def anndata(group):
    by_rows = "csr" in text_of(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format")))
    shape = group.attrs["shape" if "shape" in group.attrs else "h5sparse_shape"]
    return compressed(group, ("data", "indices", "indptr"), shape, by_rows), len(group["data"])


def tenx(group):
    return compressed(group, ("data", "indices", "indptr"), group["shape"][:], False), len(group["data"])


def matlab(group):
    shape = (int(group.attrs["MATLAB_sparse"]), len(group["jc"]) - 1)
    if "ir" not in group:
        return sp.csc_matrix(shape), 0
    return compressed(group, ("data", "ir", "jc"), shape, False), len(group["ir"])


def biom(group):
    return (compressed(group, ("data", "indices", "indptr"), group.file.attrs["shape"],
                       group.name == "/observation/matrix"), len(group["data"]))


def cooler(group):
    n = int(group.attrs["nbins"])
    i, j, count = (group["pixels"][name][:] for name in ("bin1_id", "bin2_id", "count"))
    a = sp.coo_matrix((count.astype(np.float64), (i, j)), shape=(n, n)).tocsr()
    if text_of(group.attrs.get("storage-mode", "symmetric-upper")) != "square":
        a = a + (a - sp.diags(a.diagonal())).T
    return a, len(count)


def dense(dataset):
    values = dataset[:].astype(np.float64)
    values = values.reshape(len(values), -1)
    if "MATLAB_class" in dataset.attrs:
        values = values.T
    return sp.csr_matrix(values), values.size


def hdf5_case(sparse_reader):
    """The case function of a format whose sparse matrices sparse_reader reads; datasets are dense matrices."""
    def case(row):
        name = row["matrix"]
        path = str(FILES / row["file"]) + ("::" + name if name else "")
        for sign, word in REFUSED:
            if sign in row["note"] + row["file"] + name:
                return Case(path, DATA_ERROR, word)
        with h5py.File(FILES / row["file"]) as file:
            if name in EMPTY_MATLAB_ARRAYS and "MATLAB_empty" in file[name].attrs:
                return Case(path, DATA_ERROR, "empty")
            where = file[name]
            a, stored = (dense if isinstance(where, h5py.Dataset) else sparse_reader)(where)
        return Case(path, shape=a.shape, stored=stored, matrix=a)
    return case


# format of the manifest → what a row of it should give
FORMATS = {
    "bsp.h5": hdf5_case(binsparse),
    "h5ad": hdf5_case(anndata),
    "smurff/h5sparse": hdf5_case(anndata),
    "10x.h5": hdf5_case(tenx),
    "mat7.3": hdf5_case(matlab),
    "cooler": hdf5_case(cooler),
    "biom": hdf5_case(biom),
    "loom": hdf5_case(None),
    "pytables": hdf5_case(None),
}


# ---- checking ----------------------------------------------------------------------------------

def read_back(path):
    with h5py.File(path) as file:
        shape = json.loads(file.attrs["binsparse"])["binsparse"]["shape"]
        values = file["values"][:]
        indptr = file["pointers_to_1"][:]
        if len(values) != indptr[-1]:
            values = np.repeat(values, indptr[-1])
        return sp.csr_matrix((values.astype(np.float64), file["indices_1"][:], indptr), shape=shape)


def check_values(checks, label, case, folder, ranks):
    out = folder / "out.h5"
    result = run("asparse_convert", "-q", *case.arguments, case.path, out, ranks=ranks,
                 environment={"OMP_NUM_THREADS": "1"})
    if not checks.that(result.returncode == OK, f"{label}: convert on {ranks} ranks: {said(result)}"):
        return False
    found, wanted = read_back(out), sp.csr_matrix(case.matrix)
    wanted.sum_duplicates()
    out.unlink()
    # Entries are summed in another order than SciPy's only where a file holds duplicates; none of these does.
    return checks.that(found.shape == wanted.shape and (found != wanted).nnz == 0,
                       f"{label}: other values on {ranks} ranks than h5py and SciPy read")


def check_row(checks, row, case, folder, ranks):
    """Returns the verdict for the table."""
    label = f"{row['file']}::{row['matrix']}"
    result = run("asparse_info", "--json", "-", "--ranks", "2", *case.arguments, case.path)
    if case.exit != OK:
        fine = checks.that(result.returncode == case.exit and case.word in result.stderr and
                           result.stderr.count("error:") == 1, f"{label}: {said(result)}")
        return "refused" if fine else "WRONG"
    if not checks.that(result.returncode == OK, f"{label}: {said(result)}"):
        return "WRONG"
    found = json.loads(result.stdout)["matrix"]
    fine = checks.that(((found["rows"], found["columns"]), found["stored_entries"]) == (case.shape, case.stored),
                       f"{label}: found {found}, expected {case.shape} with {case.stored}")
    listed = (row["rows"], row["cols"], row["nnz"])
    same = listed == tuple(str(n) for n in (*case.shape, case.stored))
    fine &= checks.that(same or manifest_says_otherwise(row, case) is not None,
                        f"{label}: the manifest says {listed}, the file {case.shape} with {case.stored}")
    for p in ranks:
        fine &= check_values(checks, label, case, folder, p)
    return "read" if fine else "WRONG"


def walk(checks, rows, folder):
    verdicts = defaultdict(Counter)
    corrections = Counter()
    for i, row in enumerate(rows):
        case = FORMATS[row["format"]](row)
        first = not verdicts[row["format"]]["read"]
        ranks = (None, 3) if first else (2,) if i % 4 == 0 else (None,)
        verdicts[row["format"]][check_row(checks, row, case, folder, ranks)] += 1
        if case.exit == OK and (row["rows"], row["cols"], row["nnz"]) != tuple(
                str(n) for n in (*case.shape, case.stored)):
            corrections[manifest_says_otherwise(row, case)] += 1
    return verdicts, corrections


def print_table(verdicts, corrections, others):
    print(f"{'format':<18}{'read':>6}{'refused':>9}{'WRONG':>7}")
    for name, counts in sorted(verdicts.items()):
        print(f"{name:<18}{counts['read']:>6}{counts['refused']:>9}{counts['WRONG']:>7}")
    for why, count in corrections.items():
        print(f"the manifest differs in {count} rows: {why}")
    if others:
        print("formats not walked:", ", ".join(f"{name} ({count})" for name, count in sorted(others.items())))


def test():
    checks = Checks()
    manifest = FILES / "MANIFEST.tsv"
    if not manifest.is_file():
        print(f"skipped: no {manifest}; set ASPARSE_DATA")
        return 77
    with open(manifest, newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    known = [row for row in rows if row["format"] in FORMATS]
    if BRIEF:
        known = known[::5]
    with Folder() as folder:
        verdicts, corrections = walk(checks, known, folder)
    print_table(verdicts, corrections, Counter(row["format"] for row in rows if row["format"] not in FORMATS))
    return checks.finish(least=20 if BRIEF else 300)


main(test)
