"""A ReFrame regression test of asparse_solve: generated matrices on several ranks, verified, their times recorded.

  reframe -C site.py -c jobs/reframe_asparse.py -S build=/path/to/build/release -r
"""
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class AsparseSolve(rfm.RunOnlyRegressionTest):
    """C = A·B with a matrix that each rank makes its rows of; passes when C is within its error bound."""

    descr = "sparse times dense, verified in fp64"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    build = variable(str, value="")  # folder of asparse_solve; empty: it is in PATH
    matrix = parameter(["grid3d:nx=60", "rmat:scale=16,edges=16", "fem3d:24"])
    ranks = parameter([1, 2, 4])
    columns = variable(int, value=128)
    repeat = variable(int, value=11)

    @run_before("run")
    def choose_command(self):
        self.executable = f"{self.build}/asparse_solve" if self.build else "asparse_solve"
        self.executable_opts = ["--generate", self.matrix, "--cols", str(self.columns), "--threads", "1", "--repeat",
                                str(self.repeat), "--json", "-"]
        self.num_tasks = self.ranks
        self.num_cpus_per_task = 1

    @sanity_function
    def is_verified(self):
        return sn.assert_found(r'"passed": true', self.stdout)

    def value(self, key):
        return sn.extractsingle(rf'"{key}": ([-+.\deE]+)', self.stdout, 1, float)

    @performance_function("s")
    def median_time(self):
        return self.value("median_seconds")

    @performance_function("s")
    def fastest_time(self):
        return self.value("min_seconds")

    @performance_function("GFLOP/s")
    def rate(self):
        return self.value("gflops")
