"""Every file of io-files/MANIFEST.tsv, which other programs wrote, through asparse_convert: values, shape and entries
as SciPy, h5py or the file's own text have them, or the exit code and the words of a refusal; none takes longer than
SECONDS or more memory than BYTES. Ends with a table by format.

FORMATS has a function for each format that says what a row should give. Where the manifest itself is wrong or silent,
`listed` and `manifest_says_otherwise` say what is right and why. An argument (mtx) chooses formats.
"""
import csv
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

import reference_readers as reference
from asparse_testing import (BIN, BRIEF, DATA, DATA_ERROR, OK, RUNTIME, SANITIZED, Checks, Folder, main, run, said)
from mtx_against_scipy import difference, read_hdf5

FILES = DATA / "io-files"
AT_ONCE = 2
SECONDS, BYTES = (60, 4e9) if SANITIZED else (10, 1e9)


@dataclass
class Case:
    """What a row of the manifest should give."""
    path: str  # what the program is given
    exit: int = OK
    word: str = ""  # of the message, where exit is not OK
    matrix: sp.spmatrix = None  # the reference
    stored: int = None  # entries in the file, before symmetric ones are mirrored; None: not known from elsewhere


# ---- the manifest ------------------------------------------------------------------------------

def listed(row):
    """(rows, columns, entries) as the manifest has them; None where it has nothing."""
    rows, cols, nnz = row["rows"], row["cols"], row["nnz"]
    if row["format"] == "edgelist":  # the largest vertex, and edges
        rows = cols = int(rows.split()[1]) + 1
    if row["format"] == "metis":  # edges, each of which stands in the file twice
        nnz = 2 * int(nnz.split()[0])
    return tuple(int(n) if n != "" else None for n in (rows, cols, nnz))


def manifest_says_otherwise(row, there):
    """Why the manifest's shape or count is not the file's; None where it should be the same."""
    if row["format"] == "mat7.3" and "dense" in row["note"] and row["cols"]:
        return "h5py's shape; MATLAB stores columns, its matrix is the transposed one"
    if "scipy" in row["note"] and there[0] is None:
        return "silent: SciPy's mminfo does not read the file's header, mmread its usual form"
    if row["note"].startswith("array") and not row["note"].endswith("general"):
        return "all elements of a symmetric array; the file holds one triangle"
    if there[1] is None:
        return "a vector, read as one column"
    if there[2] is None:
        return "dense: the count is that of all elements"
    return None


# ---- what each format should give --------------------------------------------------------------

# Words of an HDF5 row's note or path, and the word that the message must have.
REFUSED_HDF5 = (
    ("('real', '<f8')", "complex"),
    ("complex[", "complex"),
    ("blosc", "blosc"),
    ("CompoundChunked", "compound"),
    ("no matrix", "no sparse matrix"),
)

# A MATLAB array with attribute MATLAB_empty holds its dimensions, not elements: the manifest takes them for a vector.
EMPTY_MATLAB_ARRAYS = ("/#refs#/a",)


def hdf5(sparse_reader):
    """For a format whose sparse matrices sparse_reader reads; datasets are dense matrices."""
    def case(row, path):
        name = row["matrix"]
        named = f"{path}::{name}" if name else str(path)
        for sign, word in REFUSED_HDF5:
            if sign in row["note"] + row["file"] + name:
                return Case(named, DATA_ERROR, word)
        with h5py.File(path) as file:
            where = file[name]
            if name in EMPTY_MATLAB_ARRAYS and "MATLAB_empty" in where.attrs:
                return Case(named, DATA_ERROR, "empty")
            a, stored = (reference.dense if isinstance(where, h5py.Dataset) else sparse_reader)(where)
        return Case(named, matrix=a, stored=stored)
    return case


# Valid for their authors, refused here: file name -> what the message says.
REFUSED_MTX = {
    r"LAGraph__data__(full|west0067)_noheader": "no banner",
    r"longdouble_(array|coordinate)": "out of range",
    r"matrix_coordinate_real_skew-symmetric": "diagonal of a skew-symmetric",
    r"bar_D?VEC__bar\.mtx": "the size line ends before the number of entries",  # a vector that is called a matrix
}
# Invalid for their authors (a value beyond the type that a comment names, or vectors), well-formed here.
ACCEPTED_MTX = (r"LAGraph__data__mangled_(bool|int16|int32|uint8|uint16|uint32|skew)\.", r"vector_array_real_general",
                r"overflow_(index_gt_int8|value_gt_int32)\.")


def mtx(row, path):
    content = path.read_bytes()
    for name, words in REFUSED_MTX.items():
        if re.search(name, path.name):
            return Case(path, DATA_ERROR, words)
    if reference.is_complex(content):
        return Case(path, DATA_ERROR, "complex values are not supported" if path.parent.name == "mtx" else path.name)
    if path.parent.name == "mtx-invalid" and not any(re.search(name, path.name) for name in ACCEPTED_MTX):
        if "dim_over_32_bit" in path.name:
            return Case(path, RUNTIME, "GiB")
        return Case(path, DATA_ERROR, path.name)
    return Case(path, matrix=reference.read_scipy(content), stored=reference.mtx_entries(content))


def edges(row, path):
    a = reference.edge_list(path)
    return Case(path, matrix=a, stored=a.nnz)


METIS_REASONS = {
    "bad1": 'line 3: found "-1" as a weight', "bad2": 'line 3: found "0" as the weight of an edge',
    "bad3": "line 4: vertex 1 lists a neighbour twice", "bad4": "23 entries, expected 24",
    "bad5": "line 3: vertex 1 lists 4 with weight 1, but", "bad6": "as the number of vertices",
    "bad7": "line 3: found 2 numbers", "bad9": "line 3: found 5 numbers"}


def metis(row, path):
    if path.parent.name == "metis-invalid":
        return Case(path, DATA_ERROR, METIS_REASONS[path.stem.split("__")[1]])
    several = "multi" in path.name  # a multigraph lists an edge as often as it is there
    a = reference.metis_graph(path, multigraph=several)
    return Case(path, matrix=a, stored=int(a.sum()) if several else a.nnz)


BOEING_REASONS = {
    "2": "first pointer is 42", "3": "pointer 2 is 42", "4": "row indices", "7": "is 9", "8": "values",
    "9": "one triangle", "10": 'found "-4"', "11": "5 pointers in a file", "12": '"xxx"', "13": '"ixa"',
    "14": '"iux"', "15": "must be square"}


def boeing(row, path):
    number, kind = path.stem.split("__")[1], row["note"][7:].lower()
    # invalid 5: rows of a column out of order; sorted, as in every format
    if path.parent.name == "hb-rb-invalid" and number != "5":
        return Case(path, DATA_ERROR, BOEING_REASONS[number])
    if kind in ("csa", "pse"):
        return Case(path, DATA_ERROR, "complex" if kind == "csa" else "unassembled")
    if not row["rows"]:
        return Case(path, DATA_ERROR, "expected one with a matrix")
    return Case(path, matrix=reference.read_boeing(path), stored=int(path.read_text().split("\n")[2].split()[3]))


def petsc(row, path):
    if "complex" in path.name:
        return Case(path, DATA_ERROR, "complex")
    if row["note"].endswith("(vec)"):
        return Case(path, DATA_ERROR, "a vector")
    a = reference.read_petsc(path)
    return Case(path, matrix=a, stored=a.nnz)


def npz(row, path):
    if not row["rows"]:
        return Case(path, DATA_ERROR, 'no arrays "data" and "shape"')
    prefix = "adj_" if row["matrix"] else ""
    arrays = reference.parts_of(path)
    data, indices, indptr, shape = (arrays[prefix + key] for key in ("data", "indices", "indptr", "shape"))
    a = sp.csr_matrix((data, indices, indptr), shape)
    return Case(f"{path}::adj" if prefix else path, matrix=a, stored=len(data))


def mat5(row, path):
    if "4.2c" in path.name:
        return Case(path, DATA_ERROR, "no MATLAB 5 file")
    if not row["rows"]:
        return Case(path, DATA_ERROR, "damaged" if "corrupted" in path.name else "no sparse array")
    named = f"{path}::{row['matrix']}"
    if "complex" in row["note"]:
        return Case(named, DATA_ERROR, "complex")
    first, *rest = row["matrix"].split(".")
    a = reference.find_matlab(scipy.io.loadmat(path)[first], rest)
    return Case(named, matrix=a, stored=a.nnz)


FORMATS = {
    "bsp.h5": hdf5(reference.binsparse),
    "h5ad": hdf5(reference.anndata),
    "smurff/h5sparse": hdf5(reference.anndata),
    "10x.h5": hdf5(reference.tenx),
    "mat7.3": hdf5(reference.matlab),
    "cooler": hdf5(reference.cooler),
    "biom": hdf5(reference.biom),
    "loom": hdf5(None),
    "pytables": hdf5(None),
    "mtx": mtx,
    "mtx.gz": mtx,
    "edgelist": edges,
    "metis": metis,
    "hb/rb": boeing,
    "petscbin": petsc,
    "npz": npz,
    "mat5": mat5,
}


# ---- running -----------------------------------------------------------------------------------

@dataclass
class Measured:
    returncode: int
    stdout: str
    stderr: str
    seconds: float
    bytes: int  # largest resident set


def convert(path, output):
    """asparse_convert alone; ended when it takes longer than SECONDS."""
    files = output.with_suffix(".stdout"), output.with_suffix(".stderr")
    command = [BIN / "asparse_convert", "-q", "--json", "-", path, output]
    start = time.monotonic()
    with open(files[0], "w") as stdout, open(files[1], "w") as stderr:
        process = subprocess.Popen([str(word) for word in command], stdout=stdout, stderr=stderr,
                                   env=dict(os.environ, OMP_NUM_THREADS="1"))
        limit = threading.Timer(SECONDS + 5, process.kill)
        limit.start()
        _, status, usage = os.wait4(process.pid, 0)
        limit.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait for it again
    texts = [file.read_text(errors="replace") for file in files]
    return Measured(process.returncode, *texts, time.monotonic() - start, usage.ru_maxrss * 1024)


@dataclass
class Outcome:
    """Of one row; messages are of what is wrong."""
    format: str
    verdict: str = "WRONG"
    seconds: float = 0
    bytes: int = 0
    correction: str = None
    messages: list = None


def compare(found, matrix):
    """Entries are summed in another order than SciPy's only where a file holds duplicates; none that differ do."""
    theirs = sp.csr_matrix(matrix, dtype=np.float64)
    theirs.sum_duplicates()
    return difference(found, theirs)


def judge_read(row, case, result, output, outcome):
    """Messages of what differs from the reference and the manifest."""
    record = json.loads(result.stdout)
    shape = (record["rows"], record["columns"])
    there = listed(row)
    wrong = []
    if shape != case.matrix.shape or case.stored not in (None, record["stored_entries"]):
        wrong.append(f"{shape} with {record['stored_entries']}, expected {case.matrix.shape} with {case.stored}")
    if there != (*case.matrix.shape, record["stored_entries"]):
        outcome.correction = manifest_says_otherwise(row, there)
        if outcome.correction is None:
            wrong.append(f"the manifest says {there}, the file {shape} with {record['stored_entries']}")
    reason = compare(read_hdf5(output), case.matrix)
    return wrong + ([f"other values than the reference: {reason}"] if reason else [])


def walk_row(row, output):
    outcome = Outcome(row["format"])
    try:
        case = FORMATS[row["format"]](row, FILES / row["file"])
    except Exception as error:  # of the reference; the other rows are still walked
        outcome.messages = [f"{row['file']}::{row['matrix']}: no reference: {error!r}"]
        return outcome
    result = convert(case.path, output)
    outcome.seconds, outcome.bytes = result.seconds, result.bytes
    wrong = []
    if result.returncode != case.exit or case.word not in result.stderr:
        wrong.append(f"expected exit {case.exit} and '{case.word}': {said(result)}")
    elif case.exit != OK and (result.stderr.count("error:") != 1 or output.exists()):
        wrong.append(f"one message and no output were expected: {said(result)}")
    elif case.exit == OK:
        wrong += judge_read(row, case, result, output, outcome)
    if result.seconds > SECONDS or result.bytes > BYTES:
        wrong.append(f"took {result.seconds:.1f} s and {result.bytes / 1e6:.0f} MB")
    if not wrong:
        outcome.verdict = "read" if case.exit == OK else "refused"
    outcome.messages = [f"{row['file']}::{row['matrix']}: {text}" for text in wrong]
    output.unlink(missing_ok=True)
    return outcome


def on_ranks(checks, rows, folder):
    """The first matrix of each format on three ranks gives the same."""
    done = set()
    for row in rows:
        case = FORMATS[row["format"]](row, FILES / row["file"]) if row["format"] not in done else None
        if not case or case.exit != OK:
            continue
        done.add(row["format"])
        output = folder / "ranks.h5"
        result = run("asparse_convert", "-q", case.path, output, ranks=3, environment={"OMP_NUM_THREADS": "1"})
        reason = compare(read_hdf5(output), case.matrix) if result.returncode == OK else said(result)
        checks.that(not reason, f"{row['file']}::{row['matrix']} on 3 ranks: {reason}")
        output.unlink(missing_ok=True)


# ---- the table ---------------------------------------------------------------------------------

def print_table(outcomes):
    by_format = defaultdict(list)
    for outcome in outcomes:
        by_format[outcome.format].append(outcome)
    print(f"{'format':<18}{'read':>6}{'refused':>9}{'WRONG':>7}{'slowest s':>11}{'largest MB':>12}")
    for name, of_format in [*sorted(by_format.items()), ("all", outcomes)]:
        counts = Counter(outcome.verdict for outcome in of_format)
        print(f"{name:<18}{counts['read']:>6}{counts['refused']:>9}{counts['WRONG']:>7}"
              f"{max(o.seconds for o in of_format):>11.2f}{max(o.bytes for o in of_format) / 1e6:>12.0f}")
    for why, count in Counter(o.correction for o in outcomes if o.correction).items():
        print(f"the manifest differs in {count} rows: {why}")


def sample(rows):
    """Every sixth row of a format, at least one that is read and one that is refused where there are such."""
    seen = Counter()
    for row in rows:
        kind = row["format"], "invalid" in row["file"] or not row["rows"]
        if seen[kind] % 6 == 0:
            yield row
        seen[kind] += 1


def test():
    checks = Checks()
    manifest = FILES / "MANIFEST.tsv"
    if not manifest.is_file():
        print(f"skipped: no {manifest}; set ASPARSE_DATA")
        return 77
    with open(manifest, newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    unknown = {row["format"] for row in rows} - set(FORMATS)
    checks.that(not unknown, f"formats without a function: {unknown}")
    rows = [row for row in rows if len(sys.argv) < 2 or row["format"] in sys.argv[1:]]
    chosen = list(sample(rows)) if BRIEF else rows
    with Folder() as folder:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            outputs = [folder / f"{i}.h5" for i in range(len(chosen))]
            outcomes = list(pool.map(walk_row, chosen, outputs))
        for outcome in outcomes:
            checks.that(not outcome.messages, "\n".join(outcome.messages))
        on_ranks(checks, chosen, folder)
    print_table(outcomes)
    return checks.finish(least=len(chosen) + 1)


main(test)
