"""What asparse writes, read by h5py and SciPy.

usage: h5py_reads.py WRITER LAUNCHER...   where WRITER is the program test_h5py_files and LAUNCHER starts it
"""
import json
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import scipy.sparse

M, K, N = 37, 23, 5


def value(i, j):
    return (i * 31 + j * 17) % 101 / 8 - 6


def expected_sparse():
    i, j = np.meshgrid(np.arange(M), np.arange(K), indexing="ij")
    keep = (i % 5 != 2) & ((i + 3 * j) % 4 == 0)
    return scipy.sparse.csr_matrix((value(i[keep], j[keep]), (i[keep], j[keep])), shape=(M, K))


def read(path, file_format):
    file = h5py.File(path)
    text = file.attrs["binsparse"]
    descriptor = json.loads(text if isinstance(text, str) else bytes(text))["binsparse"]
    assert descriptor["version"] == "0.1" and descriptor["format"] == file_format, descriptor
    for name, declared in descriptor["data_types"].items():
        kind = declared.removeprefix("iso[").removesuffix("]")
        assert file[name].dtype == kind, (name, file[name].dtype, declared)
    for name in ("program", "source", "options", "asparse_checksum"):
        assert len(file.attrs[name]) > 0, name
    assert file.attrs["matrix_hash"] == b"%016x" % 0x123, file.attrs["matrix_hash"]
    return file, descriptor


def check_sparse(path, value_type):
    file, descriptor = read(path, "CSR")
    wanted = expected_sparse()
    assert descriptor["shape"] == [M, K] and descriptor["number_of_stored_values"] == wanted.nnz
    assert descriptor["data_types"]["values"] == value_type
    values = file["values"][:]
    if value_type.startswith("iso"):
        assert values.shape == (1,) and values[0] == 1
        values = np.ones(wanted.nnz)
        wanted.data[:] = 1
    found = scipy.sparse.csr_matrix((values, file["indices_1"][:], file["pointers_to_1"][:]), shape=(M, K))
    found.check_format(full_check=True)
    assert found.nnz == wanted.nnz and (found != wanted).nnz == 0


def check_dense(path, value_type):
    file, descriptor = read(path, "DMATR")
    assert descriptor["shape"] == [M, N] and descriptor["data_types"]["values"] == value_type
    i, j = np.meshgrid(np.arange(M), np.arange(N), indexing="ij")
    assert np.array_equal(file["values"][:].reshape(M, N), value(i, j))


def main():
    with tempfile.TemporaryDirectory() as folder:
        for ranks in ("1", "2", "3"):
            subprocess.run([*sys.argv[2:], "-np", ranks, sys.argv[1], folder], check=True)
            check_sparse(f"{folder}/fp64.h5", "float64")
            check_sparse(f"{folder}/fp32.h5", "float32")
            check_sparse(f"{folder}/bf16.h5", "float32")
            check_sparse(f"{folder}/pattern.h5", "iso[int8]")
            check_dense(f"{folder}/dense_fp64.h5", "float64")
            check_dense(f"{folder}/dense_bf16.h5", "float32")
    print("h5py and SciPy read 18 files as written")


main()
