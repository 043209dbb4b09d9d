#!/usr/bin/env python3
"""Looks at a report in a real browser: light and dark, on a screen and on a phone (skipped without Chromium).

usage: report_screenshot.py BITCONV
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if browser is None:
    print("skipped: no Chromium here")
    sys.exit(77)
source = os.environ["BITCONV_SOURCE_DIR"]


def predict(filter_type, left, up, corner):
    """The predictors of PNG's five filters."""
    if filter_type < 4:
        return (0, left, up, (left + up) // 2)[filter_type]
    guess = left + up - corner
    distance = [abs(guess - v) for v in (left, up, corner)]
    return (left, up, corner)[distance.index(min(distance))]


def pixels(path):
    """An 8-bit RGB(A) PNG as rows of (r, g, b)."""
    data = open(path, "rb").read()
    at, packed, width, height, channels = 8, b"", 0, 0, 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        chunk = data[at + 8 : at + 8 + size]
        at += 12 + size
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", chunk[:10])
            assert depth == 8 and color in (2, 6), (depth, color)
            channels = 3 if color == 2 else 4
        elif kind == b"IDAT":
            packed += chunk
    raw, stride, rows, last = zlib.decompress(packed), width * channels, [], None
    for y in range(height):
        filter_type, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        above = last or bytes(stride)
        for x in range(stride if filter_type else 0):
            left = line[x - channels] if x >= channels else 0
            corner = above[x - channels] if x >= channels else 0
            line[x] = (line[x] + predict(filter_type, left, above[x], corner)) & 255
        rows.append([tuple(line[i : i + 3]) for i in range(0, stride, channels)])
        last = line
    return rows


def chromium(*arguments):
    common = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={scratch}/profile"]
    return subprocess.run([browser, *common, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, text=True).stdout


def shot(name, width, *arguments):
    path = f"{scratch}/{name}.png"
    chromium(f"--window-size={width},700", f"--screenshot={path}", *arguments, f"file://{scratch}/page.html")
    return pixels(path)


def brightness(pixel):
    return (299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2]) / 1000


def share(rows, test):
    return sum(test(p) for row in rows for p in row) / (len(rows) * len(rows[0]))


with tempfile.TemporaryDirectory() as scratch:
    run = [sys.argv[1], "convert", f"{source}/fixtures/models/bitnet", "--outtype", "i2_s", "-o", f"{scratch}/m.gguf"]
    subprocess.run([*run, "--report", f"{scratch}/page.html", "--quiet"], check=True)

    light = shot("light", 900)
    assert brightness(light[2][2]) > 240, light[2][2]
    dark = shot("dark", 900, "--force-dark-mode")
    assert brightness(dark[2][2]) < 40, dark[2][2]
    # Text and charts are there: ink against the ground, and the blue of the heat map in several strengths.
    assert share(light, lambda p: brightness(p) < 100) > 0.005
    assert share(dark, lambda p: brightness(p) > 180) > 0.005
    blues = {p for row in light for p in row if p[2] > p[0] + 40}
    assert len(blues) > 4, len(blues)

    # On a phone nothing is wider than the screen (a frame of 360 pixels tells the width of its content), and no
    # text of a chart is smaller than 9 pixels.
    with open(f"{scratch}/frame.html", "w", encoding="utf-8") as f:
        f.write("""<iframe id=f src=page.html width=360 height=800 style="border:0"></iframe><p id=p></p><script>
            f.onload = () => { const d = f.contentDocument; p.textContent = 'width ' + d.documentElement.scrollWidth + ' text '
            + Math.min(...[...d.querySelectorAll('svg text')].map(t => 12 * t.getScreenCTM().a)) + '.' }</script>""")
    said = chromium("--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom", f"file://{scratch}/frame.html")
    width, text = re.search(r"width (\d+) text ([\d.]+)\.", said).groups()
    assert int(width) <= 360, width
    # (of a slanted head that number is the cosine of 45 degrees times its size)
    assert float(text) >= 9 * 0.7, text
    print(f"light, dark, phone: fine ({len(blues)} shades; 360 pixels hold {width})")
