"""asparse_convert and asparse_solve on real matrices at several rank counts, against SciPy in fp64."""
import json

import numpy as np

from asparse_testing import Checks, BRIEF, Folder, OK, ROOT, agrees, have_data, main, read_dense, read_mtx
from asparse_testing import real_matrices, run, said

MATRICES = (
    "suitesparse/bcsstk27", "suitesparse/orani678", "suitesparse/orsirr_1", "suitesparse/pores_2",
    "suitesparse/sherman5", "suitesparse/west2021", "suitesparse/well1850", "suitesparse/Trefethen_2000",
    "suitesparse/netscience", "suitesparse/Si2", "suitesparse/tols4000", "suitesparse/zenios",
    "suitesparse/wing_nodal", "suitesparse/rajat01", "suitesparse/ex11", "graphs/wiki-vote", "graphs/ca-GrQc",
    "gnn/citeseer", "gnn/USAir", "dlmc/rn50_mag_0.95_final_dense", "dlmc/rn50_vd_0.98_b3_group4_1_1",
    "optimisation/lp_fit2d", "optimisation/lp_woodw", "optimisation/mip_air03", "powergrid/pglib_case2869_pegase",
    "fem/pyamg_bar", "fem/trilinos_ml_elasticity1", "chemistry/ntpoly_input512", "circuit/trilinos_basker_matrix1",
    "singlecell/pbmc_10k_protein_v3_200cells", "suitesparse/tsyl201", "reconstructed/mycielskian13",
)
OWN = ("tests/data/laplace_2d.mtx", "tests/data/skew.mtx", "tests/data/rectangular.mtx")


def columns_for(index):
    return (1, 7, 33, 64, 100, 128)[index % 6]


def check_matrix(checks, folder, index, name, mtx):
    h5, out = folder / (name + ".h5"), folder / "c.h5"
    result = run("asparse_convert", mtx, h5)
    if not checks.that(result.returncode == OK, f"{name}: {said(result)}"):
        return
    matrix, n = read_mtx(mtx).astype(np.float64), columns_for(index)
    b = np.random.default_rng(index).uniform(-1, 1, (matrix.shape[1], n))
    b_path = folder / "b.h5"
    import h5py
    with h5py.File(b_path, "w") as file:
        file["dense/b"] = b
    for step, ranks in enumerate((1, 2, 3, 4, 8)):
        precision = ("fp64", "fp32", "bf16")[(index + step) % 3]
        wanted = ("auto", "csr", "wcsr", "bcsr")[(index + step) % 4]
        result = run("asparse_solve", h5, "--b", f"{b_path}::/dense/b", "-o", out, "--format", wanted, "--precision",
                     precision, "--repeat", 1, "--json", "-", ranks=ranks)
        label = f"{name}, p={ranks}, {precision}, {wanted}, N={n}"
        if not checks.that(result.returncode == OK, f"{label}: {said(result)}"):
            continue
        record = json.loads(result.stdout)
        checks.that(record["matrix"]["nnz"] == matrix.nnz, f"{label}: nnz {record['matrix']['nnz']} != {matrix.nnz}")
        problem = agrees(read_dense(out), matrix, b, precision)
        checks.that(problem is None, f"{label}: {problem}")


def test():
    checks = Checks()
    names = MATRICES[::4] if BRIEF else MATRICES
    with Folder() as folder:
        for index, path in enumerate(OWN):
            check_matrix(checks, folder, index, "own" + str(index), ROOT / path)
        expected = 30
        if have_data():
            for index, (name, mtx) in enumerate(real_matrices(names, folder)):
                check_matrix(checks, folder, index, name, mtx)
                (folder / (name + ".h5")).unlink(missing_ok=True)
            expected += 10 * len(names)
    return checks.finish(least=expected)


main(test)
