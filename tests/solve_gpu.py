"""asparse_solve --backend cuda: on a GPU against SciPy; on a machine without one, the error it gives."""
import json
import shutil
import subprocess

import numpy as np
import scipy.sparse as sp

from asparse_testing import Checks, Folder, OK, RUNTIME, USAGE, agrees, main, read_dense, run, said, write_csr

rng = np.random.default_rng()


def have_gpu():
    return shutil.which("nvidia-smi") is not None and subprocess.run(["nvidia-smi", "-L"], capture_output=True).stdout


def matrices():
    a = sp.random(400, 300, 0.05, format="csr", random_state=rng)
    yield "random", a
    yield "banded", sp.diags([1.5, -2, 1.5], [-1, 0, 1], shape=(1000, 1000), format="csr")
    yield "blocks", sp.kron(sp.random(6, 5, 0.4, random_state=rng), np.ones((64, 64)), format="csr")
    yield "no entries", sp.csr_matrix((50, 30))


def check_messages(checks, path):
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    for ranks in (None, 2):
        r = run("asparse_solve", "--backend", "cuda", path, ranks=ranks, environment=hidden)
        checks.that(r.returncode == RUNTIME, f"--backend cuda without a GPU: {said(r)}")
        checks.that("GPU" in r.stderr or "CUDA" in r.stderr or "driver" in r.stderr, f"says what is missing: {said(r)}")
        checks.that("--backend host" in r.stderr, f"says what to do: {said(r)}")
    r = run("asparse_solve", "--json", "-", path, environment=hidden)
    checks.that(r.returncode == OK and json.loads(r.stdout)["choices"]["backend"] == "host", f"auto: {said(r)}")
    r = run("asparse_solve", "--kernel", "csr", "--backend", "host", path)
    checks.that(r.returncode == USAGE, f"--kernel on the host: {said(r)}")
    r = run("asparse_solve", "--result", "bf16", "--precision", "bf16", "--backend", "host", path)
    checks.that(r.returncode == USAGE and "GPU" in r.stderr, f"--result bf16 on the host: {said(r)}")


def check_product(checks, folder, name, a, precision, options, ranks):
    path, out = folder / "a.h5", folder / "c.h5"
    b = rng.uniform(-1, 1, (a.shape[1], 40))
    write_csr(path, a, b)
    r = run("asparse_solve", "--backend", "cuda", "--precision", precision, *options, "-o", out, "--json", "-", path,
            ranks=ranks)
    what = f"{name}, {precision}, {options}, {ranks} ranks"
    if not checks.that(r.returncode == OK, f"{what}: {said(r)}"):
        return
    report = json.loads(r.stdout)
    checks.that(report["choices"]["backend"] == "cuda" and report["verification"]["passed"], what)
    checks.that(report["multiply"]["fraction_of_least"] > 0, f"{what}: fraction of least time")
    problem = agrees(read_dense(out), a, b, precision, 2.0**-23 if precision == "bf16" else None)  # they truncate
    checks.that(problem is None, f"{what}: {problem}")


def test():
    checks = Checks()
    with Folder() as folder:
        for name, a in matrices():
            write_csr(folder / "m.h5", a)
            check_messages(checks, folder / "m.h5")
            if not have_gpu():
                print("no GPU: the products are skipped")
                break
            for ranks in (1, 2, 3):
                for precision in ("fp64", "fp32", "bf16"):
                    check_product(checks, folder, name, a, precision, [], ranks)
                for options in (["--format", "wcsr", "--unit", "16"], ["--format", "bcsr"], ["--format", "csr"]):
                    check_product(checks, folder, name, a, "bf16", options, ranks)
    return checks.finish(least=9)


main(test)
