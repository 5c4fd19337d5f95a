"""Folders depend one way only: base <- {io, partition, kernels} <- plan <- programs, base <- generate <- programs;
hdf5.h only in io, no MPI in kernels, no CUDA in io and partition, NCCL only where ranks talk."""
import re

from asparse_testing import ROOT, Checks, main

FOLDERS = {
    "src/base": {"src/base"},
    "io": {"src/base", "io"},
    "partition": {"src/base", "partition"},
    "kernels": {"src/base", "kernels"},
    "src/plan": {"src/base", "io", "partition", "kernels", "src/plan"},
    "src/generate": {"src/base", "src/generate"},
    "src/programs": {"src/base", "io", "partition", "kernels", "src/plan", "src/generate", "src/programs"},
}
SYSTEM = {  # header pattern: folders that may include it
    r"hdf5\.h|H5.*\.h": {"io"},
    r"mpi\.h": {"src/base", "io", "partition", "src/plan", "src/programs", "src"},
    r"nccl\.h": {"src/base", "src/plan"},
    r"cuda.*\.h|cublas.*|cusparse.*": {"kernels", "src/base", "src/plan", "src/programs"},
    r"jansson\.h": {"io", "src/programs"},
    r"metis\.h": {"partition"},
    r"png\.h": {"src/programs"},
}
PUBLIC = {"asparse_types.h", "asparse_config.h"}
# The public API stands above the folders it is implemented in.
API_USERS = {"src/plan", "src/programs"}


def folder_of(path):
    relative = path.relative_to(ROOT).as_posix()
    return next((f for f in sorted(FOLDERS, key=len, reverse=True) if relative.startswith(f + "/")), None)


def target_of(include):
    for prefix in (ROOT / "src", ROOT):
        if (prefix / include).exists():
            return folder_of(prefix / include)
    return None


def check_file(checks, path):
    folder = folder_of(path)
    text = path.read_text()
    for include in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.M):
        if include in PUBLIC:
            continue
        if include == "asparse.h":
            checks.that(folder in API_USERS, f"{path.relative_to(ROOT)} includes the public API {include}")
            continue
        target = target_of(include)
        checks.that(target in FOLDERS[folder], f"{path.relative_to(ROOT)} includes {include} of {target}")
    for include in re.findall(r"^\s*#\s*include\s*<([^>]+)>", text, re.M):
        for pattern, allowed in SYSTEM.items():
            if re.fullmatch(pattern, include):
                checks.that(folder in allowed, f"{path.relative_to(ROOT)} includes <{include}>")
    if folder == "kernels":
        checks.that('"base/comm.h"' not in text, f"{path.relative_to(ROOT)} knows ranks")


def check_length(checks, path):
    lines = path.read_text().count("\n")
    checks.that(lines <= 500, f"{path.relative_to(ROOT)} has {lines} lines; at most 500")


def test():
    checks = Checks()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*")):
            if path.suffix in (".c", ".h", ".cu", ".cuh"):
                check_file(checks, path)
                check_length(checks, path)
    return checks.finish(least=100)


main(test)
