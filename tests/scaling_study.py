"""jobs/scaling: a small study, killed and resumed; failures as rows; the page's numbers are the records'."""
import csv
import io
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

from asparse_testing import BIN, BRIEF, MPIEXEC, OK, ROOT, USAGE, Checks, Folder, main, run, said

sys.path.insert(0, str(ROOT / "jobs"))
from scaling_study import extra_p, page, records, runner, study, weak  # noqa: E402

DRIVER = [sys.executable, str(ROOT / "jobs/scaling")]
INTERRUPTED = 85
XHTML = "{http://www.w3.org/1999/xhtml}"


def drive(*arguments, environment=None, timeout=100):
    return subprocess.run([*DRIVER, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          env=dict(os.environ, **(environment or {})), check=False)


def read_csv(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


# ---- descriptions -------------------------------------------------------------------------------------


def generated(description):
    result = run("asparse_generate", description, "--quiet", "--json", "-")
    return json.loads(result.stdout) if result.returncode == OK else None


def listed_kinds():
    """Parameters and defaults as asparse_generate --list has them: kind → {name: default}."""
    kinds = {}
    for line in run("asparse_generate", "--list").stdout.splitlines():
        head, parameter = re.match(r"(\w+): ", line), re.match(r"  (\w+) .*\(default (\S+)\)$", line)
        if head:
            kinds[head.group(1)] = {}
        elif parameter and parameter.group(1) != "values":
            name, default = parameter.groups()
            number = re.fullmatch(r"[\d.]+", default)
            kinds[list(kinds)[-1]][name] = float(default) if number else None if default == "none" else default
    return kinds


def weak_descriptions(checks):
    """As many entries a rank; the driver's parameters and defaults are the program's."""
    listed = listed_kinds()
    in_order = all(list(listed[kind]) == list(weak.KINDS[kind]) for kind in listed)
    checks.that(listed == weak.KINDS and in_order, f"{listed}")
    for number, description in enumerate((
            "grid2d:40,30,points=9", "rmat:10,8", "uniform:400,density=0.02", "blocks:512,1024,16,0.8",
            "fem3d:8,nz=16,values=one", "grid3d:12,nz=10", "banded:3000,4,0.5", "uniform:500,700,5.5", "fem2d:20")):
        if BRIEF and number > 3:
            break
        alone, grown = generated(description), generated(weak.scaled(description, 3))
        checks.that(alone["matrix"].startswith(weak.scaled(description, 1).split(",values")[0]), f"{alone['matrix']}")
        per_rank = grown and grown["nnz"] / 3 / alone["nnz"]
        checks.that(grown and 0.9 < per_rank < 1.1, f"{weak.scaled(description, 3)}: {per_rank} of the entries a rank")
    on_8 = weak.scaled("rmat:10,8", 8)
    checks.that(on_8 == "rmat:scale=13,edges=8,a=0.57,b=0.19,c=0.19", on_8)
    for wrong in ("grid2d:4,5,9,1", "grid2d:mx=3", "cube:4", "grid2d:x"):
        try:
            checks.that(not weak.scaled(wrong, 2), f"{wrong} was taken")
        except ValueError:
            checks.that(True, "")


# ---- running ------------------------------------------------------------------------------------------


def logging_launcher(folder):
    """mpirun that notes every start, and hangs at the start whose number is in the file "hang"."""
    script = folder / "launch"
    script.write_text(f"""#!/bin/sh
echo start >> {folder}/starts
[ "$(wc -l < {folder}/starts)" = "$(cat {folder}/hang)" ] && exec sleep 60
exec {shlex.join(MPIEXEC)} -np "$@"
""")
    script.chmod(0o755)
    return f"{script} {{ranks}}"


def starts(folder):
    path = folder / "starts"
    return len(path.read_text().splitlines()) if path.exists() else 0


def interrupt(checks, folder, arguments, at, number):
    """Runs the driver until the start with that number hangs, then sends a signal; the driver's exit code."""
    (folder / "hang").write_text(f"{at}\n")
    driver = subprocess.Popen([*DRIVER, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while starts(folder) < at and driver.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    checks.that(starts(folder) == at, f"{starts(folder)} starts, expected {at}")
    time.sleep(0.2)
    driver.send_signal(number)
    return driver.wait(30)


def killed_and_resumed(checks, folder):
    out = folder / "study"
    arguments = ["run", "-o", out, "--build", BIN, "--launcher", logging_launcher(folder), "--strong", "grid2d:40,40",
                 "--weak", "rmat:8,8", "--ranks", "2,3", "--cols", "2", "--exchange", "rows,columns", "--repeat", 3,
                 "--warmup", 1]
    checks.that(interrupt(checks, folder, arguments, 2, signal.SIGKILL) == -signal.SIGKILL, "not killed")
    checks.that(interrupt(checks, folder, ["run", "-o", out], 5, signal.SIGTERM) == INTERRUPTED, "not interrupted")
    kept = {path.name: path.read_bytes() for path in out.glob("cases/*.json")}
    checks.that(len(kept) == 3 and all(json.loads(text)["id"] for text in kept.values()), f"records {list(kept)}")
    begun = starts(folder)
    result = drive("run", "-o", out)
    checks.that(result.returncode == OK and "10 of 10 cases done, 2 of them failed" in result.stdout, said(result))
    checks.that(starts(folder) - begun == 10 - len(kept), f"{starts(folder) - begun} starts after {len(kept)} records")
    for name, text in kept.items():
        checks.that((out / "cases" / name).read_bytes() == text, f"{name} was written again")
    left = [path.name for path in out.rglob(".*") if not path.name.endswith(".lock")]
    checks.that(not left, f"left behind: {left}")
    begun = starts(folder)
    checks.that(drive("run", "-o", out).returncode == OK and starts(folder) == begun, "done cases were run again")
    return out


def failures(checks, folder):
    """Whatever becomes of a case, a row says it and the next one runs."""
    for name, launcher, wanted in (
            ("timeout", "sh -c 'exec sleep 60'", {"status": "timeout", "exit_code": "", "signal": ""}),
            ("signal", "sh -c 'kill -SEGV $$'", {"status": "failed", "exit_code": "-11", "signal": "11"}),
            ("absent", "/no/such/launcher", {"status": "failed", "exit_code": "127"}),
            ("code", "sh -c 'echo x: error: told so >&2; exit 9'", {"exit_code": "9", "message": "x: error: told so"}),
            ("silent", "true", {"status": "failed", "message": "exit code 0, but no report"})):
        out = folder / name
        result = drive("run", "-o", out, "--build", BIN, "--launcher", launcher, "--strong", "grid2d:5", "--ranks", "1",
                       "--timeout", 1)
        checks.that(result.returncode == OK, said(result))
        row = read_csv(out / "scaling.csv")[0]
        checks.that(all(row[key] == value for key, value in wanted.items()), f"{name}: {row}")
        check_page(checks, page.render(records.load(out), name))
    out = folder / "again"
    result = drive("run", "-o", out, "--build", BIN, "--launcher", "sh -c 'exit 85'", "--strong", "grid2d:5",
                   "--ranks", "1")
    checks.that(result.returncode == INTERRUPTED and not list(out.glob("cases/*.json")), f"exit 85: {said(result)}")
    with runner.lock(study.Study(folder / "code"), 1):
        result = drive("run", "-o", folder / "code", "--again", "--launcher", "true")
        checks.that("another driver" in result.stdout, f"two drivers: {said(result)}")
        checks.that(len(list((folder / "code").glob("cases/*.json"))) == 1, "a record went while others work")
    result = drive("run", "-o", folder / "code", "--again")
    checks.that("1 of 1 cases done" in result.stdout and "no report" in result.stdout, f"--again: {said(result)}")


def refused(checks, folder):
    for words, *arguments in (("no asparse_solve", "--build", folder, "--strong", "grid2d:5"),
                              ("no such file", "--strong", folder / "no.h5"), ("takes a description", "--weak", "x.h5"),
                              ("nothing to run",), ("--exchange takes", "--strong", "grid2d:5", "--exchange", "all"),
                              ("--precision takes", "--strong", "grid2d:5", "--precision", "fp16"),
                              ("no parameter 'mx'", "--weak", "grid2d:mx=3"),
                              ("--launcher knows", "--strong", "grid2d:5", "--launcher", "{x}")):
        build = [] if "--build" in arguments else ["--build", BIN]
        result = drive("run", "-o", folder / "never", *build, *arguments)
        checks.that(result.returncode == 1 and words in result.stderr, f"{words}: {said(result)}")
        checks.that(not (folder / "never").exists(), f"{words}: a study was begun")
    checks.that(drive("run").returncode == USAGE and drive().returncode == USAGE, "usage")
    result = drive("report", folder / "none", "-o", folder / "page.html")
    checks.that(result.returncode == 1 and "no study" in result.stderr, said(result))


def submitted(checks, folder):
    """One job a number of ranks; a stand-in for sbatch runs it at once."""
    out, tools = folder / "jobs", folder / "bin"
    tools.mkdir()
    (tools / "sbatch").write_text('#!/bin/sh\ngrep -q "ntasks=[12]$" "$1" && exec env SLURM_JOB_ID=7 bash "$1"\n')
    (tools / "sbatch").chmod(0o755)
    arguments = ["submit", "-o", out, "--build", BIN, "--launcher", f"{shlex.join(MPIEXEC)} -np {{ranks}}", "--weak",
                 "banded:200,3", "--ranks", "1,2", "--cols", 3, "--repeat", 2]
    result = drive(*arguments, "--dry-run")
    checks.that(result.returncode == OK and not list(out.glob("cases/*.json")), said(result))
    result = drive(*arguments, environment={"PATH": f"{tools}:{os.environ['PATH']}"})
    rows = records.load(out)
    checks.that(result.returncode == OK and [row["status"] for row in rows] == ["ok", "ok"], f"{said(result)}{rows}")
    checks.that(all(row["slurm_job"] == "7" for row in rows), "Slurm's job is not in the record")
    checks.that("jobs/p1.sbatch" not in drive(*arguments, "--dry-run").stdout, "a job without cases")


# ---- tables and pages -----------------------------------------------------------------------------------


def tables(checks, out):
    """CSV, JSON and records say the same."""
    rows = read_csv(out / "scaling.csv")
    kept = json.loads((out / "scaling.json").read_text(encoding="utf-8"))
    fields = [field["name"] for field in json.loads(drive("--schema").stdout)["fields"]]
    checks.that(list(rows[0]) == fields and all(list(case) == fields for case in kept["cases"]), "fields")
    documented = (ROOT / "jobs/SCALING.md").read_text(encoding="utf-8")
    for field in fields:
        checks.that(f"`{field}`" in documented, f"jobs/SCALING.md does not say what {field} is")
    by_id = {row["id"]: row for row in rows}
    for path in out.glob("cases/*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        row, report = by_id[record["id"]], record["report"]
        checks.that(row["status"] == record["outcome"]["status"] and row["command"] == record["command"], f"{row}")
        if report is None:
            checks.that(row["exit_code"] == "2" and "blocks of them" in row["message"], f"a failure: {row['message']}")
            continue
        alone = by_id[row["baseline"]]
        alone_shape = alone["ranks"], alone["exchange"], alone["bytes_received_max"]
        checks.that(alone_shape == ("1", "", "0"), f"{alone}")
        time_, base = report["multiply"]["median_seconds"], float(alone["median_seconds"])
        if row["kind"] == "strong":
            wanted = base / time_
        else:
            wanted = report["matrix"]["nnz"] / time_ / (float(alone["nnz"]) / base)
        checks.that(abs(float(row["speedup"]) / wanted - 1) < 1e-9, f"speed-up {row['speedup']}, expected {wanted}")
        efficiency = float(row["efficiency"])
        checks.that(abs(efficiency * report["ranks"] / wanted - 1) < 1e-9, f"efficiency {efficiency}")
        checks.that(float(row["repeat_seconds"].split()[1]) == float(f"{time_:.9g}"), "median of 3 repeats")
        checks.that(int(row["nnz"]) == report["matrix"]["nnz"] and row["verified"] == "1", f"{row}")
        if row["kind"] == "weak":
            checks.that(abs(float(row["nnz_per_rank"]) / float(alone["nnz"]) - 1) < 0.1, f"entries a rank: {row}")
    return kept["cases"]


def check_page(checks, text):
    """Well-formed, alone in the world, and no figure without marks and words."""
    root = ElementTree.fromstring(text)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    checks.that(len(ids) == len(set(ids)), f"ids twice: {sorted(i for i in ids if ids.count(i) > 1)[:5]}")
    outside = re.sub(r'xmlns="[^"]*"', "", text)
    checks.that("://" not in outside and "url(" not in outside, "a reference to somewhere else")
    for element in root.iter():
        name = element.tag.replace(XHTML, "")
        checks.that(name not in ("script", "link", "img", "iframe", "object") and not element.get("src"), f"<{name}>")
        href = element.get("href")
        if href is not None:
            checks.that(href[0] == "#" and href[1:] in ids, f"link to {href}")
    plots = [svg for svg in root.iter(XHTML + "svg") if svg.get("class") == "plot"]
    for svg in plots:
        title, description = svg.find(XHTML + "title"), svg.find(XHTML + "desc")
        checks.that(all(words is not None and words.text for words in (title, description)), "words of a plot")
        checks.that(svg.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}", "aria-labelledby")
        marks = [mark for mark in svg.iter() if mark.get("class") == "mark"]
        checks.that(marks, f"{title.text}: no marks")
        numbers = [float(n) for mark in marks for key in ("cx", "cy", "x", "y", "points") if mark.get(key)
                   for n in re.split("[ ,]", mark.get(key))]
        checks.that(all(-1 <= n <= 521 for n in numbers), f"{title.text}: a mark outside of the plot {numbers}")
    return root, plots


def cells(root, caption):
    for table in root.iter(XHTML + "table"):
        if table.find(XHTML + "caption").text == caption:
            return [["".join(cell.itertext()) for cell in row] for row in table.find(XHTML + "tbody")]
    return []


def seconds(text):
    value, unit = text.split()
    return float(value) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit]


def page_is_right(checks, out, rows, folder):
    result = drive("report", out, "-o", folder / "page.html")
    checks.that(result.returncode == OK, said(result))
    text = (folder / "page.html").read_text(encoding="utf-8")
    root, plots = check_page(checks, text)
    checks.that(len(plots) == 9, f"{len(plots)} plots of 2 matrices and the predictions")
    checks.that(drive("report", out / "scaling.json", "-o", folder / "other.html").returncode == OK
                and (folder / "other.html").read_text(encoding="utf-8") == text, "another page from the exported JSON")
    shown = {row[0]: row for row in cells(root, "All cases")}
    checks.that(set(shown) == {row["id"] for row in rows}, "all cases are in the table")
    for row in rows:
        if row["status"] == "ok":
            line = shown[row["id"]]
            time_, speedup = row["median_seconds"], row["speedup"]
            checks.that(abs(seconds(line[3]) / time_ - 1) < 0.01, f"time {line[3]}: {time_}")
            checks.that(abs(float(line[5]) / speedup - 1) < 0.01, f"speed-up {line[5]}: {speedup}")
    bad = cells(root, "Cases without a result")
    checks.that([line[3] for line in bad] == ["2", "2"] and all("blocks of them" in line[5] for line in bad), f"{bad}")
    described = {svg.find(XHTML + "title").text: svg.find(XHTML + "desc").text for svg in plots}
    last = next(row for row in rows if (row["kind"], row["exchange"], row["ranks"]) == ("weak", "rows", 3))
    checks.that(f"{100 * last['efficiency']:.3g} % on 3 ranks" in described["Parallel efficiency"], f"{described}")


def sizes(checks, rows):
    """From nothing to 200 cases; what is drawn stays within its frame."""
    good = [row for row in rows if row["status"] == "ok"]
    check_page(checks, page.render([], "Nothing"))
    check_page(checks, page.render([row for row in rows if row["status"] != "ok"], "Failures only"))
    alone = next(row for row in good if row["ranks"] == 1)
    root, plots = check_page(checks, page.render([alone], "One case"))
    lines = cells(root, "On one rank")
    checks.that(len(plots) == 1 and [line[1] for line in lines] == [alone["kernel"] or alone["format"]],
                f"{len(plots)} plots of one case on one rank, {lines}")
    _, plots = check_page(checks, page.render([alone, dict(alone, ranks=2, status="failed", message="")], "One point"))
    checks.that(len(plots) == 4, f"{len(plots)} plots of one point")
    check_page(checks, page.render([row for row in good if row["ranks"] > 1], "No baseline"))
    many = [dict(row, id=f"{row['id']}-{i}", columns=i, exchange=row["exchange"] and f"way <{i % 9}> & more",
                 median_seconds=row["median_seconds"] * 10.0 ** (i % 7 - 3)) for i in range(30) for row in good]
    root, plots = check_page(checks, page.render(many, "A & <many>"))
    checks.that(len(many) >= 200 and len(plots) > 200, f"{len(plots)} plots of {len(many)} cases")
    checks.that(len(cells(root, "All cases")) == len(many), "cases in the table")


def other_tools(checks, rows, out, folder):
    names = {"--csv": folder / "a.csv", "--short": folder / "short.csv", "--json": folder / "a.json", "--extra-p": folder / "a.jsonl"}
    result = drive("export", out, *(word for pair in names.items() for word in pair))
    checks.that(result.returncode == OK, said(result))
    for name in ("csv", "json"):
        checks.that((folder / f"a.{name}").read_bytes() == (out / f"scaling.{name}").read_bytes(), f"exported {name}")
    with (folder / "short.csv").open() as file:
        table = list(csv.DictReader(file))
    good = [row for row in rows if row["status"] == "ok"]
    checks.that(len(table) == len(good) > 0 and list(table[0]) == list(records.SHORT), f"short table: {table[:1]}")
    for line, row in zip(table, good):
        checks.that(math.isclose(float(line["time_ms"]), 1e3 * row["median_seconds"], rel_tol=1e-5)
                    and (line["p"], line["n"]) == (str(row["ranks"]), str(row["columns"]))
                    and int(line["bytes_max"]) == row["bytes_received_max"] + row["layout_bytes_received_max"]
                    and 0 <= float(line["exposed_fraction"]) <= 1, f"short line {line}")
    lines = [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()]
    times = sorted((line["callpath"], line["params"]["p"]) for line in lines if line["metric"] == "time")
    wanted = sorted((name, p) for name in ("strong grid2d:40,40 rows", "weak rmat:8,8 rows") for p in (1, 2, 3) * 3)
    checks.that(times == wanted, f"repeats for Extra-P: {times}")
    checks.that(all(set(line) == {"params", "callpath", "metric", "value"} and set(line["params"]) == {"p"}
                    and isinstance(line["value"], (int, float)) for line in lines), "lines for Extra-P")
    checks.that(result.stderr.count("left out for Extra-P") == 2 and "rmat:8,8 columns" in result.stderr, said(result))
    checks.that(extra_p.to_lines([]) == ("", []) and study.SCHEMA == 1 == records.SCHEMA, "schema")


def gpus_of_a_host(checks, folder):
    """jobs/scaling_gpus, small and on the host: every part of it has cases, the second time nothing is left to run."""
    (folder / "matrices").mkdir()
    run("asparse_generate", "grid2d:60,60", "--quiet", "-o", folder / "matrices/grid.h5")
    command = [ROOT / "jobs/scaling_gpus", BIN, folder / "matrices", folder / "results", "2", "small"]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1")
    for runs_cases in (True, False):
        result = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment, check=False)
        checks.that(result.returncode == 0 and ("[1/" in result.stdout) == runs_cases, f"scaling_gpus: {said(result)}")
    rows = read_csv(folder / "results/scaling-2gpu.csv")
    checks.that(rows and all(row["status"] == "ok" for row in rows), f"scaling_gpus: {[row['message'] for row in rows]}")
    for name, there in (("kind", {"strong", "weak"}), ("ranks", {"1", "2"}), ("columns", {"16", "64"}),
                        ("exchange", {"", "auto", "rows", "replicate", "cover", "columns"}),
                        ("placement", {"", "planner", "rows"})):
        checks.that({row[name] for row in rows} == there, f"scaling_gpus, {name}: {({row[name] for row in rows})}")
    checks.that(any(row["input"].endswith("grid.h5") for row in rows), "scaling_gpus: no file")
    checks.that((folder / "results/scaling-2gpu.html").exists(), "scaling_gpus: no page")


def test():
    checks = Checks()
    weak_descriptions(checks)
    with Folder() as folder:
        refused(checks, folder)
        failures(checks, folder)
        submitted(checks, folder)
        out = killed_and_resumed(checks, folder)
        rows = tables(checks, out)
        page_is_right(checks, out, rows, folder)
        sizes(checks, rows)
        other_tools(checks, rows, out, folder)
        if not BRIEF:
            gpus_of_a_host(checks, folder)
    return checks.finish(least=1000)


main(test)
