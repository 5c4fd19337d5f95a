"""cmake --install gives programs, library, headers, CMake package and pkg-config file, and the example of
the README compiles and runs against them."""
import os
import re
import subprocess
import sys

from asparse_testing import MPIEXEC, OK, ROOT, Checks, Folder, main, run, said

BUILD = os.environ["ASPARSE_BUILD"]
PROGRAMS = ("asparse_convert", "asparse_generate", "asparse_info", "asparse_partition", "asparse_solve")


def example():
    """The C block of the README."""
    blocks = re.findall(r"```c\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(blocks) == 1, "the README has one C example"
    return blocks[0]


def python_block():
    """The Python lines of the README that read C."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(blocks) == 1, "the README has one Python example"
    return blocks[0]


def shell(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, **options)


def build_with_pkg_config(checks, folder, prefix):
    library = next(prefix.glob("**/pkgconfig/asparse.pc")).parent
    env = dict(os.environ, PKG_CONFIG_PATH=str(library))
    flags = shell("pkg-config", "--cflags", "--libs", "asparse", env=env)
    checks.that(flags.returncode == 0, f"pkg-config: {flags.stderr}")
    target = folder / "example_pc"
    result = shell("gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", folder / "example.c", "-o", target,
                   *flags.stdout.split(), f"-Wl,-rpath,{library.parent}")
    checks.that(result.returncode == 0, f"example with pkg-config: {result.stderr}")
    return target


def build_with_cmake(checks, folder, prefix):
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(example C)\nfind_package(asparse REQUIRED)\n"
        "add_executable(example example.c)\ntarget_link_libraries(example PRIVATE asparse::asparse)\n")
    result = shell("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    checks.that(result.returncode == 0, f"find_package(asparse): {result.stdout}{result.stderr}")
    result = shell("cmake", "--build", folder / "build")
    checks.that(result.returncode == 0, f"example with CMake: {result.stdout}{result.stderr}")
    return folder / "build/example"


def test():
    checks = Checks()
    with Folder() as folder:
        prefix = folder / "prefix"
        result = shell("cmake", "--install", BUILD, "--prefix", prefix)
        checks.that(result.returncode == 0, f"install: {result.stderr}")
        for program in PROGRAMS:
            result = shell(prefix / "bin" / program, "--version")
            checks.that(result.returncode == 0 and program in result.stdout, f"installed {program}: {result}")
        for header in ("asparse.h", "asparse_types.h"):
            checks.that((prefix / "include" / header).exists(), f"{header} is not installed")

        matrix = folder / "matrix.h5"
        result = run("asparse_convert", ROOT / "tests/data/laplace_2d.mtx", matrix)
        checks.that(result.returncode == OK, said(result))
        result = run("asparse_solve", matrix, "-o", folder / "C.h5", "--cols", 5)
        checks.that(result.returncode == OK, said(result))
        result = shell(sys.executable, "-c", python_block() + "\nprint(C.shape)", cwd=folder)
        checks.that("(144, 5)" in result.stdout, f"the README's Python lines: {result}")
        (folder / "example.c").write_text(example())
        for build in (build_with_pkg_config, build_with_cmake):
            target = build(checks, folder, prefix)
            for ranks in (1, 3):
                result = shell(*MPIEXEC, "-np", ranks, target, matrix)
                checks.that(result.returncode == 0, f"{target.name}, p={ranks}: {result.stdout}{result.stderr}")
            result = shell(*MPIEXEC, "-np", 2, target, folder / "missing.h5")
            checks.that(result.returncode != 0 and "missing.h5" in result.stderr, f"{target.name}: {result}")
    return checks.finish(least=20)


main(test)
