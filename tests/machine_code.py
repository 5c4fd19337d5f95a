"""What the device kernels were compiled to, checked without a GPU: the instructions each of them stands for, registers
and local memory. Needs cuobjdump and nvdisasm; skipped (77) where they are missing.

Environment: ASPARSE_DEVICE_LIBRARY (the library of device kernels), ASPARSE_CUOBJDUMP (its path, may be empty).
"""
import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple

from asparse_testing import Checks, main

SKIPPED = 77


def registers(threads, ctas=1):
    """Most registers a thread may have for that many CTAs on a multiprocessor; they are given out in eights."""
    return min(255, 65536 // (threads * ctas) // 8 * 8)


# kernel: regular expression of its whole name; needs: beginnings of instructions; registers: at most; stack: bytes of
# local memory, 0 unless a comment says why.
Kernel = namedtuple("Kernel", "kernel needs registers stack", defaults=(0,))

HGMMA = ["HGMMA.64x"]  # WGMMA
HMMA = ["HMMA.16816.F32.BF16"]  # mma.m16n8k16
BARRIERS = ["SYNCS.ARRIVE", "SYNCS.PHASECHK"]  # mbarrier
TMA_LOAD = ["UTMALDG.2D", *BARRIERS]
TMA_STORE = ["UTMASTG.2D"]
MOVES_REGISTERS = ["USETMAXREG.DEALLOC", "USETMAXREG.TRY_ALLOC"]  # setmaxnreg
WIDE_LOAD = ["LDG.E.128"]
WIDE_STORE = ["STG.E.128"]
OVERLAP = ["ACQBULK", "PREEXIT"]  # griddepcontrol
PIPELINE = [*HGMMA, *TMA_LOAD, *TMA_STORE, *OVERLAP]
GATHER = [*HMMA, *WIDE_LOAD, *OVERLAP]

# Stack of wcsr_gather: the task, handed by reference to the path for Inf and NaN.
KERNELS = [
    Kernel(r"wcsr_gather<64, true, \w+>", [*GATHER, "STG.E.EF.128"], registers(128, 2)),
    Kernel(r"wcsr_gather<64, false, \w+>", GATHER, registers(128, 2)),
    Kernel(r"wcsr_gather<32, true, \w+>", [*GATHER, "STG.E.EF.128"], registers(128, 3)),
    Kernel(r"wcsr_gather<32, false, \w+>", GATHER, registers(128, 3)),
    Kernel(r"wcsr_gather<16, true, \w+>", [*GATHER, "STG.E.EF.128"], registers(128, 5)),
    Kernel(r"wcsr_gather<16, false, \w+>", GATHER, registers(128, 4)),
    Kernel(r"wcsr_gather<8, true, \w+>", [*GATHER, "STG.E.EF.128"], registers(128, 6)),
    Kernel(r"wcsr_gather<8, false, \w+>", GATHER, registers(128, 4)),
    Kernel(r"wcsr_atomics<256>", [*HGMMA, *TMA_LOAD, "LDGSTS.E.BYPASS.128", "REDG.E.ADD.F32x2"], registers(128, 2)),
    Kernel(r"wcsr_atomics<(64|128)>", [*HGMMA, *TMA_LOAD, "LDGSTS.E.BYPASS.128", "REDG.E.ADD.F32x2"],
           registers(128, 3)),
    Kernel(r"zero_windows", [], registers(256, 8)),
    Kernel(r"csr_multiply<\w+, \w+, [248], \d+>", [*WIDE_LOAD, *OVERLAP], registers(256, 4)),
    Kernel(r"csr_multiply<\w+, \w+, 1, \d+>", OVERLAP, registers(256, 6)),
    Kernel(r"sell_resident<\w+, true>", ["LDS.128", *WIDE_LOAD, *OVERLAP], registers(512)),
    Kernel(r"sell_resident<\w+, false>", ["LDS.128", *OVERLAP], registers(512)),
    Kernel(r"pack_rows<uint4>", [*WIDE_LOAD, *WIDE_STORE], registers(256, 8)),
    Kernel(r"pack_rows<(uint2|unsigned (int|short))>", [], registers(256, 8)),
    Kernel(r"scalar_kernel", ["FFMA"], registers(256, 4), 16),  # around the path for Inf and NaN
    Kernel(r"wgmma_kernel", [*HGMMA, *WIDE_LOAD], registers(256, 2)),
    Kernel(r"tma_kernel", [*HGMMA, *TMA_LOAD], registers(256, 2)),
    # bcsr::Pipeline<Rows, Consumers, N, Stages, Boxes, Cluster, Shares>.
    Kernel(r"pipeline_kernel<.*<1, 1, 64, 4, 0, 1, 1>>", PIPELINE, registers(160, 3)),
    Kernel(r"pipeline_kernel<.*<1, 1, 64, 4, 0, 1, [248]>>", [*PIPELINE, "LD.E.128"], registers(160, 3)),
    Kernel(r"pipeline_kernel<.*<1, 2, 64, 4, 0, 1, 1>>", PIPELINE, registers(288, 2)),
    Kernel(r"pipeline_kernel<.*<1, 2, 64, 4, 0, 1, 2>>", [*PIPELINE, "LD.E.128"], registers(288, 2)),
    Kernel(r"pipeline_kernel<.*<1, 2, 128, (5, 0|4, 4), 1, 1>>", PIPELINE, registers(288)),
    Kernel(r"pipeline_kernel<.*<1, 2, 128, 5, 0, 2, 1>>", [*PIPELINE, "UTMALDG.2D.MULTICAST"], registers(288)),
    Kernel(r"pipeline_kernel<.*<1, 2, 256, 3, 0, 1, 1>>", [*PIPELINE, *MOVES_REGISTERS], registers(384)),
    Kernel(r"pipeline_kernel<.*<2, 2, (192, 4, 3|256, 4, 2), 1, 1>>", [*PIPELINE, *MOVES_REGISTERS], registers(384)),
]


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def tools():
    """Path of cuobjdump and an environment in which it finds nvdisasm."""
    path = os.environ.get("ASPARSE_CUOBJDUMP") or shutil.which("cuobjdump")
    if not path or not shutil.which(path):
        skip("no cuobjdump; pip install --target DIR nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm, then configure with "
             "-DASPARSE_CUOBJDUMP=DIR/nvidia/…/bin/cuobjdump")
    folders = os.pathsep.join([os.path.dirname(path), os.environ.get("NVDISASM_PATH", ""), os.environ["PATH"]])
    if not shutil.which("nvdisasm", path=folders):
        skip(f"no nvdisasm beside {path} or on the PATH")
    return path, dict(os.environ, PATH=folders)


def dump(what):
    path, environment = tools()
    done = subprocess.run([path, what, os.environ["ASPARSE_DEVICE_LIBRARY"]], env=environment, check=True,
                          capture_output=True, text=True)
    return done.stdout


def short_names(mangled):
    """{mangled: name with template arguments, without namespaces and parameters}"""
    done = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, capture_output=True, text=True)
    short = {}
    for name, full in zip(mangled, done.stdout.splitlines()):
        full = full.replace("(anonymous namespace)::", "").replace("> >", ">>").removeprefix("void ")
        short[name] = re.sub(r"^(\w+::)+", "", full.split("(")[0])
    return short


def instructions(sass):
    """{mangled name: set of instructions with their modifiers}"""
    found = {}
    for line in sass.splitlines():
        function = re.match(r"\s*Function : (\S+)", line)
        if function:
            current = found.setdefault(function[1], set())
            continue
        instruction = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", line)
        if instruction:
            current.add(instruction[1])
    return found


def resources(usage):
    """{mangled name: (registers, bytes of stack)}"""
    pattern = r"Function (\S+?):\s*\n\s*REG:(\d+) STACK:(\d+)"
    return {name: (int(regs), int(stack)) for name, regs, stack in re.findall(pattern, usage)}


def complaints(line, code, used):
    """What is wrong with a kernel of those instructions and (registers, stack), in words."""
    wrong = [f"has no {need}" for need in line.needs if not any(i.startswith(need) for i in code)]
    if used[0] > line.registers:
        wrong.append(f"uses {used[0]} registers, at most {line.registers} fit")
    if used[1] > line.stack:
        wrong.append(f"has {used[1]} bytes of stack, {line.stack} are accounted for")
    local = sorted(i for i in code if i.startswith(("LDL", "STL")))
    if local and line.stack == 0:
        wrong.append(f"uses local memory ({', '.join(local)})")
    return wrong


def test():
    checks = Checks()
    code = instructions(dump("--dump-sass"))
    used = resources(dump("--dump-resource-usage"))
    matched = set()  # of KERNELS, by its first column
    for mangled, name in short_names(sorted(code)).items():
        lines = [line for line in KERNELS if re.fullmatch(line.kernel, name)]
        if not checks.that(len(lines) == 1, f"{name}: {len(lines)} lines of KERNELS are about it, 1 is needed"):
            continue
        matched.add(lines[0].kernel)
        wrong = complaints(lines[0], code[mangled], used[mangled])
        checks.that(not wrong, f"{name}: {'; '.join(wrong)}")
        impossible = Kernel(name, ["NO.SUCH.INSTRUCTION"], used[mangled][0] - 1, -1)
        checks.that(len(complaints(impossible, code[mangled], used[mangled])) == 3, f"{name}: faults would be seen")
    for line in KERNELS:
        checks.that(line.kernel in matched, f"no kernel is called {line.kernel}")
    return checks.finish(least=3 * len(KERNELS))


main(test)
