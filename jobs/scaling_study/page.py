"""The report of a study: one HTML file, well-formed as XML, that needs nothing else."""
import datetime
from xml.sax.saxutils import escape, quoteattr

from . import figures
from .figures import PARTS, bytes_unit, seconds_text
from .records import SCHEMA
from .svg import GUIDE_SWATCH

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; color: #1f2328; background: #fff;
  max-width: 1120px; margin: 0 auto; padding: 24px 20px 64px; }
h1 { font-size: 27px; margin: 8px 0 4px; } h2 { font-size: 20px; margin: 40px 0 8px; border-bottom: 1px solid #d5d9df;
  padding-bottom: 4px; } h3 { font-size: 16px; margin: 30px 0 6px; }
p, ul { margin: 6px 0 10px; } .lead { color: #46505c; } nav a { margin-right: 14px; } a { color: #0b5394; }
.note { background: #fff6e0; border-left: 4px solid #b07d00; padding: 8px 12px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(430px, 100%), 1fr)); gap: 10px 18px; }
.plot { width: 100%; height: auto; font-family: inherit; } .one { max-width: 560px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 13.5px; margin: 4px 0; padding: 0;
  list-style: none; }
.legend svg { vertical-align: -2px; margin-right: 6px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; margin: 6px 0 12px; }
th, td { padding: 3px 8px; border-bottom: 1px solid #e3e6ea; text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid #9aa3ae; white-space: nowrap; } td.n, th.n { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
td { white-space: nowrap; } td:last-child { white-space: normal; min-width: 5em; }
caption { text-align: left; color: #46505c; font-size: 13px; padding-bottom: 4px; }
code { font: 12.5px/1.4 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
summary { cursor: pointer; color: #0b5394; margin: 4px 0; }
@media print { details > *:not(summary) { display: block; } .figures { break-inside: avoid; } }
"""


def tag(name, words, **attributes):
    """words: already escaped. class_ is class, aria_label is aria-label."""
    given = (f" {key.rstrip('_').replace('_', '-')}={quoteattr(str(value))}" for key, value in attributes.items())
    return f"<{name}{''.join(given)}>{words}</{name}>"


def number(value, digits=3):
    return "" if value is None else f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def percent(value):
    return "" if value is None else f"{100 * value:.2g} %" if value < 0.1 else f"{100 * value:.0f} %"


def size(value):
    if value is None:
        return ""
    unit, factor = bytes_unit(value)
    return f"{value / factor:.3g} {unit}"


def seconds(value):
    return "" if value is None else seconds_text(value)


def table(caption, columns, rows):
    """columns: (heading, is number); rows of text."""
    looks = [{"class_": "n"} if right else {} for _, right in columns]
    head = "".join(tag("th", escape(name), scope="col", **look) for (name, _), look in zip(columns, looks))
    body = [tag("tr", "".join(tag("td", escape(words), **look) for words, look in zip(row, looks))) for row in rows]
    inner = tag("caption", escape(caption)) + tag("thead", tag("tr", head)) + tag("tbody", "\n".join(body))
    return tag("div", tag("table", inner), class_="scroll", tabindex="0", role="region", aria_label=caption)


def distinct(rows, name):
    """Values of a field, each once; those of lists with commas apart."""
    values = dict.fromkeys(str(row[name]) for row in rows if row[name] not in (None, ""))
    return list(dict.fromkeys(item for value in values for item in (value.split(",") if name == "hosts" else [value])))


def plural(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def warnings(done):
    """What a reader must know before believing the figures."""
    notes = []
    over = sorted({row["ranks"] for row in done if row["oversubscribed"]})
    if over:
        notes.append(("More threads than cores", f" with p = {', '.join(map(str, over))}: ranks take turns on cores, "
                      "so these points (hollow) tell nothing of how the program scales on as many cores."))
    restless = sum(row["max_seconds"] > 2 * row["min_seconds"] for row in done if not row["oversubscribed"])
    if restless:
        notes.append(("Restless machine:", f" in {plural(restless, 'case')} with a core for each thread the slowest "
                      "repeat took more than twice the fastest. Something else was running, or a multiplication is too "
                      "short to be timed."))
    return "".join(tag("p", tag("strong", head) + escape(words), class_="note") for head, words in notes)


def verified_words(done):
    unverified = sum(row["verified"] is not True for row in done)
    worst = max((row["error_over_bound"] for row in done if row["error_over_bound"] is not None), default=None)
    words = f"C was not verified in {plural(unverified, 'case')}" if unverified else "Every C was verified in fp64"
    return words + ("." if worst is None else f"; the largest error was {worst:.2g} of its rigorous bound.")


def summary(rows):
    done = [row for row in rows if row["status"] == "ok"]
    ranks = sorted({row["ranks"] for row in rows})
    words = ["No case is done yet."]
    if rows:
        words = [f"{plural(len(rows), 'case')} on {', '.join(map(str, ranks))} {'rank' if ranks == [1] else 'ranks'}; "
                 f"{len(rows) - len(done)} failed."]
    if done:
        machines = [plural(len(distinct(done, "hosts")), "host"), *distinct(done, "cpu"), *distinct(done, "device")]
        words += [f"asparse {', '.join(distinct(done, 'version'))} on {', '.join(machines)}.", verified_words(done)]
    return tag("p", escape(" ".join(words)), class_="lead") + warnings(done)


def at_most_ranks(found):
    """Speed-up and efficiency of every series on its largest number of ranks."""
    lines = []
    for facet in found:
        for label, _, rows in facet.series:
            last = next((row for row in reversed(rows) if row["speedup"] is not None), None)
            if last:
                lines.append([facet.kind, facet.title, label, str(last["ranks"]), seconds(last["median_seconds"]),
                              number(last["gflops"]), number(last["speedup"]), percent(last["efficiency"])])
    columns = [("study", False), ("matrix", False), ("exchange", False), ("p", True), ("time", True), ("GFLOP/s", True),
               ("speed-up", True), ("efficiency", True)]
    shown = table("On the largest number of ranks", columns, lines) if lines else ""
    return shown if len(lines) <= 24 else tag("details", tag("summary", "On the largest number of ranks") + shown)


def facet_table(facet):
    lines = []
    for row in sorted(facet.rows, key=lambda row: row["ranks"]):
        if row["status"] == "ok":
            lines.append([str(row["ranks"]), row["exchange_used"] if row["exchange"] else "none", row["grid"],
                          seconds(row["median_seconds"]),
                          f"{seconds(row['min_seconds'])} – {seconds(row['max_seconds'])}",
                          number(row["gflops"]), number(row["speedup"]), percent(row["efficiency"]),
                          f"{row['nnz_per_rank']:,.0f}", number(row["nnz_max_over_mean"]),
                          size(row["bytes_received_max"]),
                          number(row["bytes_received_max_over_mean"]), seconds(row["exposed_wait_max_seconds"]),
                          size(row["memory_max_bytes"]), seconds(row["predicted_seconds"])])
    columns = [("p", True), ("exchange", False), ("grid", False), ("time", True), ("repeats", True),
               ("GFLOP/s", True), ("speed-up", True), ("efficiency", True), ("entries a rank", True),
               ("max / mean", True), ("received, max", True), ("max / mean", True), ("exposed wait", True),
               ("memory, max", True), ("predicted", True)]
    return tag("details", tag("summary", "The numbers") + table(facet.title, columns, lines))


def facet_section(facet):
    parts = [tag("h3", escape(facet.title), id=facet.name)]
    failed = sum(row["status"] != "ok" for row in facet.rows)
    if failed:
        parts.append(tag("p", f"{failed} of {plural(len(facet.rows), 'case')} failed, see Failures, and "
                         f"{'is' if failed == 1 else 'are'} not drawn."))
    if not facet.ranks:
        return "\n".join(parts)
    labels = [tag("li", style.swatch() + escape(f"{style.letter}: {label}")) for label, style, rows in facet.series
              if rows or not any(rows for _, _, rows in facet.series)]
    if facet.alone:
        labels.append(tag("li", GUIDE_SWATCH + "ideal"))
    parts.append(tag("ul", "".join(labels), class_="legend"))
    drawn = []
    if facet.alone:
        drawn += [figures.speedup(facet), figures.efficiency(facet)]
    else:
        parts.append(tag("p", "No speed-up: there is no result on one rank."))
    drawn += [figures.time_split(facet), figures.volume(facet)]
    parts.append(tag("div", "\n".join(filter(None, drawn)), class_="figures"))
    parts.append(facet_table(facet))
    return "\n".join(parts)


def one_rank_table(found):
    """Cases of which the study has no more ranks than one: nothing to draw."""
    lines = [[facet.title, row["kernel"] or row["format"] or "", seconds(row["median_seconds"]),
              f"{seconds(row['min_seconds'])} – {seconds(row['max_seconds'])}", number(row["gflops"]),
              size(row["gpu_memory_max_bytes"] or row["memory_max_bytes"]), seconds(row["predicted_seconds"]),
              number(row["predicted_over_measured"])] for facet in found for row in [facet.alone]]
    columns = [("matrix", False), ("kernel", False), ("time", True), ("repeats", True), ("GFLOP/s", True),
               ("memory", True), ("predicted", True), ("predicted / measured", True)]
    return table("On one rank", columns, lines) if lines else ""


def part_legend():
    items = "".join(tag("li", f'<svg width="14" height="12" viewBox="0 0 14 12" aria-hidden="true"><rect width="14" '
                        f'height="12" fill="{color}"/></svg>{escape(name)}') for name, _, color in PARTS)
    return tag("ul", items, class_="legend")


def study_section(kind, found):
    words = {"strong": "One matrix on more and more ranks. Speed-up is the time of a true run on one rank, which "
                       "exchanges nothing and chooses its format for itself, over the time on p.",
             "weak": "A matrix that grows with p, made in place, with as many entries for each rank. Scaled speed-up "
                     "is the rate (2·nnz·N a second) on p ranks over that on one, so that it does not matter that "
                     "entries a rank are only nearly constant."}[kind]
    mine = [facet for facet in found if facet.kind == kind]
    if not mine:
        return ""
    how = ("Times are medians over repeats of the slowest rank; vertical lines span the fastest and the slowest "
           "repeat; bars show what the median repeat consists of, by means over ranks; above them stands its time.")
    single = [facet for facet in mine if facet.alone and all(row["ranks"] == 1 for row in facet.rows)]
    drawn = [facet for facet in mine if facet not in single]
    return (tag("h2", f"{kind.capitalize()} scaling", id=kind) + tag("p", words + " " + how)
            + one_rank_table(single) + (part_legend() if drawn else "")
            + "\n".join(facet_section(facet) for facet in drawn))


RATES = {"host": "memory and arithmetic rates measured on the host", "cuda": "the constants of an H200"}


def prediction_section(rows):
    found = figures.predictions(rows)
    if not found:
        return ""
    plot, words = found
    legend = "".join(tag("li", figures.Style(i).point() + kind) for i, kind in enumerate(("strong", "weak"))
                     if any(row["kind"] == kind for row in rows)) + tag("li", GUIDE_SWATCH + "1:1")
    return (tag("h2", "Prediction and measurement", id="prediction-section")
            + tag("p", "Predicted: slowest rank's max(own columns, exchange) + halo columns + layout, by the cost "
                  f"model with {' or '.join(RATES[name] for name in distinct(rows, 'backend_used'))}, and default "
                  "constants for the link between ranks. Packing is not in it.")
            + tag("p", escape(words)) + tag("ul", legend, class_="legend") + tag("div", plot, class_="one"))


def failure_section(rows):
    bad = [row for row in rows if row["status"] != "ok"]
    if not bad:
        return tag("h2", "Failures", id="failures") + tag("p", "None.")
    lines = [[row["id"], str(row["ranks"]), row["status"], number(row["exit_code"]), number(row["signal"]),
              row["message"]] for row in bad]
    columns = [("case", False), ("p", True), ("what", False), ("exit code", True), ("signal", True), ("message", False)]
    return tag("h2", "Failures", id="failures") + table("Cases without a result", columns, lines)


def all_cases(rows):
    lines = [[row["id"], row["status"], number(row["columns"]), seconds(row["median_seconds"]), number(row["gflops"]),
              number(row["speedup"]), percent(row["efficiency"]), seconds(row["predicted_seconds"]),
              number(row["cost_max_over_mean"]), size(row["bytes_received_max"]), size(row["memory_max_bytes"]),
              row["format"] or "", number(row["error_over_bound"], 2), row["started"]] for row in rows]
    columns = [("case", False), ("status", False), ("N", True), ("time", True), ("GFLOP/s", True), ("speed-up", True),
               ("efficiency", True), ("predicted", True), ("cost max / mean", True), ("received, max", True),
               ("memory, max", True), ("format", False), ("error / bound", True), ("started (UTC)", False)]
    return (tag("h2", "All cases", id="cases")
            + tag("details", tag("summary", plural(len(rows), "case")) + table("All cases", columns, lines)))


def environment(rows):
    done = [row for row in rows if row["status"] == "ok"]
    cores = sorted({row[name] for row in done for name in ("cores_min", "cores_max")})
    lines = [[name, "; ".join(values)] for name, values in (
        ("hosts", distinct(done, "hosts")), ("processor", distinct(done, "cpu")), ("GPU", distinct(done, "device")),
        ("instruction set", distinct(done, "isa")), ("cores a rank may run on", list(map(str, cores))),
        ("threads of a rank", distinct(done, "threads")), ("asparse", distinct(done, "version")),
        ("compiler", distinct(done, "compiler")), ("build", distinct(done, "build")), ("MPI", distinct(done, "mpi")),
        ("rows of B travel by", distinct(done, "transport")), ("Slurm jobs", distinct(done, "slurm_job"))) if values]
    commands = "\n".join(tag("li", tag("code", escape(row["command"]))) for row in rows)
    return (tag("h2", "Environment and commands", id="environment")
            + (table("Where it ran", [("what", False), ("values", False)], lines) if lines else "")
            + tag("details", tag("summary", "The command of every case") + (tag("ol", commands) if commands else "")))


def render(rows, title):
    """The page as text. rows: as records.rows_of gives them."""
    found = figures.facets(rows)
    made = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    sections = [study_section("strong", found), study_section("weak", found), prediction_section(rows),
                failure_section(rows), all_cases(rows), environment(rows)]
    links = [("strong", "Strong"), ("weak", "Weak"), ("prediction-section", "Prediction"), ("failures", "Failures"),
             ("cases", "All cases"), ("environment", "Environment")]
    there = [(name, words) for name, words in links if any(f'id="{name}"' in section for section in sections)]
    nav = " ".join(tag("a", words, href=f"#{name}") for name, words in there)
    body = "\n".join([tag("h1", escape(title)), summary(rows), tag("nav", nav), at_most_ranks(found), *sections,
                      tag("p", f"Made by jobs/scaling report, schema {SCHEMA}, {made}.", class_="lead")])
    return (f'<!DOCTYPE html>\n<html lang="en" xmlns="http://www.w3.org/1999/xhtml">\n<head>\n<meta charset="utf-8"/>\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"/>\n{tag("title", escape(title))}\n'
            f"<style>{STYLE}</style>\n</head>\n{tag('body', body)}\n</html>\n")
