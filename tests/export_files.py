"""What asparse_convert writes: every format and value type, whole and on three ranks, read by h5py and SciPy and read
back; where the files came from; the same bytes from the same command; a full disk."""
import gzip
import subprocess
import sys

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

from asparse_testing import (BIN, BRIEF, MPIEXEC, OK, RUNTIME, ROOT, USAGE, Checks, Folder, main, run, said, write_csr)
from mtx_against_scipy import difference, read_hdf5

FORMATS = ("h5", "h5ad", "mtx", "mtx.gz")
SPREAD = ("fp64", "rows without entries", "no rows") if BRIEF else ("fp64", "fp32", "int64", "rows without entries",
                                                                    "no entries", "no rows", "no columns")


def matrices():
    """(name, matrix as stored, precision to convert to): every type, rows without entries, nothing at all."""
    random = np.random.default_rng(7)
    a = sp.random(61, 43, 0.1, random_state=5, format="csr")
    a.data = random.standard_normal(a.nnz) * 10.0 ** random.integers(-30, 30, a.nnz)
    a.data[:12] = [0.1, -1 / 3, 0.0, -0.0, 1e23, 5e-324, np.finfo(float).max, 2.0**60, np.inf, -np.inf, np.nan, 1e-5]
    yield "fp64", a, None
    with np.errstate(over="ignore"):
        yield "fp32", a.astype(np.float32), None
    halves = a.copy()
    halves.data = np.round(random.standard_normal(a.nnz) * 64) / 64
    yield "rounded to fp32", halves, "fp32"
    for kind in (np.int8, np.uint16, np.int64, bool):
        whole = a.copy()
        whole.data = random.integers(1, 100, a.nnz)
        if kind == np.int64:
            whole.data[:3] = [2**53, -(2**53) + 1, 2**62]
        yield np.dtype(kind).name, whole.astype(kind), None
    gaps = sp.csr_matrix(([1.5, 2.5], [3, 0], [0, 0, 0, 1, 1, 1, 2, 2, 2]), (8, 4))
    yield "rows without entries", gaps, None
    yield "no entries", sp.csr_matrix((5, 4)), None
    yield "no rows", sp.csr_matrix((0, 3)), None
    yield "no columns", sp.csr_matrix((3, 0)), None


def read_anndata(checks, label, path):
    """As anndata.read_h5ad does, with what it asks for checked."""
    def encoding(where):
        return tuple(bytes(where.attrs[key]).decode() for key in ("encoding-type", "encoding-version"))

    with h5py.File(path) as file:
        checks.that(encoding(file) == ("anndata", "0.1.0"), f"{label}: root {dict(file.attrs)}")
        x = file["X"]
        checks.that(encoding(x) == ("csr_matrix", "0.1.0"), f"{label}: X {dict(x.attrs)}")
        checks.that(x["indices"].dtype == x["indptr"].dtype == np.int32, f"{label}: {x['indices'].dtype}")
        shape = tuple(x.attrs["shape"])
        for name, count in zip(("obs", "var"), shape):
            frame = file[name]
            index = frame[bytes(frame.attrs["_index"]).decode()]
            checks.that(encoding(frame) == ("dataframe", "0.2.0") and len(frame.attrs["column-order"]) == 0 and
                        encoding(index) == ("string-array", "0.2.0"), f"{label}: {name} {dict(frame.attrs)}")
            checks.that(list(index.asstr()[()]) == [str(i) for i in range(count)], f"{label}: names of {name}")
        return sp.csr_matrix((x["data"][()], x["indices"][()], x["indptr"][()]), shape)


def read_text(path):
    content = path.read_bytes()
    path = path.with_suffix(".plain.mtx")
    path.write_bytes(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    matrix = scipy.io.mmread(str(path))
    return sp.csr_matrix(matrix, dtype=np.float64), path.read_text()


def check_read(checks, label, form, path, expected, precision):
    """Independent readers find the values as they were, bit for bit; rows in order."""
    if form == "h5":
        found = read_hdf5(path)
    elif form == "h5ad":
        found = read_anndata(checks, label, path)
        single = precision == "fp32" or expected.dtype == np.float32
        checks.that(found.dtype == (np.float32 if single else np.float64), f"{label}: type {found.dtype}")
        found = found.astype(np.float64)
    else:
        if 0 in expected.shape:
            return  # SciPy does not read these
        found, text = read_text(path)
        field = "integer" if expected.dtype.kind in "iub" else "real"
        checks.that(text.startswith(f"%%MatrixMarket matrix coordinate {field} general\n"), f"{label}: {text[:60]}")
    reason = difference(found, sp.csr_matrix(expected, dtype=np.float64))
    checks.that(not reason, f"{label}: {reason}")
    signs = np.signbit(found.data) == np.signbit(expected.data.astype(np.float64))
    checks.that(np.all(signs | np.isnan(found.data)), f"{label}: signs of zeros")


def convert(checks, label, *arguments, ranks=None, code=OK):
    result = run("asparse_convert", "-q", *arguments, ranks=ranks, environment={"OMP_NUM_THREADS": "2"})
    return checks.that(result.returncode == code, f"{label}: {said(result)}")


def round_trips(checks, folder):
    for name, matrix, precision in matrices():
        source, back = folder / "source.h5", folder / "back.h5"
        write_csr(source, matrix)
        for form in FORMATS:
            out = folder / f"out.{form}"
            for ranks in (None, 3) if name in SPREAD else (None,):
                label = f"{name} to {form} on {ranks or 1}"
                options = ["--precision", precision] if precision else []
                if not convert(checks, label, *options, source, out, ranks=ranks):
                    continue
                check_read(checks, label, form, out, matrix, precision)
                if (ranks or name not in SPREAD) and convert(checks, f"{label} and back", out, back):
                    reason = difference(read_hdf5(back), sp.csr_matrix(matrix, dtype=np.float64))
                    checks.that(not reason, f"{label} and back: {reason}")


def patterns(checks, folder):
    source = folder / "pattern.mtx"
    source.write_text("%%MatrixMarket matrix coordinate pattern general\n3 4 3\n1 1\n3 4\n3 1\n")
    for form in FORMATS:
        out, back = folder / f"p.{form}", folder / "p-back.mtx"
        if convert(checks, f"pattern to {form}", source, out) and convert(checks, f"{form} to text", out, back):
            lines = [line for line in back.read_text().split("\n") if not line.startswith("% ")]
            field = "real" if form == "h5ad" else "integer" if form == "h5" else "pattern"
            checks.that(lines[0].split()[3] == field, f"pattern by way of {form}: {lines[0]}")
            places = [line.split()[:2] for line in lines[1:-1]]
            checks.that(places == [["3", "4"], ["1", "1"], ["3", "1"], ["3", "4"]], f"pattern by way of {form}: {lines}")
    source.write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 3\n1 1\n2 2\n1 1\n")
    if convert(checks, "pattern with duplicates", source, folder / "sum.mtx"):
        checks.that((folder / "sum.mtx").read_text().endswith("\n2 2 2\n1 1 2\n2 2 1\n"), "sums of a pattern's duplicates")


def large(checks, folder):
    """Several pieces of text on every rank; the text does not depend on the number of ranks."""
    source, lines = folder / "large.h5", {}
    write_csr(source, sp.random(3000, 2500, 0.03, random_state=9, format="csr"))
    for form in ("mtx", "mtx.gz"):
        for ranks in (None, 3):
            out = folder / f"large.{form}"
            if convert(checks, f"large {form}", source, out, ranks=ranks):
                text = read_text(out)[1]
                lines[form, ranks] = text[text.index("\n3000 "):]
    checks.that(len(lines) == 4 and len(set(lines.values())) == 1, "text differs between ranks or compressions")


def names(checks, folder):
    source, out = folder / "names.h5", folder / "out"
    write_csr(source, sp.identity(3, format="csr"))
    convert(checks, "a name that tells nothing", source, out, code=USAGE)
    convert(checks, "a format there is none of", "--to", "npz", source, out, code=USAGE)
    convert(checks, "name of upper case", source, folder / "OUT.MTX.GZ")
    checks.that((folder / "OUT.MTX.GZ").read_bytes()[:2] == b"\x1f\x8b", "a .MTX.GZ is gzip")
    convert(checks, "--to", "--to", "mtx", source, out)
    checks.that(out.read_bytes().startswith(b"%%MatrixMarket"), "--to mtx")
    odd = folder / "line\nbreak.h5"
    source.rename(odd)
    convert(checks, "a line break in a name", odd, folder / "odd.mtx")
    checks.that("line?break" in (folder / "odd.mtx").read_text(), "line breaks do not end a comment")
    convert(checks, "read with a line break in a name", folder / "odd.mtx", folder / "odd.h5")


# ---- provenance --------------------------------------------------------------------------------


def mix(x):
    """asparse_mix64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def matrix_hash(a):
    a = sp.coo_matrix(a, dtype=np.float64)
    with np.errstate(over="ignore"):
        entries = mix(mix(mix(a.row.astype(np.uint64)) ^ a.col.astype(np.uint64)) ^ a.data.view(np.uint64))
        shape = mix(np.array([a.shape[0]], np.uint64)) ^ np.array([a.shape[1]], np.uint64)
        return "%016x" % int(mix(entries.sum(dtype=np.uint64) ^ shape)[0])


def provenance(checks, folder):
    """Every output says the same of the matrix it holds, or was computed from."""
    a = sp.random(50, 50, 0.1, random_state=3, format="csr")
    text, h5 = folder / "a.mtx", folder / "a.h5"
    scipy.io.mmwrite(str(text), a, precision=17)
    convert(checks, "to h5", text, h5, ranks=3)
    convert(checks, "to h5ad", h5, folder / "a.h5ad")
    convert(checks, "to mtx", h5, folder / "b.mtx")
    parts = folder / "a.p2.h5"
    for arguments, ranks in ((["asparse_solve", "-q", h5, "--cols", 3, "-o", folder / "C.h5"], None),
                             (["asparse_partition", "-q", h5, "--parts", 2, "-o", parts], None),
                             (["asparse_solve", "-q", parts, "--cols", 3, "-o", folder / "C2.h5"], 2)):
        result = run(*arguments, ranks=ranks)
        checks.that(result.returncode == OK, f"{arguments}: {said(result)}")
    expected = matrix_hash(a)
    for name, program, source in (("a.h5", "asparse_convert", text), ("a.h5ad", "asparse_convert", h5),
                                  ("C.h5", "asparse_solve", h5), ("a.p2.h5", "asparse_partition", h5),
                                  ("C2.h5", "asparse_solve", parts)):
        with h5py.File(folder / name) as file:
            keys = ("program", "source", "options", "matrix_hash")
            said_there = {key: bytes(file.attrs[key]).decode() for key in keys}
        checks.that(said_there["program"].startswith(program + " "), f"{name}: {said_there}")
        checks.that(said_there["source"] == str(source), f"{name}: {said_there}")
        checks.that(program in said_there["options"] and str(source) in said_there["options"], f"{name}: {said_there}")
        checks.that(said_there["matrix_hash"] == expected, f"{name}: {said_there}, expected {expected}")
    comments = (folder / "b.mtx").read_text().split("\n")[1:5]
    checks.that(comments[0].startswith("% program: asparse_convert ") and comments[1] == f"% source: {h5}" and
                comments[3] == f"% matrix_hash: {expected}", f"comments {comments}")


def same_bytes(checks, folder):
    source = folder / "same.h5"
    write_csr(source, sp.random(80, 80, 0.1, random_state=4, format="csr"))
    for form in FORMATS:
        for ranks in (None,) if BRIEF else (None, 3):
            contents = set()
            for _ in range(2):
                convert(checks, f"{form} twice", source, folder / f"same.out.{form}", ranks=ranks)
                contents.add((folder / f"same.out.{form}").read_bytes())
            checks.that(len(contents) == 1, f"{form} on {ranks or 1}: other bytes from the same command")


def full_disk(checks, folder):
    """A limit on the size of files: an error, nothing left, and an older file stays."""
    source = folder / "tall.h5"
    write_csr(source, sp.random(2000, 2000, 0.02, random_state=4, format="csr"))
    for form in FORMATS:
        out = folder / f"full.{form}"
        out.write_bytes(b"an older file")
        for ranks in (1,) if BRIEF else (1, 3):
            result = subprocess.run([*MPIEXEC, "-np", str(ranks), "bash", "-c",
                                     f"ulimit -f 200; exec {BIN / 'asparse_convert'} -q {source} {out}"],
                                    capture_output=True, text=True, timeout=60)
            label = f"full disk, {form}, p={ranks}"
            checks.that(result.returncode == RUNTIME and result.stderr.count("error:") == 1 and
                        "cannot write" in result.stderr, f"{label}: {said(result)}")
            checks.that(out.read_bytes() == b"an older file", f"{label}: the older file changed")
    checks.that(not list(folder.glob(".full*")), f"left behind: {list(folder.glob('.full*'))}")


# ---- README ------------------------------------------------------------------------------------


def readme(checks, folder):
    """The Python of README, on files that are made as it says."""
    snippets = [part.split("```")[0] for part in (ROOT / "README.md").read_text().split("```python\n")[1:]]
    checks.that(len(snippets) == 1, f"{len(snippets)} Python snippets in README")
    a = sp.random(30, 20, 0.2, random_state=6, format="csr")
    b = np.random.default_rng(1).standard_normal((20, 4))
    write_csr(folder / "in.h5", a, b)
    convert(checks, "README's matrix", folder / "in.h5", folder / "matrix.h5")
    checks.that(run("asparse_solve", "-q", folder / "in.h5", "-o", folder / "C.h5").returncode == OK, "README's C")
    for snippet in snippets:
        code = snippet + f"scipy.sparse.save_npz({str(folder / 'A.npz')!r}, A)\n"
        code += f"import numpy\nnumpy.save({str(folder / 'C.npy')!r}, C)\n"
        result = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
        checks.that(result.returncode == OK, f"README: {result.stderr}")
    if (folder / "C.npy").exists():
        checks.that(not difference(sp.load_npz(folder / "A.npz"), a), "README's matrix has other values")
        checks.that(np.allclose(np.load(folder / "C.npy"), a @ b, rtol=1e-13), "README's C has other values")


def test():
    checks = Checks()
    with Folder() as folder:
        for part in (round_trips, patterns, large, names, provenance, same_bytes, full_disk, readme):
            part(checks, folder)
    return checks.finish(least=250)


main(test)
