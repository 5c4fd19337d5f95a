"""Matrices as other programs write them, made here by h5py: each convention gives the matrix SciPy has, on any number of
ranks and transposed; each thing that is damaged or not read gives one message and its exit code."""
import json

import h5py
import numpy as np
import scipy.sparse as sp

from asparse_testing import BRIEF, DATA_ERROR, NO_INPUT, OK, RUNTIME, USAGE, Checks, Folder, main, run, said

M, K = 60, 41
RANKS = (None, 3) if BRIEF else (None, 2, 3, 4)


def matrix(seed=1, shape=(M, K), dtype=np.float64):
    """Skewed: a full row, a full column, empty ones; values exact in every type."""
    a = sp.random(*shape, 0.08, format="lil", random_state=seed)
    a[shape[0] // 3, :] = 1
    a[:, shape[1] // 2] = 1
    a[5, :] = 0
    a[:, 7] = 0
    a = a.tocsr()
    a.eliminate_zeros()
    a.data = (np.arange(a.nnz) % 120 + 1).astype(dtype)
    return a


# ---- writers: each returns (object, options) to read it by ---------------------------------------

def put(group, names, compressed, **how):
    for name, data in zip(names, (compressed.data, compressed.indices, compressed.indptr)):
        group.create_dataset(name, data=how.get(name, data), **how.get("storage", {}))


def triple(group, compressed, **how):
    put(group, ("data", "indices", "indptr"), compressed, **how)


def binsparse(file, kind, a, **more):
    coo = a.tocoo()
    by_row = np.lexsort((coo.col, coo.row))
    arrays = {}
    if kind in ("CSR", "CSC", "DCSR", "DCSC"):
        c = a.tocsr() if kind.endswith("R") else a.tocsc()
        lines = np.flatnonzero(np.diff(c.indptr)) if kind.startswith("D") else np.arange(len(c.indptr) - 1)
        arrays = {"pointers_to_1": np.append(c.indptr[lines], c.nnz), "indices_1": c.indices, "values": c.data}
        if kind.startswith("D"):
            arrays["indices_0"] = lines
    elif kind.startswith("COO"):
        order = np.random.default_rng(2).permutation(a.nnz) if kind == "COO" else by_row
        rows, cols = (coo.row, coo.col) if kind != "COOC" else (coo.col, coo.row)
        arrays = {"indices_0": rows[order], "indices_1": cols[order], "values": coo.data[order]}
    else:
        arrays = {"values": a.toarray().ravel(order="F" if kind == "DMATC" else "C")}
    text = {"version": "0.1", "format": kind, "shape": list(a.shape), "number_of_stored_values": len(arrays["values"]),
            "data_types": {name: str(data.dtype) for name, data in arrays.items()}, **more}
    file.attrs["binsparse"] = json.dumps({"binsparse": text})
    for name, data in arrays.items():
        file[name] = data


def anndata(file, a):
    for name, c in (("X", a.tocsr()), ("layers/counts", a.tocsc())):
        group = file.create_group(name)
        group.attrs["encoding-type"] = "csr_matrix" if name == "X" else "csc_matrix"
        group.attrs["encoding-version"] = "0.1.0"
        group.attrs["shape"] = a.shape
        triple(group, c, storage={"compression": "lzf", "chunks": (40,)})
    dense = file.create_dataset("raw/X", data=a.toarray().astype(">f4"))
    dense.attrs["encoding-type"] = "array"


def h5sparse(file, a):
    group = file.create_group("a")
    group.attrs["h5sparse_format"] = np.bytes_("csc")
    group.attrs["h5sparse_shape"] = a.shape
    triple(group, a.tocsc(), storage={"compression": "gzip", "shuffle": True, "fletcher32": True})


def tenx(file, a, v3):
    group = file.create_group("matrix" if v3 else "mm10")
    group["barcodes"] = np.array([b"cell"] * a.shape[1])
    group["shape"] = np.array(a.shape, np.int32)
    c = a.tocsc()
    triple(group, c, indices=c.indices.astype(np.int64), data=c.data.astype(np.int32))


def matlab(file, a):
    group = file.create_group("A")
    group.attrs["MATLAB_class"] = np.bytes_("double")
    group.attrs["MATLAB_sparse"] = np.uint64(a.shape[0])
    c = a.tocsc()
    put(group, ("data", "ir", "jc"), c, ir=c.indices.astype(np.uint64), jc=c.indptr.astype(np.uint64))
    none = file.create_group("none")
    none.attrs["MATLAB_sparse"] = np.uint64(a.shape[0])
    none["jc"] = np.zeros(a.shape[1] + 1, np.uint64)
    file.create_dataset("dense", data=a.toarray().T.astype("f4")).attrs["MATLAB_class"] = np.bytes_("single")


def octave(file, a):
    group = file.create_group("A")
    group.attrs["OCTAVE_NEW_FORMAT"] = np.uint8(1)
    group["type"] = np.bytes_("sparse matrix")
    value = group.create_group("value")
    c = a.tocsc()
    for name, number in (("nr", a.shape[0]), ("nc", a.shape[1]), ("nz", a.nnz)):
        value[name] = np.int64(number)
    for name, data in (("cidx", c.indptr), ("ridx", c.indices), ("data", c.data)):
        value[name] = data.reshape(-1, 1)


def cooler(file, upper, mode=None):
    c = upper.tocsr()
    file.attrs["format"] = "HDF5::Cooler"
    file.attrs["nbins"], file.attrs["nnz"] = upper.shape[0], upper.nnz
    if mode:
        file.attrs["storage-mode"] = mode
    file["bins/start"] = np.arange(upper.shape[0])
    file["pixels/bin1_id"] = np.repeat(np.arange(upper.shape[0]), np.diff(c.indptr))
    file["pixels/bin2_id"] = c.indices
    file["pixels/count"] = c.data.astype(np.int32)
    file["indexes/bin1_offset"] = c.indptr.astype(np.int64)


def biom(file, a):
    file.attrs["format-url"] = "http://biom-format.org"
    file.attrs["shape"], file.attrs["nnz"] = a.shape, a.nnz
    triple(file.create_group("observation/matrix"), a.tocsr())
    triple(file.create_group("sample/matrix"), a.tocsc())


def good_files():
    """name, writer, then (object, options, the matrix it should give)"""
    a = matrix()
    square = matrix(3, (M, M))
    upper = sp.triu(square, format="csr")
    whole = upper + sp.triu(square, 1).T
    for kind in ("CSR", "CSC", "DCSR", "DCSC", "COO", "COOR", "COOC"):
        yield f"binsparse {kind}", lambda f, k=kind: binsparse(f, k, a), [("", [], a)]
    for kind in ("DMATR", "DMATC"):
        yield f"binsparse {kind}", lambda f, k=kind: binsparse(f, k, a), [("/", [], a)]
    for kind in ("CSC", "COO", "DCSC"):
        yield (f"binsparse {kind} skew", lambda f, k=kind: binsparse(f, k, sp.triu(square, 1).tocsr(),
                                                                     structure="skew_symmetric_upper"),
               [("", [], sp.triu(square, 1) - sp.triu(square, 1).T)])
    yield "anndata", lambda f: anndata(f, a), [("/X", [], a), ("layers/counts", [], a), ("/raw/X", [], a)]
    yield "h5sparse", lambda f: h5sparse(f, a), [("", [], a)]
    yield "10x v3", lambda f: tenx(f, a, True), [("", [], a)]
    yield "10x v2", lambda f: tenx(f, a, False), [("/mm10", [], a)]
    yield "matlab", lambda f: matlab(f, a), [("/A", [], a), ("/dense", [], a), ("/none", [], sp.csr_matrix((M, K)))]
    yield "octave", lambda f: octave(f, a), [("", [], a), ("/A", [], a)]
    yield "cooler", lambda f: cooler(f, upper), [("", [], whole)]
    yield "cooler in square", lambda f: cooler(f.create_group("resolutions/10"), square, "square"), [("", [], square)]
    yield "biom", lambda f: biom(f, a), [("", [], a), ("/observation/matrix", [], a), ("/sample/matrix", [], a)]
    longest = matrix()[:, : matrix().indices.max() + 1]
    yield "bare", lambda f: triple(f, a.tocsr()), [("", ["--layout", "csr"], longest), ("", ["--layout", "csc"],
                                                                                       sp.csr_matrix(longest.T))]

    def with_shape(f):
        triple(f, a.tocsc())
        f.attrs["shape"] = a.shape
    yield "bare with shape", with_shape, [("", [], a), ("", ["--layout", "csc"], a)]
    for dtype in (bool, "i1", "<u2", ">i4", ">f4", "f2", "<i8"):
        b = matrix(dtype=np.uint8)
        wide = b.astype(np.float64)
        if dtype is bool:
            wide.data[:] = 1

        def typed(f, dtype=dtype, b=b):
            group = f.create_group("g")
            group.attrs["encoding-type"], group.attrs["shape"] = "csc_matrix", b.shape
            c = b.tocsc()
            triple(group, c, data=c.data.astype(dtype), indices=c.indices.astype(">u4"), indptr=c.indptr.astype("<i2"))
        yield f"values of type {dtype}", typed, [("", [], wide)]


def read_back(path):
    with h5py.File(path) as file:
        shape = json.loads(file.attrs["binsparse"])["binsparse"]["shape"]
        return sp.csr_matrix((file["values"][:], file["indices_1"][:], file["pointers_to_1"][:]), shape=shape)


def read_all(checks, folder):
    out = folder / "out.h5"
    for label, write, readings in good_files():
        path = folder / "good.h5"
        with h5py.File(path, "w") as file:
            write(file)
        for i, (name, options, wanted) in enumerate(readings):
            for ranks in RANKS if i == 0 else RANKS[-1:]:
                transpose = ranks in (2, 4)
                arguments = [*options, *(["--transpose"] if transpose else []), f"{path}::{name}" if name else path]
                result = run("asparse_convert", "-q", *arguments, out, ranks=ranks, environment={"OMP_NUM_THREADS": "1"})
                if not checks.that(result.returncode == OK, f"{label} {arguments}, p={ranks}: {said(result)}"):
                    continue
                found = read_back(out)
                expected = sp.csr_matrix(wanted.T if transpose else wanted)
                checks.that(found.shape == expected.shape and (found != expected).nnz == 0,
                            f"{label} {arguments}, p={ranks}: not the matrix that was written")
                out.unlink()


def duplicates(checks, folder):
    """Summed in the order of the file, so that any number of ranks gives the same bits."""
    rng = np.random.default_rng(4)
    n = 3000
    rows, cols, values = rng.integers(0, 12, n), rng.integers(0, 9, n), rng.standard_normal(n)
    path, out = folder / "duplicates.h5", folder / "out.h5"
    with h5py.File(path, "w") as file:
        file.attrs["binsparse"] = json.dumps({"binsparse": {"version": "0.1", "format": "COO", "shape": [12, 9]}})
        file["indices_0"], file["indices_1"], file["values"] = rows, cols, values
    sums = np.zeros((12, 9))
    for i, j, v in zip(rows, cols, values):
        sums[i, j] += v
    for ranks in RANKS:
        result = run("asparse_convert", path, out, ranks=ranks)
        checks.that(result.returncode == OK and "duplicate" in result.stderr, f"duplicates, p={ranks}: {said(result)}")
        checks.that(np.array_equal(read_back(out).toarray(), sums), f"duplicates, p={ranks}: other sums")


# ---- what is refused -----------------------------------------------------------------------------

def changed(write, change):
    def both(file):
        write(file)
        change(file)
    return both


def set_at(name, position, value):
    def change(file):
        data = file[name][:]
        data[position] = value
        del file[name]
        file[name] = data
    return change


def replaced(name, data):
    def change(file):
        del file[name]
        if data is not None:
            file[name] = data
    return change


def bad_files(outside):
    """name, writer, object, exit code, word of the message"""
    a = matrix()

    def csc(f):
        binsparse(f, "CSC", a)

    def coo(f):
        binsparse(f, "COO", a)

    def dcsr(f):
        binsparse(f, "DCSR", a)

    def ann(f):
        anndata(f, a)

    def mat(f):
        matlab(f, a)

    yield "CSC row too large", changed(csc, set_at("indices_1", 9, M)), "", DATA_ERROR, f"expected 0 … {M - 1}"
    yield "CSC pointers too few", changed(csc, replaced("pointers_to_1", np.arange(9))), "", DATA_ERROR, "columns + 1"
    yield "CSC pointers fall", changed(csc, set_at("pointers_to_1", 20, 3)), "", DATA_ERROR, "decreases"
    yield "COO row too large", changed(coo, set_at("indices_0", 3, M)), "", DATA_ERROR, "indices_0"
    yield "COO column negative", changed(coo, set_at("indices_1", 3, -2)), "", DATA_ERROR, "-2"
    yield "COO too few columns", changed(coo, replaced("indices_1", np.zeros(5, int))), "", DATA_ERROR, "indices_1"
    yield "COO rows are floats", changed(coo, replaced("indices_0", np.zeros(a.nnz))), "", DATA_ERROR, "integers"
    yield "COO without rows", changed(coo, replaced("indices_0", None)), "", DATA_ERROR, "indices_0 is missing"
    yield "COO upper entries", lambda f: binsparse(f, "COO", matrix(3, (M, M)), structure="symmetric_lower"), "", \
        DATA_ERROR, "other triangle"
    yield "DCSR row too large", changed(dcsr, set_at("indices_0", 2, M)), "", DATA_ERROR, "indices_0"
    yield "DCSR list too short", changed(dcsr, replaced("indices_0", np.arange(5))), "", DATA_ERROR, "pointers_to_1"
    yield "several", ann, "", USAGE, "/X (AnnData), /layers/counts (AnnData)"
    yield "no such object", ann, "/Y", USAGE, "/Y"
    yield "a group without matrix", ann, "/layers", DATA_ERROR, "no matrix"
    yield "AnnData without shape", changed(ann, lambda f: f["X"].attrs.pop("shape")), "/X", DATA_ERROR, "shape"
    yield "AnnData negative shape", changed(ann, lambda f: f["X"].attrs.__setitem__("shape", (-3, 4))), "/X", \
        DATA_ERROR, "out of range"
    yield "AnnData shape of floats", changed(ann, lambda f: f["X"].attrs.__setitem__("shape", (3., 4.))), "/X", \
        DATA_ERROR, "integers"
    yield "MATLAB complex", changed(mat, replaced("A/data", np.ones(a.nnz, complex))), "/A", DATA_ERROR, "complex"
    yield "MATLAB entries missing", changed(mat, replaced("A/ir", None)), "/A", DATA_ERROR, "missing"
    yield "10x shape of three", changed(lambda f: tenx(f, a, True), replaced("matrix/shape", np.arange(3))), "", \
        DATA_ERROR, "2 integers"
    yield "cooler nnz", changed(lambda f: cooler(f, sp.triu(matrix(3, (M, M)), format="csr")),
                                lambda f: f.attrs.__setitem__("nnz", 7)), "", DATA_ERROR, "declared"
    yield "bare without layout", lambda f: triple(f, a), "", USAGE, "--layout csr"

    def unknown_filter(f):
        group = f.create_group("g")
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", a.shape
        group["indices"], group["indptr"] = a.indices, a.indptr
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((64,))
        plist.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (3,))  # Zstandard's number
        h5py.h5d.create(group.id, b"data", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((a.nnz,)), plist)
    yield "missing filter", unknown_filter, "", DATA_ERROR, "32015"

    def damaged_lzf(f):
        ann(f)
        data = f["X/data"]
        data.id.write_direct_chunk((0,), bytes([0xff] * 40))
    yield "damaged LZF chunk", damaged_lzf, "/X", DATA_ERROR, "X/data"
    yield "external link on the way", lambda f: f.__setitem__("layers", h5py.ExternalLink(str(outside), "/layers")), \
        "/layers/counts", DATA_ERROR, "another file"
    yield "external link to indices", changed(ann, replaced("X/indices", h5py.ExternalLink(str(outside), "/X/indices"))), \
        "/X", DATA_ERROR, "another file"

    def virtual(f):
        ann(f)
        layout = h5py.VirtualLayout(shape=(a.nnz,), dtype="f8")
        layout[:] = h5py.VirtualSource(str(outside), "X/data", shape=(a.nnz,))
        del f["X/data"]
        f.create_virtual_dataset("X/data", layout)
    yield "virtual dataset", virtual, "/X", DATA_ERROR, "other files"

    def bomb(f):
        """2^40 entries in a few kilobytes"""
        for name in ("indices_0", "indices_1", "values"):
            f.create_dataset(name, (1 << 40,), "i8", chunks=(1 << 16,))
        f.attrs["binsparse"] = json.dumps({"binsparse": {"version": "0.1", "format": "COO", "shape": [9, 9]}})
    yield "COO of 2^40 entries", bomb, "", RUNTIME, "GiB"

    def tall(f):
        csc(f)
        f.attrs["binsparse"] = f.attrs["binsparse"].replace(f"[{M}, {K}]", f"[{1 << 61}, {K}]")
    yield "CSC of 2^61 rows", tall, "", RUNTIME, "GiB"


def refuse_all(checks, folder):
    outside, out, path = folder / "outside.h5", folder / "refused.h5", folder / "bad.h5"
    with h5py.File(outside, "w") as file:
        anndata(file, matrix())
    for label, write, name, code, word in bad_files(outside):
        with h5py.File(path, "w") as file:
            write(file)
        for ranks in RANKS[::2]:
            result = run("asparse_convert", f"{path}::{name}" if name else path, out, ranks=ranks)
            checks.that(result.returncode == code and word in result.stderr and result.stderr.count("error:") == 1,
                        f"{label}, p={ranks}: expected exit {code} and '{word}', {said(result)}")
            checks.that(not out.exists(), f"{label}: left an output file")
    result = run("asparse_convert", folder / "none.h5ad", out)
    checks.that(result.returncode == NO_INPUT, f"no such file: {said(result)}")


def other_programs(checks, folder):
    """The options reach every program that reads a matrix; B comes from a dense layer."""
    a = matrix()
    path, c = folder / "options.h5", folder / "c.h5"
    b = np.random.default_rng(5).integers(-4, 5, (M, 3)).astype(np.float64)
    with h5py.File(path, "w") as file:
        triple(file, a.tocsc())
        file.create_dataset("dense", data=b.T).attrs["MATLAB_class"] = np.bytes_("double")
    options = ["--layout", "csc", "--transpose"]
    for ranks in RANKS:
        result = run("asparse_solve", *options, "--b", f"{path}::/dense", "-o", c, path, ranks=ranks)
        checks.that(result.returncode == OK, f"solve, p={ranks}: {said(result)}")
        with h5py.File(c) as file:
            checks.that(np.array_equal(file["values"][:].reshape(-1, 3), a.T @ b), f"solve, p={ranks}: other C")
    result = run("asparse_partition", *options, "--parts", 2, "-o", folder / "p2.h5", path)
    checks.that(result.returncode == OK, f"partition: {said(result)}")
    result = run("asparse_solve", "--transpose", folder / "p2.h5", ranks=2)
    checks.that(result.returncode == USAGE and "--transpose" in result.stderr, f"partitioned: {said(result)}")
    # Our own files are checked by their checksum the other way round too.
    ours, other = folder / "ours.h5", folder / "other.h5"
    result = run("asparse_convert", "--layout", "csc", path, ours, ranks=2)
    checks.that(result.returncode == OK, f"convert: {said(result)}")
    for ranks in RANKS:
        result = run("asparse_convert", "--transpose", ours, other, ranks=ranks)
        checks.that(result.returncode == OK and (read_back(other) != sp.csr_matrix(a.T)).nnz == 0,
                    f"our own file transposed, p={ranks}: {said(result)}")
    with h5py.File(ours, "r+") as file:
        file["values"][3] += 1
    result = run("asparse_convert", "--transpose", ours, other, ranks=2)
    checks.that(result.returncode == DATA_ERROR and "checksum" in result.stderr, f"changed value: {said(result)}")
    mtx = folder / "a.mtx"
    mtx.write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2.0\n")
    result = run("asparse_convert", "--transpose", mtx, folder / "a.h5")
    checks.that(result.returncode == USAGE and "--transpose" in result.stderr, f"--transpose of text: {said(result)}")
    result = run("asparse_info", "--layout", "ell", path)
    checks.that(result.returncode == USAGE and "csr, csc" in result.stderr, f"--layout ell: {said(result)}")


def test():
    checks = Checks()
    with Folder() as folder:
        for part in (read_all, duplicates, refuse_all, other_programs):
            part(checks, folder)
    return checks.finish(least=120)


main(test)
