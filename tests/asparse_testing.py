"""What the command-line tests share: running programs, writing inputs, reading results, counting checks.

Environment: ASPARSE_BIN (folder of the programs), ASPARSE_MPIEXEC (launcher and its options),
ASPARSE_DATA (real matrices; tests shrink visibly without them), ASPARSE_BRIEF and ASPARSE_SANITIZED (set by CTest).
"""
import json
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("ASPARSE_BIN", ROOT / "build/release"))
MPIEXEC = shlex.split(os.environ.get("ASPARSE_MPIEXEC", "mpirun --allow-run-as-root --oversubscribe"))
DATA = Path(os.environ.get("ASPARSE_DATA", ROOT / "../shared/data"))
SANITIZED = bool(os.environ.get("ASPARSE_SANITIZED"))
BRIEF = bool(os.environ.get("ASPARSE_BRIEF"))  # a second build of the same tree: fewer matrices and steps

OK, RUNTIME, USAGE, VERIFY, DATA_ERROR, NO_INPUT, INTERRUPTED = 0, 1, 2, 3, 65, 66, 85


class Checks:
    """Counts checks and failures; finish() gives the exit code."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def that(self, condition, message):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED:", message, flush=True)
        return bool(condition)

    def finish(self, least=1):
        print(f"checks: {self.passed} passed, {self.failed} failed", flush=True)
        if self.passed < least:
            print(f"FAILED: only {self.passed} checks ran, at least {least} were expected")
            return 1
        return 1 if self.failed else 0


MPI_FOLDERS = tempfile.TemporaryDirectory(prefix="asparse-test-mpi-")


def alone():
    """Without mpirun Open MPI starts a daemon, which takes longer than most runs here, unless it is told to do without.
    All such processes give their folder the same name then, so each has it in another place."""
    return {"OMPI_MCA_ess_singleton_isolated": "1", "OMPI_MCA_orte_tmpdir_base": tempfile.mkdtemp(dir=MPI_FOLDERS.name)}


def run(program, *arguments, ranks=None, timeout=120, environment=None):
    """Runs a program, alone or on ranks; the result has returncode, stdout, stderr."""
    command = [str(BIN / program), *map(str, arguments)]
    if ranks is not None:
        command = [*MPIEXEC, "-np", str(ranks), *command]
    env = dict(os.environ, **(alone() if ranks is None else {}), **(environment or {}))
    # In a session of its own: Open MPI, ending a job whose ranks have only just been forked, signals its own group.
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, errors="replace",
                          start_new_session=ranks is not None)


def said(result):
    return f"exit {result.returncode}\n{result.stdout}{result.stderr}"


def seconds_used(pid):
    """Processor time of a process; 0 once it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def programs_with(text):
    """Processes of asparse programs whose command line holds text, in order of their numbers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if text.encode() in command and b"asparse_" in command.split(b"\0")[0]:
            found.append(int(path.parent.name))
    return sorted(found)


class Folder:
    """A temporary folder, removed at the end."""

    def __enter__(self):
        self.path = Path(tempfile.mkdtemp(prefix="asparse-test-"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def write_csr(path, matrix, b=None, group=None):
    """A scipy matrix, its stored order and duplicates untouched, as Binsparse CSR; b as dataset B."""
    a = matrix if sp.isspmatrix_csr(matrix) else sp.csr_matrix(matrix)
    descriptor = {
        "binsparse": {
            "version": "0.1",
            "format": "CSR",
            "shape": list(a.shape),
            "number_of_stored_values": int(len(a.indices)),
            "data_types": {"pointers_to_1": "int64", "indices_1": "int64", "values": str(a.dtype)},
        }
    }
    with h5py.File(path, "w") as file:
        where = file.create_group(group) if group else file
        where.attrs["binsparse"] = json.dumps(descriptor)
        where["pointers_to_1"] = a.indptr.astype(np.int64)
        where["indices_1"] = a.indices.astype(np.int64)
        where["values"] = a.data
        if b is not None:
            file["B"] = b


def read_dense(path):
    with h5py.File(path) as file:
        shape = json.loads(file.attrs["binsparse"])["binsparse"]["shape"]
        return file["values"][:].reshape(shape)


def unit_roundoff(precision):
    return {"fp64": 2.0**-53, "fp32": 2.0**-24, "bf16": 2.0**-24}[precision]


def round_to(precision, array):
    """Inputs as the program rounds them, in fp64."""
    if precision == "fp64":
        return np.asarray(array, np.float64)
    single = np.asarray(array, np.float64).astype(np.float32)
    if precision == "fp32":
        return single.astype(np.float64)
    # Once from fp64 to bf16: nearest even on the exact value.
    exact = np.asarray(array, np.float64)
    with np.errstate(invalid="ignore"):
        mantissa, exponent = np.frexp(exact)
        rounded = np.ldexp(np.rint(mantissa * 256.0), exponent - 8)
    return np.where(np.isfinite(exact), rounded, exact)


def reference(matrix, b, precision):
    """(A·B, |A|·|B|, entries a row) in fp64 with the inputs rounded to the precision."""
    a = sp.csr_matrix(matrix, dtype=np.float64, copy=True)
    a.data = round_to(precision, a.data)
    b = round_to(precision, b)
    with np.errstate(invalid="ignore", over="ignore"):
        return a @ b, abs(a) @ abs(b), np.diff(a.indptr)


def agrees(c, matrix, b, precision, u=None):
    """None where every element is within γ of the fp64 reference, else what is wrong: γ = q·u / (1 − q·u) with q
    entries in the row, one more rounding for the halo part, and the reference's own rounding. u: unit roundoff, where
    it is not that of the precision."""
    exact, size, q = reference(matrix, b, precision)
    if c.shape != exact.shape:
        return f"shape {c.shape} instead of {exact.shape}"
    with np.errstate(invalid="ignore"):
        u = u or unit_roundoff(precision)
        gamma = ((q + 1) * u / (1 - (q + 1) * u) + (q + 1) * 2.0**-53)[:, None]
        finite = np.isfinite(exact) & np.isfinite(size)
        wrong = finite & ~(np.abs(c - exact) <= gamma * size + (q[:, None] + 1) * 2.0**-149)
        same = np.isnan(c) & np.isnan(exact) | (c == exact)
    wrong |= ~finite & ~same
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        return f"{wrong.sum()} wrong elements, first C({i}, {j}) = {c[i, j]!r}, expected {exact[i, j]!r}"
    return None


def real_matrices(names, folder):
    """Yields (name, .mtx path) of those real matrices that are there, decompressed into folder."""
    for name in names:
        source = DATA / "matrices" / (name + ".mtx.xz")
        if not source.exists():
            continue
        target = Path(folder) / (Path(name).name + ".mtx")
        if not target.exists():
            target.write_bytes(lzma.open(source).read())
        yield Path(name).name, target


def have_data():
    there = (DATA / "matrices").is_dir()
    if not there:
        print(f"note: no real matrices at {DATA}; set ASPARSE_DATA. This test runs on its own small ones only.")
    return there


def read_mtx(path):
    return sp.csr_matrix(scipy.io.mmread(str(path)))


def main(test):
    sys.exit(test())
