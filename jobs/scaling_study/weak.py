"""Weak scaling: the description of a matrix of one rank becomes that for p ranks with as many entries a rank.

kind              grows                                                 stays
grid2d, fem2d     ny                                                    rows of B between neighbours: a line of nodes
grid3d, fem3d     nz                                                    … a plane of nodes
banded            n                                                     half, fill
rmat              scale by log2 p, between powers of two also edges     entries of a row
uniform           m and k                                               entries of a row (a density falls as 1/p)
blocks            m and k                                               filled blocks of a row (1 - empty falls as 1/p)
"""

# Parameters in the order of asparse_generate --list, with defaults: another parameter's name, or a number.
KINDS = {
    "grid2d": {"nx": 1000, "ny": "nx", "points": 5},
    "grid3d": {"nx": 100, "ny": "nx", "nz": "nx", "points": 7},
    "fem2d": {"nx": 300, "ny": "nx", "unknowns": 3, "points": 9},
    "fem3d": {"nx": 30, "ny": "nx", "nz": "nx", "unknowns": 3, "points": 27},
    "banded": {"n": 100000, "half": 8, "fill": 1},
    "rmat": {"scale": 16, "edges": 16, "a": 0.57, "b": 0.19, "c": 0.19},
    "uniform": {"m": 10000, "k": "m", "per_row": None, "density": None},
    "blocks": {"m": 4096, "k": "m", "size": 64, "empty": 0.9},
}


def parse(description):
    """(kind, parameters, other items such as values=one). ValueError: what is wrong."""
    kind, _, text = description.partition(":")
    if kind not in KINDS:
        raise ValueError(f"there is no kind of matrix '{kind}'; there are {', '.join(KINDS)}")
    names, given, others = list(KINDS[kind]), {}, []
    position = 0
    for item in filter(None, text.split(",")):
        name, equals, value = item.partition("=")
        if not equals:
            if position == len(names):
                raise ValueError(f"{kind} has no parameter for '{item}'")
            name, value, position = names[position], item, position + 1
        if name == "values":
            others.append(item)
        elif name not in names:
            raise ValueError(f"{kind} has no parameter '{name}'; it takes {', '.join(names)}, values")
        else:
            given[name] = float(value)
    for name, default in KINDS[kind].items():
        if name not in given and default is not None:
            given[name] = given[default] if isinstance(default, str) else default
    return kind, given, others


def text(kind, values, others):
    items = [f"{name}={values[name]:.15g}" for name in KINDS[kind] if name in values]
    return f"{kind}:{','.join(items + others)}"


def scaled(description, p):
    """The description for p ranks; the same matrix for p = 1."""
    kind, values, others = parse(description)
    if kind in ("grid2d", "fem2d"):
        values["ny"] *= p
    elif kind in ("grid3d", "fem3d"):
        values["nz"] *= p
    elif kind == "banded":
        values["n"] *= p
    elif kind == "rmat":
        doublings = p.bit_length() - 1
        values["scale"] += doublings
        values["edges"] *= p / 2**doublings
    else:
        values["m"] *= p
        values["k"] *= p
        if "density" in values:
            values["density"] /= p
        if kind == "blocks":
            values["empty"] = 1 - (1 - values["empty"]) / p
    return text(kind, values, others)
