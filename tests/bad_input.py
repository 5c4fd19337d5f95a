"""What bad input gets: one clear message from one rank, the exit code of the manual, within seconds,
nothing left running, no file half written."""
import os
import subprocess
import time

import h5py
import numpy as np
import scipy.sparse as sp

from asparse_testing import (BIN, BRIEF, DATA_ERROR, MPIEXEC, NO_INPUT, OK, RUNTIME, SANITIZED, USAGE, Checks, Folder,
                             main, run, said, write_csr)

SECONDS = 60 if SANITIZED else 20


def small():
    return sp.random(60, 50, 0.1, format="csr", random_state=1)


def edited(folder, name, edit, matrix=None):
    """A good file with one thing changed by edit(file)."""
    path = folder / (name.replace(" ", "_") + ".h5")
    write_csr(path, small() if matrix is None else matrix)
    with h5py.File(path, "r+") as file:
        edit(file)
    return path


def replace(name, change):
    def edit(file):
        data = change(file[name][:])
        del file[name]
        file[name] = data
    return edit


def set_at(position, value):
    def change(data):
        data[position] = value
        return data
    return change


def damaged_files(folder):
    """name, path, exit code, words the message must hold"""
    yield "missing", folder / "nowhere.h5", NO_INPUT, ["nowhere.h5"]
    path = folder / "empty.h5"
    path.write_bytes(b"")
    yield "empty", path, DATA_ERROR, ["empty"]
    path = folder / "text.h5"
    path.write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2.0\n")
    yield "text", path, DATA_ERROR, ["asparse_convert"]
    path = folder / "noise.h5"
    path.write_bytes(os.urandom(5000))
    yield "noise", path, DATA_ERROR, ["HDF5"]
    whole = folder / "whole.h5"
    write_csr(whole, small())
    content = whole.read_bytes()
    for fraction in (3, 2):
        path = folder / f"truncated{fraction}.h5"
        path.write_bytes(content[: len(content) // fraction])
        yield f"truncated to 1/{fraction}", path, DATA_ERROR, [path.name]
    yield "a folder", folder, None, [str(folder)]
    yield ("pointers not monotone", edited(folder, "monotone", replace("pointers_to_1", set_at(7, 9999))), DATA_ERROR,
           ["pointers_to_1"])
    yield ("pointers start at 1", edited(folder, "start", replace("pointers_to_1", set_at(0, 1))), DATA_ERROR,
           ["pointers_to_1"])
    yield ("pointers too short", edited(folder, "short", replace("pointers_to_1", lambda p: p[:-3])), DATA_ERROR,
           ["pointers_to_1"])
    yield ("index too large", edited(folder, "large", replace("indices_1", set_at(11, 50))), DATA_ERROR,
           ["indices_1", "50"])
    yield ("index negative", edited(folder, "negative", replace("indices_1", set_at(0, -1))), DATA_ERROR,
           ["indices_1", "-1"])
    yield ("fewer indices than declared", edited(folder, "fewer", replace("indices_1", lambda i: i[:-5])), DATA_ERROR,
           ["indices_1"])
    yield ("fewer values than declared", edited(folder, "values", replace("values", lambda v: v[:-1])), DATA_ERROR,
           ["values"])
    yield ("indices in two dimensions", edited(folder, "2d", replace("indices_1", lambda i: i.reshape(1, -1))),
           DATA_ERROR, ["dimension"])
    yield ("indices are floats", edited(folder, "float", replace("indices_1", lambda i: i.astype(float))), DATA_ERROR,
           ["indices_1"])

    def without_values(file):
        del file["values"]
    yield "no values", edited(folder, "without", without_values), DATA_ERROR, ["values"]

    def huge_shape(file):
        file.attrs["binsparse"] = file.attrs["binsparse"].replace("[60, 50]", "[9223372036854775807, 4611686018427387904]")
    yield "sizes that overflow", edited(folder, "huge", huge_shape), DATA_ERROR, []

    def huge_datasets(file):
        for name in ("indices_1", "values"):
            del file[name]
            file.create_dataset(name, (1 << 40,), dtype="i8" if name == "indices_1" else "f8", chunks=(1 << 16,))
        pointers = file["pointers_to_1"][:]
        pointers[-1] = 1 << 40
        del file["pointers_to_1"]
        file["pointers_to_1"] = pointers
        file.attrs["binsparse"] = file.attrs["binsparse"].replace(f'"number_of_stored_values": {small().nnz}',
                                                                   f'"number_of_stored_values": {1 << 40}')
    yield "2^40 entries in a few kilobytes", edited(folder, "bomb", huge_datasets), None, []

    def complex_values(file):
        data = file["values"][:].astype(complex)
        del file["values"]
        file["values"] = data
    yield "complex values", edited(folder, "complex", complex_values), DATA_ERROR, ["values"]

    def not_json(file):
        file.attrs["binsparse"] = "{not json"
    yield "broken descriptor", edited(folder, "json", not_json), DATA_ERROR, ["binsparse"]

    def other_object(file):
        file.create_group("other")
    path = edited(folder, "object", other_object)
    yield "object that is not there", f"{path}::/nothing", USAGE, ["nothing"]
    target = folder / "outside.h5"
    write_csr(target, small())

    def external_link(file):
        del file["values"]
        file["values"] = h5py.ExternalLink(str(target), "/values")
    yield "external link", edited(folder, "link", external_link), DATA_ERROR, ["another file"]


def check_failure(checks, label, result, code, words, started):
    text = said(result)
    if code is None:
        checks.that(result.returncode in (RUNTIME, DATA_ERROR, NO_INPUT), f"{label}: {text}")
    else:
        checks.that(result.returncode == code, f"{label}: expected exit {code}, {text}")
    checks.that(result.stderr.count("error:") == 1, f"{label}: not one message: {text}")
    for word in words:
        checks.that(word in result.stderr, f"{label}: message lacks '{word}': {text}")
    checks.that(time.time() - started < SECONDS, f"{label}: took {time.time() - started:.0f} s")


def damaged(checks, folder):
    out = folder / "c.h5"
    for label, path, code, words in damaged_files(folder):
        for ranks in (3,) if BRIEF else (1, 3):
            started = time.time()
            result = run("asparse_solve", path, "-o", out, ranks=ranks)
            check_failure(checks, f"{label}, p={ranks}", result, code, words, started)
            checks.that(not out.exists(), f"{label}: left an output file")
        for program in ("asparse_info",):
            started = time.time()
            check_failure(checks, f"{program}, {label}", run(program, path), code, words, started)
    leftovers = [p.name for p in folder.iterdir() if "tmp" in p.name]
    checks.that(not leftovers, f"temporary files left: {leftovers}")


def usage(checks, folder):
    good = folder / "good.h5"
    write_csr(good, small())
    for arguments, word in (
        (["--cols", "0", good], "--cols"), (["--cols", "x", good], "--cols"), (["--cols", "-5", good], "--cols"),
        (["--unknown", good], "--unknown"), (["-z", good], "-z"), (["--format"], "--format"),
        (["--format", "ell", good], "ell"), (["--precision", "fp8", good], "fp8"), ([], "matrix"),
        ([good, good], "second"), (["--unit", "12", "--format", "wcsr", good], "--unit"),
        (["--unit", "8", good], "--unit"), (["--repeat", "0", good], "--repeat"),
        (["--verify=maybe", good], "maybe"), (["--cols", "99999999999999999999", good], "--cols"),
        (["--b", "x.h5", "--cols", "3", good], "--cols"),
        (["--result", "bf16", "--precision", "fp32", good], "--precision bf16"),
    ):
        started = time.time()
        result = run("asparse_solve", *arguments)
        check_failure(checks, f"asparse_solve {arguments}", result, USAGE, [word, "--help"], started)
    check_failure(checks, "unknown option at p=3", run("asparse_solve", "--wrong", good, ranks=3), USAGE, ["--wrong"],
                  time.time())
    check_failure(checks, "fp64 with C in bf16 at p=2", run("asparse_solve", "--result", "bf16", good, ranks=2), USAGE,
                  ["bf16"], time.time())
    check_failure(checks, "no GPU backend here", run("asparse_solve", "--backend", "cuda", good, ranks=2), None, [],
                  time.time())
    once = run("asparse_solve", "--help", ranks=3)
    checks.that(once.returncode == OK and once.stdout.count("usage:") == 1, f"--help at p=3: {said(once)}")
    for program in ("asparse_solve", "asparse_convert", "asparse_info", "asparse_partition"):
        for option, word in (("--help", "usage:"), ("--version", program)):
            result = run(program, option)
            checks.that(result.returncode == OK and word in result.stdout, f"{program} {option}: {said(result)}")
        result = run(program, "--no-such-option")
        checks.that(result.returncode == USAGE and "--no-such-option" in result.stderr, f"{program}: {said(result)}")


def operands(checks, folder):
    good = folder / "good.h5"
    write_csr(good, small())
    b = folder / "b.h5"
    with h5py.File(b, "w") as file:
        file["rows"] = np.ones((49, 4))
        file["none"] = np.ones((50, 0))
        file["text"] = np.array([b"x"] * 50)
        file["three"] = np.ones((50, 2, 2))
    for label, path, code, word in (("B with too few rows", f"{b}::/rows", DATA_ERROR, "49"),
                                    ("B without columns", f"{b}::/none", DATA_ERROR, "none"),
                                    ("B of strings", f"{b}::/text", DATA_ERROR, "text"),
                                    ("B in three dimensions", f"{b}::/three", DATA_ERROR, "three"),
                                    ("B that is not there", f"{b}::/nothing", USAGE, "nothing"),
                                    ("B file missing", folder / "no.h5", NO_INPUT, "no.h5")):
        for ranks in (3,) if BRIEF else (1, 3):
            check_failure(checks, f"{label}, p={ranks}", run("asparse_solve", good, "--b", path, ranks=ranks), code,
                          [word], time.time())


def outputs(checks, folder):
    good = folder / "good.h5"
    write_csr(good, small())
    for label, out in (("folder missing", folder / "no" / "c.h5"), ("output is a folder", folder)):
        check_failure(checks, label, run("asparse_solve", good, "-o", out, ranks=2), RUNTIME, [str(out)], time.time())
    check_failure(checks, "output is the input", run("asparse_solve", good, "-o", good), USAGE, ["good.h5"], time.time())

    # A disk that fills up, by a limit on the size of files: the older output survives whole.
    out = folder / "old.h5"
    checks.that(run("asparse_solve", good, "-o", out).returncode == OK, "first output")
    before = out.read_bytes()
    for ranks in (1, 2):
        result = subprocess.run([*MPIEXEC, "-np", str(ranks), "bash", "-c",
                                 f"ulimit -f 20000; exec {BIN / 'asparse_solve'} {good} --cols 64000 -o {out}"],
                                capture_output=True, text=True, timeout=120)
        checks.that(result.returncode == RUNTIME, f"full disk, p={ranks}: {said(result)}")
        checks.that(result.stderr.count("error:") == 1, f"full disk, p={ranks}: {said(result)}")
        checks.that(out.read_bytes() == before, f"full disk, p={ranks}: the older output changed")
    leftovers = [p.name for p in folder.iterdir() if "tmp" in p.name]
    checks.that(not leftovers, f"temporary files left: {leftovers}")


def memory(checks, folder):
    """No memory: an address-space limit below what B and C need."""
    if SANITIZED:
        print("note: sanitizers reserve address space; the memory limit is not tested in this build")
        return
    good = folder / "tall.h5"
    write_csr(good, sp.identity(200_000, format="csr"))
    for ranks in (1, 2):
        started = time.time()
        result = subprocess.run([*MPIEXEC, "-np", str(ranks), "bash", "-c",
                                 f"ulimit -v 3000000; exec {BIN / 'asparse_solve'} {good} --cols 4000"],
                                capture_output=True, text=True, timeout=120)
        check_failure(checks, f"no memory, p={ranks}", result, RUNTIME, ["allocate"], started)


def test():
    checks = Checks()
    with Folder() as folder:
        for part in (damaged, usage, operands, outputs, memory):
            inside = folder / part.__name__
            inside.mkdir()
            part(checks, inside)
    return checks.finish(least=250)


main(test)
