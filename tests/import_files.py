"""asparse_convert on the formats beside Matrix Market: small files that are made here, fine and damaged.

Values are compared with SciPy's where it reads the format, else with what the file's own text says. The files of other
programs are io_files.py's. An argument (npz) chooses a format.
"""
import gzip
import io
import lzma
import re
import shutil
import subprocess
import sys

import numpy as np
import scipy.io
import scipy.sparse as sp

from asparse_testing import BIN, DATA_ERROR, OK, RUNTIME, USAGE, Checks, Folder, main, run, said
from mtx_against_scipy import difference, read_hdf5
from reference_readers import edge_list, metis_graph, parts_of


class Converter:
    """Converts into one folder and checks what came out."""

    def __init__(self, checks, folder):
        self.checks, self.folder, self.output = checks, folder, folder / "out.h5"

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def gives(self, path, expected, *options, words="", ranks=None):
        """Exit code 0 and the matrix `expected` (None: any)."""
        self.output.unlink(missing_ok=True)
        result = run("asparse_convert", *options, path, self.output, ranks=ranks)
        name = f"{getattr(path, 'name', path)} {' '.join(options)} on {ranks or 1}"
        if not self.checks.that(result.returncode == OK and words in result.stderr, f"{name}: {said(result)}"):
            return None
        ours = read_hdf5(self.output)
        if expected is not None:
            theirs = sp.csr_matrix(expected, dtype=np.float64)
            theirs.sum_duplicates()
            reason = difference(ours, theirs)
            self.checks.that(not reason, f"{name}: {reason}")
        return ours

    def refuses(self, path, words, *options, code=DATA_ERROR, ranks=None):
        self.output.unlink(missing_ok=True)
        result = run("asparse_convert", *options, path, self.output, ranks=ranks)
        self.checks.that(result.returncode == code and words in result.stderr,
                         f"{getattr(path, 'name', path)}: expected exit {code} and '{words}': {said(result)}")
        self.checks.that(not self.output.exists(), f"{path}: an output file was left behind")


# ---- edge lists --------------------------------------------------------------------------------


def test_edges(c):
    plain = c.file("a.txt", "# Directed graph\n# Nodes: 3 Edges: 4\n0\t1\n2\t0\r\n5 5\n\n 0 1")
    c.gives(plain, edge_list(plain), words="1 duplicate entries were summed")
    occurring = sp.coo_matrix((np.ones(4), ([0, 2, 3, 0], [1, 0, 3, 1])), (4, 4))  # vertices 0, 1, 2, 5
    c.gives(plain, occurring, "--ids", "compact")
    weighted = c.file("w.el", "% bip weighted\n7 9 1.5\n9 7 -2e-3\n")
    c.gives(weighted, edge_list(weighted), ranks=3)
    far = c.file("far.el", "1 9000000000000000000\n9000000000000000000 1\n")
    c.refuses(far, "--ids compact", code=RUNTIME)
    c.gives(far, [[0, 1], [1, 0]], "--ids", "compact")
    random = np.random.default_rng(5)
    many = random.integers(0, 5000, (60000, 2))
    large = c.file("large.el", "".join(f"{i} {j} {i - j}\n" for i, j in many))
    c.gives(large, edge_list(large))
    c.gives(c.file("large.el.gz", gzip.compress(large.read_bytes())), edge_list(large))
    for text, words in (("0 1\n0 x\n", 'line 2: found "x"; expected a vertex'), ("0 1\n2\n", "line 2: the line ends"),
                        ("0 1\n-1 2\n", 'line 2: found "-1"'), ("0 1 2\n3 4\n", "line 2: the line ends; expected a we"),
                        ("0 1\n1 2 3\n", 'line 2: found "3"; expected the end'), ("# nothing\n", "no edge"),
                        ("0 1 2 3\n", 'found "3"; expected the end'), ("0 1\n1 1e5\n", 'found "1e5"'),
                        ("0 99999999999999999999\n", "expected a vertex: a whole number from 0 to 92233720368547758")):
        c.refuses(c.file("bad.el", text), words, "--from", "edges")
    c.refuses(c.file("bad.txt", "hello\nworld\n"), "of no known format")
    c.refuses(plain, "edges (edge list)", "--from", "snap", code=USAGE)


# ---- METIS graphs ------------------------------------------------------------------------------


def test_metis(c):
    cycle = "4 4\n2 4\n1 3\n2 4\n1 3\n"
    c.gives(c.file("cycle.graph", cycle), metis_graph(c.file("cycle.graph", cycle)))
    c.refuses(c.file("cycle.txt", cycle), "could be of format METIS graph or edge list", code=USAGE)
    c.gives(c.file("cycle.txt", cycle), metis_graph(c.folder / "cycle.txt"), "--from", "metis")
    star = c.file("star", "%comment\n 4 3 011 2\n1 1 2 5 3 6 4 7\n% another\n2 2 1 5\n0 0 1 6\n1 1 1 7\n\n\n")
    c.gives(star, metis_graph(star), words="weights of vertices were left out", ranks=3)
    sizes = c.file("sizes", "4 2 110\r\n9 1 2\r\n9 1 1 3\r\n9 1 2\r\n9 1\r\n")
    c.gives(sizes, metis_graph(sizes), words="sizes and weights of vertices")
    isolated = c.file("isolated", "5 1\n\n3\n2\n\n\n")
    c.gives(isolated, metis_graph(isolated))
    random = sp.random(9000, 9000, 0.001, random_state=7, format="csr")
    strict = sp.tril(random, -1)
    random = sp.csr_matrix(strict + strict.T)
    random.data = np.ceil(random.data * 100)
    lines = [" ".join(f"{j + 1} {int(w)}" for j, w in zip(random[i].indices, random[i].data)) for i in range(9000)]
    c.gives(c.file("large.graph", f"9000 {random.nnz // 2} 1\n" + "\n".join(lines)), random)
    for text, words in (("3 1\n2\n1\n", "ends after 2 of 3 vertices"), ("2 1\n2\n1\n2\n", "found 3 entries"),
                        ("2 1\n3\n1\n", 'line 2: found "3" as a neighbour'), ("3 1\n2\n1\n\n\n 7\n", "found 3 en"),
                        ("2 1\n1 2\n\n", "vertex 1 lists itself"), ("2 0\n\n\n", None), ("2 1 1\n2 1.5\n1 1.5\n", 'found "1.5" as the weight'),
                        ("2 1 2\n2\n1\n", "fmt is 2"), ("2 1 1\n2 3\n1 4\n", "lists 2 with weight 3, but"),
                        ("2\n", "header ends"), ("1 0 1 1 1\n", "header goes on"), ("99999999999 0\n", "ends after 0"),
                        ("2 1 0 3\n2\n1\n", "ncon is 3"), ("1 0 10\n\n", "the line ends before a weight")):
        if words:
            c.refuses(c.file("bad.graph", text), words)
        else:
            c.gives(c.file("bad.graph", text), sp.csr_matrix((2, 2)))


# ---- SciPy npz ---------------------------------------------------------------------------------


def saved(save, *arguments, **named):
    """What save(file, ...) writes, as bytes."""
    file = io.BytesIO()
    save(file, *arguments, **named)
    return file.getvalue()


def test_npz(c):
    a = sp.random(60, 40, 0.2, random_state=11, format="csr")
    for form in ("csr", "csc", "coo", "bsr"):
        for compressed in (False, True):
            content = saved(sp.save_npz, a.asformat(form), compressed=compressed)
            ours = c.gives(c.file(f"{form}.npz", content), a, ranks=3 if compressed else None)
            c.checks.that(ours is not None and ours.dtype == np.float64, f"{form}: type")
    blocks = sp.bsr_matrix(sp.kron(sp.random(7, 5, 0.4, random_state=3), np.arange(6.0).reshape(2, 3)), blocksize=(2, 3))
    without_zeros = sp.csr_matrix(blocks)
    without_zeros.eliminate_zeros()
    path = c.file("blocks.npz", saved(sp.save_npz, blocks))
    c.gives(path, without_zeros)
    c.gives(path, without_zeros, ranks=4)
    c.gives(c.file("dup.npz", saved(sp.save_npz, sp.coo_matrix(([1, 2, 4], ([0, 0, 1], [1, 1, 0])), (2, 2)))),
            [[0, 3], [4, 0]], words="1 duplicate")
    for kind in ("?", "i1", "u2", ">i4", "u8", "f2", ">f4", ">f8", "f4"):
        values = (a * 8).astype(np.float64)
        values.data = np.ceil(values.data)
        arrays = dict(format=np.array("csr"), shape=np.array(a.shape), data=values.data.astype(kind),
                      indices=a.indices.astype(">i8"), indptr=a.indptr.astype(np.uint16))
        values.data = arrays["data"].astype(np.float64)
        c.gives(c.file("kind.npz", saved(np.savez, **arrays)), values)
    two = {f"{name}_{key}": value for name, scale in (("x", 1), ("y", 2))
           for key, value in parts_of(c.file("a.npz", saved(sp.save_npz, a * scale))).items() if key != "format"}
    two = c.file("two.npz", saved(np.savez, **two))
    c.refuses(two, "holds 2 matrices: x, y", code=USAGE)
    c.refuses(f"{two}::z", "no matrix \"z\"", code=USAGE)
    c.gives(f"{two}::y", a * 2)
    refused_npz(c, a)


def refused_npz(c, a):
    good = parts_of(c.file("good.npz", saved(sp.save_npz, a)))
    changed = [("indices", np.full(a.nnz, 40), "element 0 is 40; expected 0 to 39"),
               ("indices", -np.ones(a.nnz, int), "element 0 is -1"), ("indices", a.indices[:-1], "expected at least"),
               ("indptr", a.indptr[:-1], "60 elements; expected 61"), ("indptr", a.indptr[::-1], "element 0 is 480"),
               ("indptr", a.indptr * 2, "expected 0 first"), ("shape", np.array([60]), "expected rows and columns"),
               ("shape", np.array([-1, 4]), "expected sizes"), ("shape", np.array([2**58, 40]), "expected 2882303761517117"),
               ("data", a.data + 1j, "complex"), ("data", np.array([None]), "pickled Python objects"),
               ("data", a.data[None], "2 dimensions"), ("format", np.array("dia"), 'format is "dia"'),
               ("indices", a.indices * 0.5, "expected integers"), ("data", np.array(["x"]), "expected numbers")]
    for key, value, words in changed:
        c.refuses(c.file("bad.npz", saved(np.savez, **dict(good, **{key: value}))), words, ranks=2)
    for compressed in (False, True):
        content = saved(sp.save_npz, a, compressed=compressed)
        c.refuses(c.file("cut.npz", content[:len(content) // 2]), "no central directory")
        middle = content.index(b"data.npy") + 400
        broken = content[:middle] + bytes([content[middle] ^ 0x55]) + content[middle + 1:]
        c.refuses(c.file("broken.npz", broken), "data.npy is damaged")
    c.refuses(c.file("none.npz", saved(np.savez, x=np.ones(3))), 'no arrays "data"')


# ---- PETSc binary ------------------------------------------------------------------------------


def petsc_bytes(a, index=">i4", scalar=">f8"):
    header = np.array([1211216, *a.shape, a.nnz], index)
    return b"".join(x.tobytes() for x in (header, np.diff(a.indptr).astype(index), a.indices.astype(index),
                                          a.data.astype(scalar)))


def test_petsc(c):
    a = sp.random(70, 50, 0.1, random_state=12, format="csr")
    for index in (">i4", ">i8"):
        for scalar in (">f4", ">f8"):
            rounded = a.astype(scalar).astype(np.float64)
            c.gives(c.file("a.petsc", petsc_bytes(a, index, scalar)), rounded, ranks=3 if index == ">i8" else None)
    vector = np.array([1211214, 3], ">i4").tobytes() + np.ones(3, ">f8").tobytes()
    c.gives(c.file("a.petsc", petsc_bytes(a) + vector), a, words="more objects follow")
    unsorted = sp.csr_matrix((np.array([1.0, 2, 3]), np.array([2, 0, 1]), np.array([0, 2, 2, 3])), (3, 3))
    c.gives(c.file("a.petsc.gz", gzip.compress(petsc_bytes(unsorted))), unsorted, ranks=2)
    c.gives(c.file("none.petsc", petsc_bytes(sp.csr_matrix((3, 0)))), sp.csr_matrix((3, 0)), ranks=4)
    good = petsc_bytes(a)

    def changed(at, value):
        return good[:4 * at] + np.array([value], ">i4").tobytes() + good[4 * at + 4:]
    for content, words in ((changed(4, -1), "byte 16: row 0 has -1 entries"), (changed(4, 10**6), "row 0 has 1000000"),
                           (changed(74, 50), "column index 50 of entry 0; expected 0 to 49"), (vector, "1211214 is a ve"),
                           (changed(3, -1), "dense"), (changed(1, -5), "-5 × 50"), (changed(3, 2**31 - 1), "cut off"),
                           (good[:-1], "cut off"), (good[:100], "cut off"), (good[:8], "cut off"),
                           (good + b"rest of it", "cut off"), (changed(73, 0), "together; expected"),
                           (np.array([1211216, 2**63 - 2, 1, 1], ">i8").tobytes(), "cut off"),
                           (petsc_bytes(a * (1 + 2j), scalar=">c16"), "complex"),
                           (petsc_bytes(a * (1 + 2j), scalar=">c8"), "complex")):
        c.refuses(c.file("bad.petsc", content), words, ranks=2 if "complex" in words else None)


# ---- Harwell-Boeing and Rutherford-Boeing ------------------------------------------------------


def fields(numbers, per_line, form):
    """Lines of numbers in fields of fixed width."""
    texts = [form(number) if callable(form) else form % number for number in numbers]
    return "".join("".join(texts[i:i + per_line]) + "\n" for i in range(0, len(texts), per_line))


def boeing(a, kind="rua", pointers=(13, 6), values="(3E26.18)", form="%26.18E", per_line=3, fifth=""):
    a = sp.csc_matrix(a)
    a.sort_indices()
    numbers = [] if kind[0] == "p" else a.data
    return ("title\n" + "             1             1             1             1\n"
            + f"{kind}           {a.shape[0]:14d}{a.shape[1]:14d}{a.nnz:14d}             0\n"
            + "(%dI%d)          (20I4)          %s\n" % (*pointers, values if kind[0] != "p" else "") + fifth
            + fields(a.indptr + 1, pointers[0], "%%%dd" % pointers[1]) + fields(a.indices + 1, 20, "%4d")
            + fields(numbers, per_line, form))


def test_hb(c):
    a = sp.random(30, 20, 0.2, random_state=13, format="csc")
    a.data = (a.data - 0.5) * 10.0 ** np.arange(-150, 150)[:a.nnz]
    symmetric = sp.csc_matrix(sp.tril(sp.random(25, 25, 0.2, random_state=14)))
    strict = sp.csc_matrix(sp.tril(symmetric, -1))
    c.gives(c.file("a.rua", boeing(a)), a, ranks=2)
    c.gives(c.file("d.rua", boeing(a, values="(1P,3D26.18)").replace("E+", "D+").replace("E-", "D-")), a)
    letterless = boeing(a, values="(1P3D26.18)", form=lambda x: re.sub(r"E([+-]\d\d\d)", r"\1", "%.18E" % x).rjust(26))
    c.gives(c.file("letterless.rua", letterless), a)
    c.gives(c.file("cr.rb", boeing(a).replace("\n", "\r\n")), a)
    c.gives(c.file("s.rsa", boeing(symmetric, "RSA")), symmetric + strict.T)
    c.gives(c.file("z.rza", boeing(strict, "rza")), strict - strict.T)
    ones = sp.csc_matrix((np.ones(a.nnz), a.indices, a.indptr), a.shape)
    c.gives(c.file("p.pra", boeing(a, "pra")), ones)
    c.gives(c.file("rhs.pra", boeing(a, "pra", fifth="F             1             0\n")), ones,
            words="right-hand sides were left out")
    whole = sp.csc_matrix((np.arange(a.nnz) % 1000 - 99.0, a.indices, a.indptr), a.shape)
    abutting = boeing(whole, "ira", values="(20I3)", form="%3d", per_line=20, pointers=(26, 3))
    c.gives(c.file("i.rb", abutting), whole)
    scaled = boeing(whole, values="(2P10F8.2)", form="%8.2f", per_line=10)
    whole.data = whole.data / 100
    c.gives(c.file("scale.rua", scaled), whole)
    c.gives(c.file("empty.rua", boeing(sp.csc_matrix((3, 4)))), sp.csc_matrix((3, 4)))
    good = boeing(a)
    for old, new, words in (("(13I6)", "(13X6)", "as the format of the pointers"), ("(20I4)", "(20F4)", "expected integers, like"),
                            ("(3E26", "(3E260", "as the format of the values"), ("rua", "cua", "complex"),
                            ("rua", "rue", "unassembled"), ("rua", "rsa", "must be square"), ("rua", "xua", '"xua"'),
                            ("rua", "qua", "another file"), ("\n     1", "\n     2", "first pointer is 2"),
                            ("E-", "x-", "values: found"), ("(13I6)", "(13I5)", "pointers"), ("(13I6)", "(14I6)", "point")):
        c.refuses(c.file("bad.rua", good.replace(old, new, 1)), words)
    lines = good.split("\n")
    for cut, words in ((2, "of no known format"), (5, "within its pointers"), (7, "cut off"),
                       (20, "within its values")):
        c.refuses(c.file("cut.rua", "\n".join(lines[:cut]) + "\n"), words)
    c.refuses(c.file("cut.rua", "\n".join(lines[:2]) + "\n"), "within its header", "--from", "hb")


# ---- MATLAB 5 ----------------------------------------------------------------------------------


def matlab(variables, compressed=True):
    return saved(lambda file: scipy.io.savemat(file, variables, do_compression=compressed))


def test_mat5(c):
    a = sp.random(40, 60, 0.1, random_state=15, format="csc")
    for compressed in (False, True):
        one = c.file("one.mat", matlab({"x": np.ones((3, 3)), "A": a, "s": "text"}, compressed))
        c.gives(one, a, ranks=3 if compressed else None)
        many = c.file("many.mat", matlab({"A": a, "B": a * 2, "C": {"D": a * 3, "e": 1.0}}, compressed))
        c.refuses(many, "holds 3 sparse arrays: A, B, C.D", code=USAGE)
        c.gives(f"{many}::C.D", a * 3)
        c.refuses(f"{many}::E", 'no sparse array "E"', code=USAGE)
        c.gives(c.file("p.mat", matlab({"Problem": {"A": a, "Zeros": a * 2}}, compressed)), a)
        c.refuses(c.file("z.mat", matlab({"A": a * 1j}, compressed)), "complex")
    c.gives(c.file("empty.mat", matlab({"A": sp.csc_matrix((4, 3))})), sp.csc_matrix((4, 3)))
    c.refuses(c.file("dense.mat", matlab({"x": np.ones(3)})), "no sparse array")
    plain = matlab({"A": a}, False)
    rows = plain.index(a.indices.astype("<i4").tobytes())
    pair = matlab({"S": {"A": a, "b": 1.0}}, False)
    second = pair.rindex(b"\x0e\0\0\0")  # the tag of b, behind the array that is chosen
    for content, words in ((plain[:rows] + b"\xff\0\0\0" + plain[rows + 4:], "row index 0 is 255; expected 0 to 39"),
                           (plain[:-9], "damaged or cut off"), (plain[:126] + b"xx" + plain[128:], "byte order"),
                           (matlab({"A": a})[:-9], "damaged or cut off"),
                           (pair[:second] + b"\xff" + pair[second + 1:], "its parts do not fit"), (b"no MATLAB at all", "no MATLAB 5 file"),
                           (b"MATLAB 7.3 MAT-file".ljust(200), "HDF5 and needs no conversion")):
        c.refuses(c.file("bad.mat", content), words)


# ---- compression and standard input ------------------------------------------------------------


def piped(c, content, expected, name):
    """Through a pipe, not a file, so that nothing can be read twice."""
    c.output.unlink(missing_ok=True)
    result = subprocess.run([BIN / "asparse_convert", "-q", "-", c.output], input=content, capture_output=True, timeout=120)
    if c.checks.that(result.returncode == OK, f"{name} through a pipe: {result}"):
        reason = difference(read_hdf5(c.output), sp.csr_matrix(expected))
        c.checks.that(not reason, f"{name} through a pipe: {reason}")


def compressed(name, content):
    if name == "gzip":
        return gzip.compress(content)
    if name == "xz":
        return lzma.compress(content)
    return subprocess.run(["zstd", "-q", "-c"], input=content, capture_output=True, check=True).stdout


def test_compression(c):
    random = np.random.default_rng(6)
    text = "".join(f"{i} {j}\n" for i, j in random.integers(0, 3000, (30000, 2))).encode()
    graph = edge_list(c.file("plain.el", text)).tocsr()
    a = sp.random(70, 50, 0.1, random_state=12, format="csr")
    piped(c, text, graph, "text")
    piped(c, petsc_bytes(a), a, "binary")
    piped(c, saved(sp.save_npz, a), a, "zip archive")
    with open(BIN / "generated/asparse_config.h") as file:
        config = file.read()
    for name in ("gzip", "xz", "zstd"):
        if name == "zstd" and not shutil.which("zstd"):
            print("note: no zstd program; its files are not tested")
            continue
        packed = compressed(name, text)
        if name != "gzip" and f"ASPARSE_HAVE_{name.upper()} 1" not in config:
            c.refuses(c.file("a.el", packed), f"compressed with {name}, which this build cannot read")
            continue
        half = text.index(b"\n", len(text) // 2) + 1
        members = compressed(name, text[:half]) + compressed(name, text[half:])
        c.gives(c.file("a.el", packed), graph, ranks=2)
        c.gives(c.file("a.el", members), graph)
        c.gives(c.file("a.npz", compressed(name, saved(sp.save_npz, a))), a, ranks=3)
        piped(c, packed, graph, name)
        for cut in (10, len(packed) // 2, len(packed) - 5):
            c.refuses(c.file("a.el", packed[:cut]), f"its {name} data are damaged or cut off")
        broken = bytearray(packed)
        broken[len(packed) // 2] ^= 0x55
        c.refuses(c.file("a.el", bytes(broken)), f"its {name} data are damaged")
    c.refuses(c.file("a.bz2", b"BZh91AY&SY"), "decompress it first (bzip2 -d)")


def test():
    checks = Checks()
    with Folder() as folder:
        c = Converter(checks, folder)
        for test_format in (test_edges, test_metis, test_npz, test_petsc, test_hb, test_mat5, test_compression):
            if len(sys.argv) < 2 or sys.argv[1] in test_format.__name__:
                test_format(c)
    return checks.finish(least=30 if len(sys.argv) > 1 else 300)


if __name__ == "__main__":
    main(test)
