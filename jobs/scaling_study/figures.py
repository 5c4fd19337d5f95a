"""The figures of a study: for each matrix, speed-up, efficiency, where the time goes, what travels; and predictions."""
import pathlib
import statistics

from .records import baseline_key
from .study import is_description
from .svg import Plot, Style, short

PARTS = [("own columns", "own_columns_mean_seconds", "#2f6fab"),
         ("exposed wait", "exposed_wait_mean_seconds", "#c8501e"),
         ("halo columns", "halo_columns_mean_seconds", "#3a9188"), ("packing", "packing_mean_seconds", "#c9991c"),
         ("layout", "layout_mean_seconds", "#8562a5"), ("rest: imbalance, start", None, "#b5bbc3")]
SERIES_KEY = ("exchange", "placement", "partition")


def seconds_text(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"


def bytes_unit(most):
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if most >= factor:
            return unit, factor
    return "B", 1


def matrix_name(row):
    return row["matrix"] if is_description(row["matrix"]) else pathlib.Path(row["matrix"].split("::")[0]).stem


def varying(rows, names):
    """Of these fields, those with more than one value."""
    return [name for name in names if len({row[name] for row in rows}) > 1]


class Facet:
    """Cases with one baseline, by series: one way of exchanging each."""

    def __init__(self, number, rows, all_rows):
        self.number, self.rows, self.kind = number, rows, rows[0]["kind"]
        self.name = f"f{number}"
        self.title = self.heading(all_rows)
        self.alone = next((row for row in rows if row["ranks"] == 1 and row["status"] == "ok"), None)
        several = [row for row in rows if row["ranks"] > 1]
        keys = list(dict.fromkeys(tuple(row[name] for name in SERIES_KEY) for row in several))
        names = [name for name in SERIES_KEY if name == "exchange" or name in varying(several, SERIES_KEY)]
        self.series = []
        for i, key in enumerate(keys or [(None,) * 3]):
            mine = [row for row in several if tuple(row[name] for name in SERIES_KEY) == key]
            mine.sort(key=lambda row: row["ranks"])
            label = ", ".join(str(dict(zip(SERIES_KEY, key))[name]) for name in names) if keys else "one rank"
            self.series.append((self.label(label, mine), Style(i), [row for row in mine if row["status"] == "ok"]))
        self.ranks = sorted({row["ranks"] for row in rows if row["status"] == "ok"})

    @staticmethod
    def label(label, rows):
        used = list(dict.fromkeys(row["exchange_used"] for row in rows if row["exchange_used"]))
        return f"{label} ({', '.join(used)})" if label.startswith("auto") and used else label

    def heading(self, all_rows):
        row = self.rows[0]
        more = [f"N = {row['columns']}", row["precision"]]
        for name in varying(all_rows, ("backend", "threads", "seed", "options")):
            more.append(f"{name} {row[name] or 'none'}")
        return f"{matrix_name(row)}, " + ", ".join(more)

    def points(self, field, low=None, high=None):
        """For each series (style, points, hollow ones): values over p, from the case on one rank on."""
        for _, style, rows in self.series:
            found = ([self.alone] if self.alone else []) + rows
            found = [row for row in found if row[field] is not None]
            if found:
                points = [(row["ranks"], row[field], low and low(row), high and high(row)) for row in found]
                yield style, points, {i for i, row in enumerate(found) if row["oversubscribed"]}

    def draw(self, plot, drawn):
        for style, points, hollow in drawn:
            plot.series(points, style, hollow, style.aside(len(self.series)))

    def x_axis(self):
        return self.ranks[0], self.ranks[-1], True, self.ranks


def spread_of(field):
    """The value with the slowest and with the fastest repeat in place of the median one."""
    return (lambda row: row[field] * row["median_seconds"] / row["max_seconds"],
            lambda row: row[field] * row["median_seconds"] / row["min_seconds"])


def in_words(points_by_series, facet, form):
    """The text alternative: each series' values."""
    names = {style.letter: label for label, style, _ in facet.series}
    return ". ".join(f"{names[style.letter]}: " + ", ".join(f"{form(y)} on {x} rank{'s' if x > 1 else ''}"
                                                            for x, y, _, _ in points)
                     for style, points, _ in points_by_series)


def powers_of_two(low, high):
    powers = [2.0**k for k in range(-20, 25)]
    return [power for power in powers if low <= power <= high]


def power_text(value):
    return f"{value:.0f}" if value >= 1 else f"1/{1 / value:.0f}"


def speedup(facet):
    drawn = list(facet.points("speedup", *spread_of("speedup")))
    word = "Scaled speed-up" if facet.kind == "weak" else "Speed-up"
    plot = Plot(f"{facet.name}-s", word, f"{word} over one rank. " + in_words(drawn, facet, short),
                "ranks p", word.lower())
    low = min(1, min(y for _, points, _ in drawn for _, y, _, _ in points)) * 0.9
    high = max(facet.ranks[-1], max(y for _, points, _ in drawn for _, y, _, _ in points)) * 1.1
    plot.axes(facet.x_axis(), (low, high, True, powers_of_two(low, high)), y_format=power_text)
    plot.guide([(p, p) for p in facet.ranks])
    facet.draw(plot, drawn)
    return plot.render()


def efficiency(facet):
    drawn = list(facet.points("efficiency", *spread_of("efficiency")))
    drawn = [(style, [(x, 100 * y, 100 * low, 100 * high) for x, y, low, high in points], hollow)
             for style, points, hollow in drawn]
    plot = Plot(f"{facet.name}-e", "Parallel efficiency", "Speed-up over the number of ranks. "
                + in_words(drawn, facet, lambda y: f"{short(y)} %"), "ranks p", "efficiency, %")
    high = max(110, 1.08 * max(y for _, points, _ in drawn for _, y, _, _ in points))
    plot.axes(facet.x_axis(), (0, high, False, None))
    plot.guide([(facet.ranks[0], 100), (facet.ranks[-1], 100)])
    facet.draw(plot, drawn)
    return plot.render()


def time_parts(row):
    """Shares of the multiplication in percent, in the order of PARTS."""
    times = [row[field] or 0.0 for _, field, _ in PARTS if field]
    whole = max(row["median_seconds"], sum(times))
    return [100 * time / whole for time in times] + [100 * (whole - sum(times)) / whole]


def time_split(facet):
    bars = [(p, style, row) for p in facet.ranks for row, style in
            ([(facet.alone, None)] if p == 1 and facet.alone else
             [(row, style) for _, style, rows in facet.series for row in rows if row["ranks"] == p])]
    words = ". ".join(f"{row['ranks']} ranks{', ' + style.letter if style else ''}: " + ", ".join(
        f"{name} {share:.0f} %" for (name, _, _), share in zip(PARTS, time_parts(row)) if share >= 0.5)
        for _, style, row in bars)
    plot = Plot(f"{facet.name}-t", "Where the time of a multiplication goes", words, "ranks p (letters: exchange)",
                "share, mean over ranks, %")
    plot.axes(None, (0, 124, False, [0, 20, 40, 60, 80, 100]), x_names=[str(p) for p in facet.ranks])
    for p in facet.ranks:
        group = [(style, row) for q, style, row in bars if q == p]
        width = min(0.8 / len(group), 0.4)
        for i, (style, row) in enumerate(group):
            place = facet.ranks.index(p) + (i - (len(group) - 1) / 2) * width
            segments = [(share, color) for share, (_, _, color) in zip(time_parts(row), PARTS)]
            plot.bar(place, width * 0.86, segments, style.letter if style else "", seconds_text(row["median_seconds"]))
    return plot.render()


def received(row):
    """Bytes of the rank that receives most: by the exchange, and for the change of layout."""
    return row["bytes_received_max"] + row["layout_bytes_received_max"]


def volume(facet):
    """None with one rank only."""
    drawn = []
    for _, style, rows in facet.series:
        points = [(row["ranks"], received(row), None, None) for row in rows]
        if points:
            drawn.append((style, points))
    if not drawn:
        return None
    most = max(y for _, points in drawn for _, y, _, _ in points)
    unit, factor = bytes_unit(most)
    drawn = [(style, [(x, y / factor, None, None) for x, y, _, _ in points], set()) for style, points in drawn]
    ranks = [p for p in facet.ranks if p > 1]
    everything = [(row["ranks"], row["replicate_bytes"] / row["ranks"] / factor)
                  for row in {row["ranks"]: row for _, _, rows in facet.series for row in rows}.values()]
    everything = sorted(everything) if max(y for _, y in everything) <= 4 * max(most, 1) / factor else []
    title = "Communication volume" + (" (dashed: all of B)" if everything else "")
    plot = Plot(f"{facet.name}-v", title, "What the rank that receives most receives, a multiplication. "
                + in_words(drawn, facet, lambda y: f"{short(y)} {unit}"), "ranks p",
                f"received by one rank at most, {unit}")
    high = 1.12 * max([most / factor, *(y for _, y in everything)]) or 1
    plot.axes((ranks[0], ranks[-1], True, ranks), (0, high, False, None))
    if everything:
        plot.guide(everything)
    facet.draw(plot, drawn)
    return plot.render()


def facets(rows):
    """Strong ones first, in the order of the study."""
    groups = {}
    for row in rows:
        groups.setdefault(baseline_key(row), []).append(row)
    ordered = sorted(groups.values(), key=lambda group: group[0]["kind"])
    return [Facet(i, group, rows) for i, group in enumerate(ordered, 1)]


def predictions(rows):
    """(SVG, words) of predicted against measured time; None where no case has both."""
    known = [row for row in rows if row["status"] == "ok" and row["predicted_seconds"]]
    if not known:
        return None
    unit, factor = ("s", 1) if max(row["median_seconds"] for row in known) >= 1 else ("ms", 1e3)
    values = [factor * row[name] for row in known for name in ("predicted_seconds", "median_seconds")]
    low, high = min(values) / 1.5, max(values) * 1.5
    counted = [row for row in known if not row["oversubscribed"]]
    words = error_words(counted, len(known) - len(counted))
    plot = Plot("prediction", "Predicted and measured time of a multiplication", words, f"measured, {unit}",
                f"predicted, {unit}")
    plot.axes((low, high, True, None), (low, high, True, None))
    plot.guide([(low, low), (high, high)])
    for kind, i in (("strong", 0), ("weak", 1)):
        style = Style(i)
        for row in (row for row in known if row["kind"] == kind):
            point = (factor * row["median_seconds"], factor * row["predicted_seconds"], None, None)
            plot.scatter(point, style, row["oversubscribed"])
    return plot.render(), words


def factor_off(row):
    """How far a prediction is off: 2 for half as well as for twice the time."""
    return max(row["predicted_over_measured"], 1 / row["predicted_over_measured"])


def error_words(counted, left_out):
    aside = ""
    if left_out:
        aside = (f" {left_out} case{'s' if left_out > 1 else ''} with more threads than cores (hollow) "
                 f"{'are' if left_out > 1 else 'is'} not counted: no model knows who waits for whom there.")
    if not counted:
        return "No case had a core for each thread." + aside
    worst = max(counted, key=factor_off)
    return (f"Over {len(counted)} case{'s' if len(counted) > 1 else ''} the prediction is off by a factor of "
            f"{statistics.median(map(factor_off, counted)):.3g} in the median and {factor_off(worst):.3g} at most "
            f"({worst['id']}: {seconds_text(worst['predicted_seconds'])} predicted, "
            f"{seconds_text(worst['median_seconds'])} measured).{aside}")
