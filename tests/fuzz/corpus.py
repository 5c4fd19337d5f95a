"""The corpus of a fuzz target: small files, made here, and those of other programs where ASPARSE_DATA is.

    corpus.py FORMAT FOLDER            copies them into the folder
    corpus.py FORMAT --replay PROGRAM  runs the target on them and on the files of bugs that were fixed
"""
import gzip
import io
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("ASPARSE_DATA", HERE / "../../../shared/data")) / "io-files"

LARGEST = {"hdf5": 40 << 10}  # bytes; other formats:
LARGEST_TEXT = 8 << 10
FOLDERS = {"mtx": "mtx mtx-invalid", "edges": "edgelist", "metis": "metis metis-invalid", "hb": "hb-rb hb-rb-invalid",
           "petsc": "petscbin", "npz": "npz", "mat5": "mat5",
           "hdf5": "binsparse binsparse-c 10x biom cooler h5-misc h5ad h5sparse loom mat73"}

MATRIX = sp.csr_matrix(np.array([[4.0, -1, 0, 0], [0, 2.5, 0, 1e-3], [0, 0, 0, 0]]))
SQUARE = sp.csr_matrix(np.array([[4.0, -1, 0], [-1, 4, -1], [0, -1, 4]]))


def mtx():
    yield from ((path.name, path.read_bytes()) for path in (HERE.parent / "data").glob("*.mtx"))
    head = "%%MatrixMarket matrix "
    yield "array", f"{head}array real general\n2 2\n1\n0\n-3.5e1\n4\n".encode()
    yield "pattern", f"{head}coordinate pattern symmetric\n% comment\n3 3 2\n1 1\n3 2\n".encode()
    yield "integer", f"{head}coordinate integer general\r\n2 3 2\r\n1 3 9007199254740993\r\n1 3 -7\r\n".encode()


def edges():
    yield "plain", b"# Nodes: 3 Edges: 4\n0\t1\n2\t0\r\n5 5\n\n 0 1"
    yield "weighted", b"% bip weighted\n7 9 1.5\n9 7 -2e-3\n"


def metis():
    yield "cycle", b"4 4\n2 4\n1 3\n2 4\n1 3\n"
    yield "weights", b"%comment\n 4 3 011 2\n1 1 2 5 3 6 4 7\n% another\n2 2 1 5\n0 0 1 6\n1 1 1 7\n\n\n"
    yield "sizes", b"4 2 110\r\n9 1 2\r\n9 1 1 3\r\n9 1 2\r\n9 1\r\n"


def hb():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.hb"
        scipy.io.hb_write(path, MATRIX)
        yield "scipy", path.read_bytes()
    title = f"{'Title':<72}{'KEY':<8}\n"
    yield "rua", (title + f"{4:14}{1:14}{1:14}{2:14}{0:14}\n{'RUA':<14}{3:14}{3:14}{3:14}{0:14}\n"
                  f"{'(4I4)':<16}{'(3I4)':<16}{'(2E12.4)':<20}{'':<20}\n   1   2   3   4\n   1   2   3\n"
                  "  1.0000E+00  2.0000D+00\n -3.0000\n").encode()
    yield "rza", (title + f"{2:14}{1:14}{1:14}{1:14}{0:14}\n{'RZA':<14}{2:14}{2:14}{1:14}{0:14}\n"
                  f"{'(16I5)':<16}{'(16I5)':<16}{'(1P,3D25.17)':<20}{'':<20}\n    1    2    2\n    2\n"
                  "  1.5000000000000000D+00\n").encode()
    yield "pse", (title + f"{2:14}{1:14}{1:14}{0:14}\n{'pse':<14}{3:14}{3:14}{2:14}{2:14}\n"
                  f"{'(16I5)':<16}{'(16I5)':<16}\n    1    3    3    3\n    2    3\n").encode()


def petsc():
    for index in ("i4", "i8"):
        rows = np.diff(MATRIX.indptr)
        for value in ("f8", "f4"):
            head = np.array([1211216, *MATRIX.shape, MATRIX.nnz, *rows, *MATRIX.indices], f">{index}")
            yield index + value, head.tobytes() + MATRIX.data.astype(f">{value}").tobytes()
    yield "dense", np.array([1211216, 2, 2, -1], ">i4").tobytes() + np.arange(4, dtype=">f8").tobytes()


def npz():
    for name, matrix in (("csr", MATRIX), ("csc", MATRIX.tocsc()), ("coo", MATRIX.tocoo()),
                         ("bsr", sp.bsr_matrix(MATRIX[:2], blocksize=(2, 2))), ("dia", SQUARE.todia()),
                         ("f4", MATRIX.astype(np.float32)), ("i2", MATRIX.astype(np.int16))):
        for compressed in (False, True):
            file = io.BytesIO()
            sp.save_npz(file, matrix, compressed=compressed)
            yield f"{name}-{compressed}", file.getvalue()
    file = io.BytesIO()
    arrays = {"format": "csr", "shape": MATRIX.shape, "data": MATRIX.data.astype("f2"),
              "indices": MATRIX.indices.astype("u2"), "indptr": MATRIX.indptr.astype(">i8")}
    np.savez(file, **{f"{matrix}_{name}": array for matrix in "ab" for name, array in arrays.items()})
    yield "several", file.getvalue()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array))
    yield "zip64", file.getvalue()


def mat5():
    contents = {"one": {"a": MATRIX}, "two": {"a": MATRIX, "b": SQUARE}, "logical": {"a": MATRIX.astype(bool)},
                "nested": {"Problem": {"A": SQUARE, "title": "text"}, "x": np.arange(3)},
                "cells": {"c": np.array([MATRIX, "text", SQUARE], dtype=object)}}
    for name, variables in contents.items():
        for compressed in (False, True):
            file = io.BytesIO()
            scipy.io.savemat(file, variables, do_compression=compressed)
            yield f"{name}-{compressed}", file.getvalue()


def content():
    for format in (mtx, edges, metis, hb, petsc, npz, mat5):
        name, file = next(iter(format()))
        yield format.__name__, file
        yield f"{format.__name__}.gz", gzip.compress(file, mtime=0)
        yield f"{format.__name__}.xz", lzma.compress(file)
    yield "repeats.gz", gzip.compress(b"%%MatrixMarket matrix array real general\n9999 1\n" + b"1\n" * 9999, mtime=0)
    yield "members.gz", gzip.compress(b"%%MatrixMarket matrix array ", mtime=0) + gzip.compress(
        b"real general\n1 1\n2\n", mtime=0) + b"\0\0"
    text = next(mtx())[1][:250]
    yield "raw.zst", b"\x28\xb5\x2f\xfd\x20" + bytes([len(text)]) + (len(text) << 3 | 1).to_bytes(3, "little") + text


# ---- HDF5 --------------------------------------------------------------------------------------


def compressed(group, names, matrix, **options):
    for name, array in zip(names, (matrix.indptr, matrix.indices, matrix.data)):
        group.create_dataset(name, data=array, **options)


def binsparse(file, format, names, arrays, **more):
    descriptor = {"version": "0.1", "format": format, "shape": MATRIX.shape, "number_of_stored_values": MATRIX.nnz,
                  **more}
    file.attrs["binsparse"] = json.dumps({"binsparse": descriptor})
    for name, array in zip(names, arrays):
        file.create_dataset(name, data=array)


def write_csr(file):
    binsparse(file, "CSR", ("pointers_to_1", "indices_1", "values"), (MATRIX.indptr, MATRIX.indices, MATRIX.data),
              data_types={"values": "float64"})
    file.attrs["asparse_checksum"] = "0123456789abcdef"


def write_csc_iso(file):
    a = MATRIX.tocsc()
    binsparse(file, "CSC", ("pointers_to_1", "indices_1", "values"), (a.indptr, a.indices, np.ones(1, "i1")),
              data_types={"values": "iso[int8]"})


def write_coo(file):
    a = sp.tril(SQUARE).tocoo()
    binsparse(file, "COO", ("indices_0", "indices_1", "values", "fill_value"), (a.row, a.col, a.data, [0.0]), fill=True,
              shape=SQUARE.shape, number_of_stored_values=a.nnz, structure="symmetric_lower")


def write_coo_iso(file):
    a = MATRIX.tocoo()
    binsparse(file, "COOR", ("indices_0", "indices_1", "values"), (a.row, a.col, [2.5]),
              data_types={"values": "iso[float64]"})
    file["elsewhere"] = h5py.ExternalLink("other.h5", "/values")


def write_octave(file):
    group = file.create_group("a")
    group.attrs["OCTAVE_NEW_FORMAT"] = np.uint8(1)
    group["value/nr"], group["value/nc"], group["value/nz"] = *map(np.int32, MATRIX.shape), np.int32(MATRIX.nnz)
    a = MATRIX.tocsc()
    compressed(group, ("value/cidx", "value/ridx", "value/data"), a)


def write_dcsr(file):
    binsparse(file, "DCSR", ("pointers_to_1", "indices_0", "indices_1", "values"),
              (MATRIX.indptr[:3], [0, 1], MATRIX.indices, MATRIX.data.astype("f4")))


def write_dense(file):
    binsparse(file, "DMATC", ("values",), (MATRIX.toarray().T,))
    file.attrs["asparse_checksum"] = "0123456789abcdef"


def write_vector(file):
    binsparse(file, "CVEC", ("indices_0", "values"), ([1, 3], [2, 3]), shape=[5], number_of_stored_values=2)


def write_datasets(file):
    file.create_dataset("a/B", data=MATRIX.toarray(), chunks=(2, 2), compression="lzf", shuffle=True)
    file.create_dataset("b", data=np.arange(6, dtype=">i2"))


def write_anndata(file):
    group, matrix = file.create_group("layers/X"), sp.vstack([MATRIX] * 8).tocsr()
    compressed(group, ("indptr", "indices", "data"), matrix, compression="lzf")
    group.attrs.update({"encoding-type": "csr_matrix", "shape": matrix.shape})
    file["X"] = h5py.SoftLink("/layers/X")


def write_bare(file):
    compressed(file, ("indptr", "indices", "data"), MATRIX)
    file["shape"] = MATRIX.shape


def write_h5sparse(file):
    group = file.create_group("g")
    compressed(group, ("indptr", "indices", "data"), MATRIX.tocsc(), compression="gzip", shuffle=True, fletcher32=True)
    group.attrs.update({"h5sparse_format": "csc", "h5sparse_shape": MATRIX.shape})


def write_matlab(file):
    group = file.create_group("A")
    compressed(group, ("jc", "ir", "data"), MATRIX.tocsc())
    group.attrs.update({"MATLAB_class": np.bytes_("double"), "MATLAB_sparse": np.uint64(MATRIX.shape[0])})


def write_cooler(file):
    a = sp.triu(SQUARE).tocsr()
    compressed(file, ("indexes/bin1_offset", "pixels/bin2_id", "pixels/count"), a)
    file.create_group("bins")
    file.attrs.update({"format": "HDF5::Cooler", "nbins": 3, "nnz": a.nnz, "storage-mode": "symmetric-upper"})


def write_biom(file):
    compressed(file.create_group("observation/matrix"), ("indptr", "indices", "data"), MATRIX)
    compressed(file.create_group("sample/matrix"), ("indptr", "indices", "data"), MATRIX.tocsc())
    file.attrs.update({"format-url": "http://biom-format.org", "shape": MATRIX.shape, "nnz": MATRIX.nnz})


def write_tenx(file):
    group = file.create_group("matrix")
    compressed(group, ("indptr", "indices", "data"), MATRIX.tocsc())
    group["shape"] = np.array(MATRIX.shape, "i4")
    group.create_group("features")


WRITERS = (write_csr, write_csc_iso, write_coo, write_coo_iso, write_dcsr, write_dense, write_vector, write_datasets,
           write_anndata, write_bare, write_h5sparse, write_matlab, write_octave, write_cooler, write_biom, write_tenx)


def images():
    """The HDF5 files made here, and those of other programs."""
    for writer in WRITERS:
        buffer = io.BytesIO()
        with h5py.File(buffer, "w") as file:
            writer(file)
        yield writer.__name__, buffer.getvalue()


def hdf5():
    yield from images()


# ---- descriptions of HDF5 files, for tests/fuzz/container.h -------------------------------------


def type_word(dtype):
    if h5py.check_dtype(vlen=dtype) or h5py.check_string_dtype(dtype):
        return "s"
    if h5py.check_dtype(enum=dtype):
        return "b"
    if dtype.kind not in "iuf":
        return {"b": "b", "S": f"s{dtype.itemsize}", "O": "r"}.get(dtype.kind, "c")
    return (">" if dtype.byteorder == ">" else "") + f"{dtype.kind}{dtype.itemsize}"


def shape_word(shape):
    return "x".join(map(str, shape)) or "-"


def values_words(array, dtype):
    if dtype.kind not in "iuf" or h5py.check_dtype(enum=dtype):
        return ""
    return "= " + " ".join(str(value.item()) for value in np.ravel(array)[:256])


def describe_dataset(path, dataset):
    options = [f"chunk={shape_word(dataset.chunks)}"] if dataset.chunks else []
    options += [word for word, used in (("shuffle", dataset.shuffle), ("gzip", dataset.compression == "gzip"),
                                        ("fletcher", dataset.fletcher32)) if used]
    if dataset.compression == "lzf":  # HDF5 has no encoder here
        packed = dataset.id.read_direct_chunk((0,) * dataset.ndim)[1][:512]
        return " ".join(["array", path, type_word(dataset.dtype), shape_word(dataset.shape), *options,
                         f"lzf={np.prod(dataset.chunks) * dataset.dtype.itemsize}", f"raw={packed.hex()}"])
    values = values_words(dataset[()] if dataset.size <= 256 else dataset[:256 // max(1, dataset.size // len(dataset))],
                          dataset.dtype) if dataset.size and dataset.ndim <= 2 else ""
    return " ".join(["array", path, type_word(dataset.dtype), shape_word(dataset.shape), *options, values]).strip()


def describe_attribute(path, name, value):
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode(errors="replace")
        kind = "text" if isinstance(value, str) else "fixed"
        return f"{kind} {path} {name} " + " ".join(text.split())
    array = np.asarray(value)
    return " ".join(["attribute", path, name, type_word(array.dtype), shape_word(array.shape),
                     values_words(array, array.dtype)]).strip()


def describe(image):
    lines = []

    def visit(path, thing):
        lines.append(f"group {path}" if isinstance(thing, h5py.Group) else describe_dataset(path, thing))
        lines.extend(describe_attribute(path, name, value) for name, value in thing.attrs.items())

    with h5py.File(io.BytesIO(image)) as file:
        visit("/", file)
        file.visititems(lambda name, thing: visit(f"/{name}", thing))
        for name in file:
            link = file.get(name, getlink=True)
            if isinstance(link, h5py.SoftLink):
                lines.append(f"soft /{name} {link.path}")
            if isinstance(link, h5py.ExternalLink):
                lines.append(f"external /{name} {link.filename} {link.path}")
    return "\n".join(line for line in lines if line != "group /" and len(line) < 2000).encode()


def convention():
    for name, image in (*images(), *others("hdf5")):
        try:
            text = describe(image)
            yield name, text
            chosen = re.findall(rb"^(?:array|group|external) (/\S*[^/\s])", text, re.MULTILINE)
            if chosen:
                yield f"{name}-first", b"object " + chosen[0] + b"\n" + text
                yield f"{name}-last", b"object " + chosen[-1] + b"\n" + text
        except (OSError, TypeError, KeyError, RuntimeError, ValueError) as error:
            print(f"note: no description of {name}: {error}")


# ---- main --------------------------------------------------------------------------------------


def others(format):
    """Small files of other programs."""
    largest = LARGEST.get(format, LARGEST_TEXT)
    for folder in FOLDERS.get(format, "").split():
        for path in sorted((DATA / folder).glob("*")):
            if path.is_file() and path.stat().st_size <= largest:
                yield path.name, path.read_bytes()


FORMATS = {"mtx": mtx, "edges": edges, "metis": metis, "hb": hb, "petsc": petsc, "npz": npz, "mat5": mat5,
           "content": content, "hdf5": hdf5, "convention": convention, "part": lambda: ()}


def main(format, folder, *program):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary if folder == "--replay" else folder)
        for name, content_ in (*FORMATS[format](), *others(format)):
            (folder / name).write_bytes(content_)
        for kind in ("seeds", "regressions"):
            for path in (HERE / kind / format).glob("*"):
                (folder / f"{kind}-{path.name}").write_bytes(path.read_bytes())
        if program:
            return subprocess.run([*program, *sorted(folder.iterdir())]).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
