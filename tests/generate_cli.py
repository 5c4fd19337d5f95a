"""asparse_generate from the command line: the same file from any number of ranks, what is in it, words and exit codes."""
import json

import h5py
import numpy as np
import scipy.sparse as sp

from asparse_testing import OK, RUNTIME, USAGE, Checks, Folder, main, read_dense, run, said

KINDS = ["grid2d:30,20", "grid3d:8,7,6,points=27", "fem2d:12,unknowns=2", "fem3d:5,values=random", "banded:300,20,.3",
         "rmat:9,8", "uniform:200,330,per_row=7.5", "blocks:200,310,16,.8"]


def expect(checks, code, words, *arguments, **how):
    result = run("asparse_generate", *arguments, **how)
    checks.that(result.returncode == code and words in result.stdout + result.stderr,
                f"{arguments}: expected exit {code} and '{words}': {said(result)}")
    return result


def contents(path):
    """Every dataset and attribute: name → (type, values)."""
    with h5py.File(path) as file:
        found = {name: (str(file[name].dtype), file[name][:].tolist()) for name in file}
        found.update({"@" + name: str(value) for name, value in file.attrs.items()})
    return found


def read(path):
    with h5py.File(path) as file:
        shape = json.loads(file.attrs["binsparse"])["binsparse"]["shape"]
        arrays = (file["values"][:], file["indices_1"][:].astype(np.int64), file["pointers_to_1"][:].astype(np.int64))
    return sp.csr_matrix(arrays, shape=shape)


def generated(checks, out, *arguments, **how):
    expect(checks, OK, "entries", *arguments, "-o", out, **how)
    return read(out)


def any_number_of_ranks(checks, folder):
    out = folder / "a.h5"
    for number, kind in enumerate(KINDS):
        expect(checks, OK, "entries", kind, "-o", out, "--seed", 11)
        alone = contents(out)
        checks.that({"pointers_to_1", "indices_1", "values"} <= set(alone), f"{kind}: datasets {sorted(alone)}")
        for ranks in ((1, 5), (2, 3))[number % 2]:
            expect(checks, OK, "entries", kind, "-o", out, "--seed", 11, ranks=ranks)
            checks.that(contents(out) == alone, f"{kind}: {ranks} ranks wrote another file")
    expect(checks, OK, "entries", "uniform:3,7,2", "-o", out)
    alone = contents(out)
    expect(checks, OK, "entries", "uniform:3,7,2", "-o", out, ranks=5)
    checks.that(contents(out) == alone, "more ranks than rows")


def laplacian(n):
    return sp.diags([-1, 2, -1], [-1, 0, 1], shape=(n, n))


def against_scipy(checks, folder):
    out = folder / "a.h5"
    a = generated(checks, out, "grid2d:nx=13,ny=9")
    wanted = sp.kron(sp.eye(9), laplacian(13)) + sp.kron(laplacian(9), sp.eye(13))
    checks.that(abs(a - wanted).nnz == 0, "grid2d is not the sum of Kronecker products")
    a = generated(checks, out, "grid3d:nx=4,ny=6,nz=5,points=27,values=one")
    wanted = sp.kron(sp.kron(abs(laplacian(5)).sign(), abs(laplacian(6)).sign()), abs(laplacian(4)).sign())
    checks.that(abs(a - wanted).nnz == 0, "27 points are not the Kronecker product of three bands")
    a = generated(checks, out, "fem3d:4,unknowns=3", "--precision", "fp32", ranks=2)
    checks.that(a.dtype == np.float32, f"precision: {a.dtype}")
    checks.that(abs(a - a.T).nnz == 0, "fem3d is not symmetric")
    checks.that(np.linalg.eigvalsh(a.toarray().astype(float)).min() > 0, "fem3d is not positive definite")
    a = generated(checks, out, "uniform:100,5000,density=0.01", "--seed", 3)
    b = generated(checks, out, "uniform:100,5000,density=0.01", "--seed", 4)
    checks.that(set(np.diff(a.indptr)) == {50} and a.nnz == b.nnz, "uniform rows are not of equal length")
    checks.that((a != b).nnz > 9000, "another seed gave nearly the same matrix")
    checks.that(a.has_canonical_format and -1 <= a.data.min() < -0.99 and 0.99 < a.data.max() < 1, "random values")


def records(checks, folder):
    out = folder / "a.h5"
    result = expect(checks, OK, "", "rmat:8,edges=4", "-o", out, "--seed", 5, "-q", "--json", "-", "--dtype", "fp32")
    checks.that(result.stderr == "", f"quiet: {said(result)}")
    record = json.loads(result.stdout)
    text = "rmat:scale=8,edges=4,a=0.57,b=0.19,c=0.19,values=random"
    for key, value in dict(matrix=text, seed=5, precision="fp32", output=str(out), rows=256, columns=256,
                           nnz=read(out).nnz, longest_row=int(np.diff(read(out).indptr).max())).items():
        checks.that(record[key] == value, f"record: {key} is {record[key]}, expected {value}")
    with h5py.File(out) as file:
        said_there = " ".join(str(value) for value in file.attrs.values())
    checks.that("asparse_generate" in said_there and text in said_there and "--seed 5" in said_there,
                f"provenance: {said_there}")
    expect(checks, OK, "not written", "rmat:8,edges=4", "--json", folder / "r.json", ranks=3)
    checks.that(json.loads((folder / "r.json").read_text())["output"] is None, "record of a matrix that was not kept")


def solves(checks, folder):
    out = folder / "a.h5"
    for kind, ranks in (("fem3d:6", 2), ("rmat:10,8", 3), ("blocks:256,192,32,.7", 2)):
        expect(checks, OK, "entries", kind, "-o", out)
        result = run("asparse_solve", out, "--cols", 9, "--repeat", 1, ranks=ranks)
        checks.that(result.returncode == OK and "verified   yes" in result.stdout, f"{kind}: {said(result)}")


def in_place(checks, folder):
    """Programs that make the matrix themselves find what they would find in the file."""
    out = folder / "a.h5"
    for kind, ranks in (("fem2d:9,unknowns=2", 3), ("rmat:9,8", 2)):
        expect(checks, OK, "entries", kind, "--seed", 7, "-o", out)
        made = ["--generate", kind, "--seed", 7, "--cols", 5]
        one, other = (run("asparse_solve", *how, "-o", folder / c, "--json", "-", ranks=ranks)
                      for how, c in ((made, "c.h5"), ([out, "--seed", 7, "--cols", 5], "d.h5")))
        checks.that(one.returncode == OK and other.returncode == OK, said(one) + said(other))
        one, other = json.loads(one.stdout), json.loads(other.stdout)
        checks.that(one["matrix"]["hash"] == other["matrix"]["hash"], f"{kind}: another matrix than the file's")
        checks.that(np.array_equal(read_dense(folder / "c.h5"), read_dense(folder / "d.h5")), f"{kind}: another C")
        checks.that(one["matrix"]["generated"].startswith(kind.split(":")[0]) and other["matrix"]["generated"] is None,
                    f"{one['matrix']}, {other['matrix']}")
        one, other = (json.loads(run("asparse_info", *how, "--json", "-", ranks=ranks).stdout)
                      for how in (["--generate", kind, "--seed", 7], [out]))
        for key in ("row_degrees", "bandwidth", "symmetry", "windows", "blocks"):
            checks.that(one[key] == other[key], f"{kind}: asparse_info says of {key}: {one[key]}, {other[key]}")
    for program in ("asparse_solve", "asparse_info"):
        for words, *arguments in (("'a.h5' is too much", "--generate", "grid2d:9", "a.h5"),
                                  ("no kind of matrix 'grid9'", "--generate", "grid9"),
                                  ("are for files", "--generate", "grid2d:9", "--transpose")):
            result = run(program, *arguments, ranks=2)
            checks.that(result.returncode == USAGE and words in result.stderr, f"{words}: {said(result)}")
        result = run(program, "--generate", "uniform:1e10", ranks=2)
        checks.that(result.returncode == RUNTIME and "GiB are available" in result.stderr, said(result))


def usage(checks, folder):
    out = folder / "never.h5"
    expect(checks, OK, "usage: asparse_generate", "--help")
    expect(checks, OK, "asparse_generate ", "--version")
    listed = expect(checks, OK, "2^scale vertices", "--list").stdout
    for kind in KINDS:
        checks.that("\n" + kind.split(":")[0] + ":" in "\n" + listed, f"--list lacks {kind}")
    expect(checks, USAGE, "no description", "-o", out)
    expect(checks, USAGE, "'grid3d' is too much", "grid2d", "grid3d", "-o", out)
    expect(checks, USAGE, "no kind of matrix 'grid4d'; there are grid2d", "grid4d", "-o", out)
    expect(checks, USAGE, "asparse_generate --help", "grid4d", "-o", out)
    expect(checks, USAGE, "it takes nx, ny, points, values", "grid2d:rows=4", "-o", out)
    expect(checks, USAGE, "points takes 5 or 9, not '7'", "grid2d:points=7", "-o", out)
    expect(checks, USAGE, "fp64, fp32", "grid2d", "--precision", "bf16", "-o", out)
    expect(checks, USAGE, "--seed takes a whole number", "grid2d", "--seed", "x", "-o", out)
    expect(checks, USAGE, "--fast", "--fast", "grid2d", "-o", out)
    expect(checks, USAGE, "needs a value", "grid2d", "-o")
    result = expect(checks, USAGE, "too large", "grid2d:1e12", "-o", out, ranks=3)
    checks.that(result.stderr.count("error:") == 1, f"one rank speaks: {said(result)}")
    result = expect(checks, RUNTIME, "GiB are available", "uniform:1e10", "-o", out, ranks=2)
    checks.that(result.stderr.count("error:") == 1, f"one rank speaks: {said(result)}")
    expect(checks, RUNTIME, str(folder / "no"), "grid2d:9", "-o", folder / "no" / "a.h5")
    expect(checks, RUNTIME, "is a folder", "grid2d:9", "-o", folder)
    expect(checks, RUNTIME, str(folder / "no"), "grid2d:9", "--json", folder / "no" / "r.json")
    checks.that(not list(folder.glob("*never*")), f"left behind: {list(folder.iterdir())}")


def test():
    checks = Checks()
    for step in (usage, any_number_of_ranks, against_scipy, records, solves, in_place):
        with Folder() as folder:
            step(checks, folder)
    return checks.finish(least=140)


main(test)
