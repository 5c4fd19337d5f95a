"""asparse_convert from the command line: exit codes, words, files that appear, stay away or stay as they were."""
import gzip
import json
import subprocess

import h5py
import numpy as np

from asparse_testing import (BIN, DATA_ERROR, NO_INPUT, OK, RUNTIME, USAGE, Checks, Folder, main, run, said)

TEXT = "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1.5\n2 1 1e300\n2 1 1e300\n"


def expect(checks, code, words, *arguments, **how):
    result = run("asparse_convert", *arguments, **how)
    checks.that(result.returncode == code and words in result.stdout + result.stderr,
                f"{arguments}: expected exit {code} and '{words}': {said(result)}")
    return result


def usage(checks, a, out):
    expect(checks, OK, "usage: asparse_convert", "--help")
    expect(checks, OK, "asparse_convert ", "--version")
    expect(checks, USAGE, "no input file")
    expect(checks, USAGE, "no output file", a)
    expect(checks, USAGE, "'three' is too much", a, out, "three")
    expect(checks, USAGE, "--fast", "--fast", a, out)
    expect(checks, USAGE, "asparse_convert --help", "--fast", a, out)
    expect(checks, USAGE, "needs a value", a, out, "--json")
    expect(checks, USAGE, "a file holds fp64 or fp32", "--precision", "bf16", a, out)
    expect(checks, USAGE, "fp64, fp32", "--precision", "fp8", a, out)
    expect(checks, USAGE, "is the input itself", a, a.parent / "." / a.name)


def refusals(checks, folder, a, out):
    bad = folder / "bad.mtx"
    bad.write_text("3 3 1\n1 1 1\n")
    expect(checks, NO_INPUT, "cannot open", folder / "none.mtx", out)
    expect(checks, DATA_ERROR, "line 1: no banner", bad, out)
    expect(checks, DATA_ERROR, "beyond the range of fp32", "--precision", "fp32", a, out)
    result = expect(checks, DATA_ERROR, "no banner", bad, out, ranks=3)
    checks.that(result.stderr.count("error:") == 1, f"one rank speaks: {said(result)}")
    expect(checks, RUNTIME, str(folder / "no"), a, folder / "no" / "a.h5")
    expect(checks, RUNTIME, "r.json", "--json", folder / "no" / "r.json", a, folder / "r.h5")
    checks.that(not list(folder.glob("*out.h5*")), f"left behind: {list(folder.iterdir())}")
    out.write_bytes(b"an older file")
    expect(checks, DATA_ERROR, "no banner", bad, out)
    checks.that(out.read_bytes() == b"an older file", "a failed conversion changed the older output")


def conversions(checks, folder, a, out):
    expect(checks, OK, "2 duplicate entries were summed", a, out)
    with h5py.File(out) as file:
        checks.that(np.array_equal(file["values"][:], [1.5, 2e300, 2e300]), f"values {file['values'][:]}")
        checks.that("asparse_convert" in str(file.attrs["program"]), f"provenance {dict(file.attrs)}")
    expect(checks, OK, "3 entries", out, folder / "other.h5")
    with h5py.File(folder / "other.h5") as file:
        checks.that(np.array_equal(file["values"][:], [1.5, 2e300, 2e300]), f"HDF5 to HDF5: {file['values'][:]}")
    result = run("asparse_convert", "--quiet", "--json", "-", a, out)
    checks.that(result.stderr == "", f"quiet: {said(result)}")
    record = json.loads(result.stdout)
    for key, value in dict(rows=3, columns=3, stored_entries=3, nnz=3, duplicates=2, symmetry="symmetric",
                           value_type="real", precision="fp64", input_bytes=len(TEXT)).items():
        checks.that(record[key] == value, f"record: {key} is {record[key]}, expected {value}")
    expect(checks, OK, "", "--json", folder / "r.json", a, out, ranks=3)
    checks.that(json.loads((folder / "r.json").read_text())["nnz"] == 3, "record of three ranks")
    piped = subprocess.run([str(BIN / "asparse_convert"), "--quiet", "-", str(out)], capture_output=True, timeout=60,
                           input=gzip.compress(TEXT.encode()))
    checks.that(piped.returncode == OK, f"standard input: {piped}")
    before = out.read_bytes()
    expect(checks, USAGE, "is the input itself", f"{out}::/", out)
    checks.that(out.read_bytes() == before, "the input was overwritten")


def single_precision(checks, folder):
    path, out = folder / "single.mtx", folder / "single.h5"
    path.write_text("%%MatrixMarket matrix array real general\n1 2\n0.1\ninf\n")
    expect(checks, OK, "", "--precision", "fp32", path, out)
    with h5py.File(out) as file:
        checks.that(file["values"].dtype == np.float32, f"type {file['values'].dtype}")
        checks.that(np.array_equal(file["values"][:], np.float32([0.1, np.inf])), f"values {file['values'][:]}")


def test():
    checks = Checks()
    with Folder() as folder:
        a, out = folder / "a.mtx", folder / "out.h5"
        a.write_text(TEXT)
        usage(checks, a, out)
        refusals(checks, folder, a, out)
        conversions(checks, folder, a, out)
        single_precision(checks, folder)
    return checks.finish(least=36)


main(test)
