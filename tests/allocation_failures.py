"""Allocations that fail. In one process (fail_allocations.c) each allocation of every importer, writer and plan, one
after the other, alone and on two ranks; then of whole programs, in growing steps: exit 1, one message, no leak, no
output."""
import gzip

import scipy.io
import scipy.sparse as sp

from asparse_testing import BIN, BRIEF, OK, RUNTIME, Checks, Folder, main, run, said, write_csr
from import_files import boeing, matlab, petsc_bytes, saved


def inputs(folder):
    """A small file of each importer and of each arrangement in HDF5."""
    a = sp.random(90, 90, 0.05, format="csr", random_state=1)
    cycle = "".join(f"{(i - 1) % 30 + 1} {(i + 1) % 30 + 1}\n" for i in range(30))
    graph = "".join(f"{i} {(7 * i) % 40}\n" for i in range(40))
    contents = {
        "a.mtx.gz": gzip.compress(saved(scipy.io.mmwrite, a)),
        "a.graph": f"30 30\n{cycle}".encode(), "a.el": b"# edges\n" + graph.encode(), "a.rua": boeing(a).encode(),
        "a.petsc": petsc_bytes(a), "a.mat": matlab({"s": {"A": a}}),
        "csr.npz": saved(sp.save_npz, a), "coo.npz": saved(sp.save_npz, a.tocoo()),
        "bsr.npz": saved(sp.save_npz, sp.bsr_matrix(a, blocksize=(3, 3)))}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        yield folder / name
    write_csr(folder / "a.h5", a)
    yield folder / "a.h5"


def every_allocation(checks, folder):
    files = list(inputs(folder))
    for ranks in (None,) if BRIEF else (None, 2):
        result = run(BIN / "tests/fail_allocations", folder, *files, ranks=ranks, timeout=600,
                     environment={"OMP_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"})
        label = f"fail_allocations on {ranks or 1}"
        checks.that(result.returncode == OK and "FAILED" not in result.stderr, f"{label}: {said(result)}")
        failed = int(result.stdout.split()[0]) if result.stdout else 0
        checks.that(failed > 300, f"{label}: only {failed} allocations failed")
        print(f"{label}: {failed} allocations failed")
    checks.that(not list(folder.glob(".*asparse*")), f"left behind: {list(folder.glob('.*'))}")


def sweep(checks, program, arguments, out, ranks, failing_rank):
    """Fails allocation 1, 2, … with growing steps until a run gets through."""
    n, failures = 1, 0
    while n < 20000:
        environment = {"ASPARSE_FAIL_ALLOC": str(n), "ASPARSE_CHECK_LEAKS": "1"}
        if failing_rank is not None:
            environment["ASPARSE_FAIL_ALLOC_RANK"] = str(failing_rank)
        result = run(program, *arguments, ranks=ranks, environment=environment)
        label = f"{program}, p={ranks}, allocation {n} on {'all' if failing_rank is None else failing_rank}"
        checks.that("leaks" not in result.stderr, f"{label}: {said(result)}")
        if result.returncode == OK:
            break
        failures += 1
        checks.that(result.returncode == RUNTIME, f"{label}: {said(result)}")
        checks.that(result.stderr.count("error:") == 1 and "allocate" in result.stderr, f"{label}: {said(result)}")
        checks.that(not out or not out.exists(), f"{label}: left an output")
        n += max(1, n if BRIEF else n // (9 if ranks is None else 2))
    checks.that(failures > 3, f"{program}: only {failures} allocations failed")
    if out:
        out.unlink(missing_ok=True)


def programs(checks, folder):
    path, saved_parts, out = folder / "a.h5", folder / "a.p2.h5", folder / "c.h5"
    solve = [path, "-o", out, "--repeat", 1, "--warmup", 0, "-q"]
    sweep(checks, "asparse_solve", [*solve, "--format", "wcsr"], out, None, None)
    sweep(checks, "asparse_solve", solve, out, 3, 1)
    sweep(checks, "asparse_solve", [*solve, "--partition", "contiguous", "--format", "bcsr"], out, 2, 0)
    # Its file is there, and whole, when only the evaluation for the report fails.
    sweep(checks, "asparse_partition", [path, "--parts", 2, "-o", saved_parts, "-q"], None, 2, 1)
    sweep(checks, "asparse_convert", [path, folder / "out.h5ad", "-q"], folder / "out.h5ad", None, None)
    sweep(checks, "asparse_convert", [folder / "csr.npz", folder / "out.mtx", "-q"], folder / "out.mtx", 2, 1)
    sweep(checks, "asparse_info", [path], None, 2, 1)
    bench = ["--backend", "host", "--cols", 3, "--repeat", 1, "--seconds", 1e-4]
    sweep(checks, "asparse_bench", [*bench, path], None, None, None)
    sweep(checks, "asparse_generate", ["rmat:6", "-o", folder / "g.h5", "-q"], folder / "g.h5", 2, 1)


def test():
    checks = Checks()
    with Folder() as folder:
        every_allocation(checks, folder)
        programs(checks, folder)
    return checks.finish(least=150 if BRIEF else 500)


main(test)
