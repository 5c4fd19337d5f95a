"""The page of jobs/scaling in a browser: headless Chromium, where it is installed, shows it without a complaint."""
import re
import shutil
import struct
import subprocess
import sys
import zlib

import numpy as np

from asparse_testing import ROOT, Checks, Folder, main

sys.path.insert(0, str(ROOT / "jobs"))
from scaling_study import page, records  # noqa: E402

SKIPPED = 77
WIDTH, HEIGHT = 1000, 800


def browser(program, folder, address, *options):
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
               f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}", "--enable-logging=stderr",
               *options, address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, errors="replace")


def complaints(result):
    return [line for line in result.stderr.splitlines() if "CONSOLE" in line]


def pixels(path):
    """An 8-bit PNG without interlacing as [height, width, channels]."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", data[at + 8:at + 18])
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    if depth != 8 or color not in (2, 6):
        raise ValueError(f"PNG of depth {depth}, colour type {color}")
    channels = 3 if color == 2 else 4
    raw = zlib.decompress(packed)
    rows, stride = [bytes(width * channels)], width * channels + 1
    for y in range(height):
        rows.append(unfiltered(raw[y * stride], raw[y * stride + 1:(y + 1) * stride], rows[-1], channels))
    return np.frombuffer(b"".join(rows[1:]), np.uint8).reshape(height, width, channels)


def unfiltered(kind, line, above, channels):
    if kind == 0:
        return line
    if kind == 2:
        return (np.frombuffer(line, np.uint8) + np.frombuffer(above, np.uint8)).tobytes()
    out = bytearray(line)
    for i, value in enumerate(line):
        left, up = (out[i - channels] if i >= channels else 0), above[i]
        corner = above[i - channels] if i >= channels else 0
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + up) // 2
        else:
            guess = min((left, up, corner), key=lambda n: abs(left + up - corner - n))
        out[i] = value + guess & 255
    return bytes(out)


def shown(checks, program, folder, rows, title):
    path = folder / "page.html"
    path.write_text(page.render(rows, title), encoding="utf-8")
    written = path.read_text(encoding="utf-8")
    result = browser(program, folder, path.as_uri(), "--dump-dom")
    checks.that(result.returncode == 0 and f"<h1>{title}</h1>" in result.stdout, f"{title}: {result.stderr[-500:]}")
    checks.that(not complaints(result), f"{title}: {complaints(result)}")
    checks.that(result.stdout.count('<svg class="plot"') == written.count('<svg class="plot"'), f"{title}: plots lost")
    checks.that(result.stdout.count('class="mark"') == written.count('class="mark"'), f"{title}: marks lost")
    result = browser(program, folder, path.as_uri(), f"--screenshot={folder}/page.png")
    picture = pixels(folder / "page.png")
    checks.that(picture.shape[:2] == (HEIGHT, WIDTH), f"{title}: {picture.shape}")
    colors, counts = np.unique(picture[:, :, :3].reshape(-1, 3), axis=0, return_counts=True)
    checks.that(len(colors) > 20 and counts.max() < 0.995 * counts.sum(), f"{title}: {len(colors)} colours, blank?")


def test():
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        print("skipped: no Chromium")
        return SKIPPED
    checks = Checks()
    rows = records.load(ROOT / "jobs/results/scaling-host.json")
    with Folder() as folder:
        (folder / "bad.html").write_text("<!DOCTYPE html><title>x</title><script>console.error('seen')</script>")
        result = browser(program, folder, (folder / "bad.html").as_uri(), "--dump-dom")
        checks.that(any(re.search("seen", line) for line in complaints(result)), "the browser's console is not heard")
        shown(checks, program, folder, rows, "Every case")
        shown(checks, program, folder, [row for row in rows if row["ranks"] == 1][:1], "One case")
        shown(checks, program, folder, records.load(ROOT / "jobs/results/scaling-1gpu.json"), "One rank")
        checks.that("On one rank" in (folder / "page.html").read_text(), "no table of cases on one rank")
        shown(checks, program, folder, [dict(row, status="failed", message="<told>") for row in rows], "Failures")
    return checks.finish(least=15)


main(test)
