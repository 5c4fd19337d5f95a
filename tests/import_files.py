"""asparse_convert on the formats beside Matrix Market: small files that are made here, and those of other programs.

Values are compared with SciPy's where it reads the format, else with what the file's own text says; shapes and
numbers of entries with the manifest of the real files.
"""
import csv
import gzip

import numpy as np
import scipy.sparse as sp

from asparse_testing import (DATA, DATA_ERROR, OK, RUNTIME, USAGE, Checks, Folder, main, run, said)
from mtx_against_scipy import difference, read_hdf5

FILES = DATA / "io-files"


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


def manifest(folder):
    """(path, row) of the real files of a folder; nothing without the data."""
    if not (FILES / "MANIFEST.tsv").exists():
        print(f"note: no files of other programs at {FILES} for '{folder}'; set ASPARSE_DATA")
        return
    with open(FILES / "MANIFEST.tsv", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["file"].startswith(folder + "/"):
                yield FILES / row["file"], row


# ---- edge lists --------------------------------------------------------------------------------


def edge_list(path):
    edges = np.loadtxt(path, comments=["#", "%"], ndmin=2)
    n = int(edges[:, :2].max()) + 1
    values = edges[:, 2] if edges.shape[1] > 2 else np.ones(len(edges))
    return sp.coo_matrix((values, (edges[:, 0].astype(int), edges[:, 1].astype(int))), (n, n))


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
    for path, row in manifest("edgelist"):
        ours = c.gives(path, edge_list(path))
        if ours is not None:
            c.checks.that(ours.shape[0] == int(row["rows"].split()[1]) + 1, f"{path.name}: shape {ours.shape}")
            c.checks.that(ours.sum() == int(row["nnz"]), f"{path.name}: {ours.sum()} edges, manifest {row['nnz']}")


def test():
    checks = Checks()
    with Folder() as folder:
        c = Converter(checks, folder)
        test_edges(c)
    return checks.finish(least=30)


main(test)
