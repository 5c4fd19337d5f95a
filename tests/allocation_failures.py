"""The n-th allocation of a whole run fails, on all ranks or one: exit 1, one message, no leak, no output."""
import scipy.sparse as sp

from asparse_testing import BRIEF, OK, RUNTIME, Checks, Folder, main, run, said, write_csr


def sweep(checks, folder, program, arguments, out, ranks, failing_rank):
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
        checks.that(out is None or not out.exists(), f"{label}: left an output")
        n += max(1, n // (4 if BRIEF else 9))
    checks.that(failures > 6, f"{program}: only {failures} allocations failed")


def test():
    checks = Checks()
    with Folder() as folder:
        path, saved = folder / "a.h5", folder / "a.p2.h5"
        write_csr(path, sp.random(90, 90, 0.05, format="csr", random_state=1))
        out = folder / "c.h5"
        solve = [path, "-o", out, "--repeat", 1, "--warmup", 0, "-q"]
        sweep(checks, folder, "asparse_solve", [*solve, "--format", "wcsr"], None, None, None)
        out.unlink()
        sweep(checks, folder, "asparse_solve", solve, None, 3, 1)
        out.unlink()
        sweep(checks, folder, "asparse_solve", [*solve, "--partition", "contiguous", "--format", "bcsr"], None, 2, 0)
        sweep(checks, folder, "asparse_partition", [path, "--parts", 2, "-o", saved, "-q"], None, 2, 1)
        sweep(checks, folder, "asparse_info", [path], None, 2, 1)
        bench = ["--backend", "host", "--cols", 3, "--repeat", 1, "--seconds", 1e-4]
        sweep(checks, folder, "asparse_bench", [*bench, path], None, None, None)
        sweep(checks, folder, "asparse_generate", ["rmat:6", "-o", folder / "g.h5", "-q"], None, 2, 1)
    return checks.finish(least=100)


main(test)
