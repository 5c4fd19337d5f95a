"""Files of other formats and conventions as SciPy, h5py and NumPy read them, or as their text says: the independent
reference of the tests of reading. Entries keep their places; values are fp64."""
import gzip
import io
import json
import re

import numpy as np
import scipy.io
import scipy.sparse as sp


# ---- HDF5: (matrix, entries in the file) of a group or dataset ------------------------------------


def text_of(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def compressed(group, names, shape, by_rows):
    data, indices, indptr = (np.asarray(group[name]).ravel() for name in names)
    kind = sp.csr_matrix if by_rows else sp.csc_matrix
    return kind((data.astype(np.float64), indices, indptr), shape=tuple(int(n) for n in shape))


def binsparse(group):
    d = json.loads(text_of(group.attrs["binsparse"]))["binsparse"]
    shape = tuple(d["shape"]) + (1,) * (2 - len(d["shape"]))
    values = group["values"][:].astype(np.float64)
    if d["format"].startswith("D") and "indices_1" not in group:
        order = "F" if d["format"] == "DMATC" else "C"
        return sp.csr_matrix(values.reshape(shape, order=order)), values.size
    stored = d["number_of_stored_values"]
    if d["data_types"]["values"].startswith("iso"):
        values = np.repeat(values, stored)
    minor = group["indices_1"][:].astype(int) if "indices_1" in group else np.zeros(stored, int)
    major = group["indices_0"][:].astype(int) if "indices_0" in group else np.arange(len(group["pointers_to_1"]) - 1)
    if "pointers_to_1" in group:
        major = np.repeat(major, np.diff(group["pointers_to_1"][:].astype(int)))
    if d["format"] in ("CSC", "DCSC", "COOC"):
        major, minor = minor, major
    a = sp.coo_matrix((values, (major, minor)), shape=shape).tocsr()
    structure = d.get("structure", "general")
    if structure != "general":
        mirrored = (a - sp.diags(a.diagonal())).T
        a = a - mirrored if structure.startswith("skew") else a + mirrored
    return a, stored


def anndata(group):
    by_rows = "csr" in text_of(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format")))
    shape = group.attrs["shape" if "shape" in group.attrs else "h5sparse_shape"]
    return compressed(group, ("data", "indices", "indptr"), shape, by_rows), len(group["data"])


def tenx(group):
    return compressed(group, ("data", "indices", "indptr"), group["shape"][:], False), len(group["data"])


def matlab(group):
    shape = (int(group.attrs["MATLAB_sparse"]), len(group["jc"]) - 1)
    if "ir" not in group:
        return sp.csc_matrix(shape), 0
    return compressed(group, ("data", "ir", "jc"), shape, False), len(group["ir"])


def biom(group):
    return (compressed(group, ("data", "indices", "indptr"), group.file.attrs["shape"],
                       group.name == "/observation/matrix"), len(group["data"]))


def cooler(group):
    n = int(group.attrs["nbins"])
    i, j, count = (group["pixels"][name][:] for name in ("bin1_id", "bin2_id", "count"))
    stored = len(count)
    if text_of(group.attrs.get("storage-mode", "symmetric-upper")) != "square":
        above = i != j
        i, j, count = np.append(i, j[above]), np.append(j, i[above]), np.append(count, count[above])
    return sp.coo_matrix((count.astype(np.float64), (i, j)), shape=(n, n)).tocsr(), stored


def dense(dataset):
    values = dataset[:].astype(np.float64)
    values = values.reshape(len(values), -1)
    if "MATLAB_class" in dataset.attrs:
        values = values.T
    return sp.csr_matrix(values), values.size


# ---- text -----------------------------------------------------------------------------------------


def canonical(text):
    """The same matrix in the narrow form that scipy reads: no blank lines, comments, vectors or uint64."""
    lines = [line.strip() for line in re.split(r"\r\n|\r|\n", text)]
    lines = [line for i, line in enumerate(lines) if line and (i == 0 or not line.startswith("%"))]
    banner = "%%" + lines[0].lower().lstrip("%").replace("matrixmarket", "MatrixMarket")
    lines[0] = banner.replace(" vector ", " matrix ").replace(" integer ", " real ")
    if " vector " in banner:
        sizes = lines[1].split()
        lines[1] = " ".join([sizes[0], "1"] + sizes[1:])
        if " coordinate " in banner:
            lines[2:] = [line.replace(" ", " 1 ", 1) for line in lines[2:]]
    return "\n".join(lines) + "\n"


def mtx_text(content):
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("latin1")


def is_complex(content):
    return "complex" in mtx_text(content).split("\n")[0].lower()


def mtx_entries(content):
    """What the line of sizes says of coordinates; None for arrays."""
    banner, sizes = canonical(mtx_text(content)).split("\n")[:2]
    return None if " array " in banner else int(sizes.split()[-1])


def read_scipy(content):
    text = mtx_text(content)
    is_array = " array " in re.sub(r"\s+", " ", text.split("\n")[0].lower())
    try:
        matrix = scipy.io.mmread(io.BytesIO(text.encode("latin1")))
    except (ValueError, TypeError, OverflowError):
        matrix = scipy.io.mmread(io.BytesIO(canonical(text).encode("latin1")))
    matrix = sp.csr_matrix(matrix.astype(np.float64), dtype=np.float64)
    matrix.sum_duplicates()  # sorts too
    if is_array:
        matrix.eliminate_zeros()
    return matrix


def edge_list(path):
    edges = np.loadtxt(path, comments=["#", "%"], ndmin=2)
    n = int(edges[:, :2].max()) + 1
    values = edges[:, 2] if edges.shape[1] > 2 else np.ones(len(edges))
    return sp.coo_matrix((values, (edges[:, 0].astype(int), edges[:, 1].astype(int))), (n, n))


def metis_graph(path, multigraph=False):
    lines = [line for line in path.read_text().split("\n") if not line.startswith("%")]
    n, edges, *rest = lines[0].split()
    fmt = int(rest[0]) if rest else 0
    weights = (int(rest[1]) if len(rest) > 1 else 1) if fmt // 10 % 10 else 0
    before, each = weights + (fmt // 100 if not multigraph else 0), 1 + fmt % 10
    a = sp.lil_matrix((int(n), int(n)))
    for i, line in enumerate(lines[1:int(n) + 1]):
        words = [int(word) for word in line.split()][before:]
        for j, weight in zip(words[::each], words[1::2] if each == 2 else [1] * len(words)):
            a[i, j - 1] += weight
    return a


def read_boeing(path):
    """By fields, as the formats of the fourth line say."""
    lines = path.read_text().split("\n")
    kind, m, k, nnz = lines[2].split()[:4]
    formats = re.findall(r"\((?:-?\d+P,?)?(\d+)[A-Z](\d+)", lines[3].upper())
    at = 5 if lines[4].strip()[:1].isalpha() else 4
    sections = []
    for (per_line, width), count in zip(formats, (int(k) + 1, int(nnz), int(nnz))):
        n_lines, width = -(-count // int(per_line)), int(width)
        texts = [line[i * width:(i + 1) * width] for line in lines[at:at + n_lines] for i in range(int(per_line))]
        sections.append(texts[:count])
        at += n_lines
    pointers, rows = (np.array(section, int) - 1 for section in sections[:2])
    values = np.ones(int(nnz)) if kind[0] in "pP" else [
        float(x.upper().replace(" ", "").replace("D", "E")) for x in sections[2]]
    a = sp.csc_matrix((values, rows, pointers), (int(m), int(k)))
    sign = {"s": 1, "z": -1}.get(kind[1].lower())
    return a + sign * (a.T - sp.diags(a.diagonal())) if sign else a


# ---- binary ---------------------------------------------------------------------------------------


def read_petsc(path):
    """The first matrix; widths from the name of the file."""
    content = path.read_bytes()
    index = ">i8" if "int64" in path.name else ">i4"
    scalar = ">f4" if "float32" in path.name else ">f8"
    m, k, nnz = np.frombuffer(content, index, 4)[1:]
    integers = np.frombuffer(content, index, 4 + m + nnz)
    values = np.frombuffer(content, scalar, nnz, integers.nbytes)
    return sp.csr_matrix((values, integers[4 + m:], np.append(0, np.cumsum(integers[4:4 + m]))), (m, k))


def parts_of(archive):
    with np.load(archive) as arrays:
        return dict(arrays)


def find_matlab(value, path):
    """The first array at a.b.c, through structures and cells."""
    if sp.issparse(value):
        return None if path else value
    if value.dtype == object:
        found = [find_matlab(element, path) for element in value.ravel()]
    elif path and path[0] in (value.dtype.names or ()):
        found = [find_matlab(element, path[1:]) for element in np.ravel(value[path[0]])]
    else:
        return None
    return next((element for element in found if element is not None), None)
