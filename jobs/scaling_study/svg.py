"""Plots as inline SVG: axes, lines with markers and ranges, stacked bars, scatter. Readable without colour."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 520, 330
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 34, 50
# Dark enough for text on white (4.5:1), told apart with any colour vision together with marker and dash.
COLORS = ["#0b5394", "#b8400e", "#1b6e45", "#7b3294", "#7a5a00", "#00656e", "#a8154f", "#3d3d3d"]
MARKERS = ["circle", "square", "triangle", "diamond", "down", "plus"]
DASHES = ["", "7 3", "2 3", "9 3 2 3"]
INK, GRID, GUIDE = "#1f2328", "#e3e6ea", "#5b6470"


def number(value):
    """Coordinates to a tenth of a pixel."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def short(value):
    """A number for an axis or a label."""
    if value == 0:
        return "0"
    if value >= 1e5 or value < 1e-3:
        mantissa, exponent = f"{value:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def text(x, y, words, anchor="middle", size=12, extra="", color=INK):
    return (f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" font-size="{size}" fill="{color}" {extra}>'
            f"{escape(words)}</text>")


def line(x1, y1, x2, y2, color=GRID, width=1, dash=""):
    return (f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" stroke="{color}" '
            f'stroke-width="{width}"' + (f' stroke-dasharray="{dash}"' if dash else "") + "/>")


def marker(shape, x, y, color, hollow=False, size=4.5):
    fill = "#ffffff" if hollow else color
    style = f'class="mark" fill="{fill}" stroke="{color}" stroke-width="1.6"'
    if shape == "circle":
        return f'<circle cx="{number(x)}" cy="{number(y)}" r="{size}" {style}/>'
    corners = {"square": ((-1, -1), (1, -1), (1, 1), (-1, 1)), "triangle": ((0, -1.2), (1.15, 0.9), (-1.15, 0.9)),
               "diamond": ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
               "down": ((0, 1.2), (1.15, -0.9), (-1.15, -0.9)),
               "plus": ((-0.4, -1.3), (0.4, -1.3), (0.4, -0.4), (1.3, -0.4), (1.3, 0.4), (0.4, 0.4), (0.4, 1.3),
                        (-0.4, 1.3), (-0.4, 0.4), (-1.3, 0.4), (-1.3, -0.4), (-0.4, -0.4))}[shape]
    points = " ".join(f"{number(x + size * dx)},{number(y + size * dy)}" for dx, dy in corners)
    return f'<polygon points="{points}" {style}/>'


GUIDE_SWATCH = ('<svg class="swatch" width="44" height="14" viewBox="0 0 44 14" aria-hidden="true">'
                f'{line(2, 7, 42, 7, GUIDE, 1.4, "5 4")}</svg>')


class Style:
    """How the i-th series looks."""

    def __init__(self, i):
        self.i = i
        self.color = COLORS[i % len(COLORS)]
        self.marker = MARKERS[i % len(MARKERS)]
        self.dash = DASHES[(i // 2) % len(DASHES)]
        self.letter = chr(ord("A") + i) if i < 26 else str(i + 1)

    def aside(self, count):
        """Pixels to the right of the i-th of so many series."""
        return (self.i - (count - 1) / 2) * min(4, 24 / count)

    def swatch(self):
        return (f'<svg class="swatch" width="44" height="14" viewBox="0 0 44 14" aria-hidden="true">'
                f"{line(2, 7, 42, 7, self.color, 2, self.dash)}{marker(self.marker, 22, 7, self.color)}</svg>")

    def point(self):
        """The marker alone."""
        return (f'<svg class="swatch" width="16" height="14" viewBox="0 0 16 14" aria-hidden="true">'
                f"{marker(self.marker, 8, 7, self.color)}</svg>")


class Axis:
    """Data to pixels: linear, or logarithmic with given ticks."""

    def __init__(self, low, high, start, end, log=False, ticks=None):
        if log and not low > 0:
            raise ValueError("a logarithmic axis needs positive values")
        if high <= low:
            low, high = (low / 1.5, high * 1.5) if log else (low - 0.5, high + 0.5)
        self.low, self.high, self.start, self.end, self.log = low, high, start, end, log
        self.ticks = [tick for tick in (ticks or self.own_ticks()) if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]

    def __call__(self, value):
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, self.low * 1e-6))
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def own_ticks(self):
        if self.log:
            decades = math.log10(self.high / self.low)
            steps = (1, 2, 5) if decades < 2.5 else (1,)
            stride = max(1, math.ceil(decades / 8))
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1, stride)
            return [step * 10.0**power for power in powers for step in steps]
        raw = (self.high - self.low) / 5
        power = 10 ** math.floor(math.log10(raw))
        step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def thinned(ticks, axis, least):
    """Those that are at least so many pixels apart."""
    kept = []
    for tick in ticks:
        if not kept or abs(axis(tick) - axis(kept[-1])) >= least:
            kept.append(tick)
    return kept


class Plot:
    """A frame with titled axes; grid and marks gather in .body."""

    def __init__(self, name, title, description, x_label, y_label):
        self.name, self.title, self.description = name, title, description
        self.x_label, self.y_label = x_label, y_label
        self.body, self.x, self.y = [], None, None

    def axes(self, x, y, y_format=short, x_names=None):
        """x = (low, high, log, ticks) or None with x_names: places 0 … n - 1; y = (low, high, log, ticks)."""
        self.y = Axis(y[0], y[1], HEIGHT - BOTTOM, TOP, y[2], y[3])
        for tick in thinned(self.y.ticks, self.y, 18):
            at = self.y(tick)
            self.body.append(line(LEFT, at, WIDTH - RIGHT, at))
            self.body.append(text(LEFT - 7, at + 4, y_format(tick), "end", 11))
        if x_names is not None:
            self.x = Axis(-0.5, len(x_names) - 0.5, LEFT, WIDTH - RIGHT)
            places = list(enumerate(x_names))
        else:
            self.x = Axis(x[0], x[1], LEFT + 14, WIDTH - RIGHT - 14, x[2], x[3])
            places = [(tick, short(tick)) for tick in thinned(self.x.ticks, self.x, 26)]
        for place, name in places:
            at = self.x(place)
            if x_names is None:
                self.body.append(line(at, TOP, at, HEIGHT - BOTTOM))
            self.body.append(text(at, HEIGHT - BOTTOM + (26 if x_names else 17), name, size=11))
        self.body.append(line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, INK))
        self.body.append(line(LEFT, TOP, LEFT, HEIGHT - BOTTOM, INK))

    def guide(self, points):
        """A dashed line of what would be ideal; the legend names it."""
        pixels = [(self.x(x), self.y(y)) for x, y in points]
        for (x1, y1), (x2, y2) in zip(pixels, pixels[1:]):
            self.body.append(line(x1, y1, x2, y2, GUIDE, 1.4, "5 4"))

    def series(self, points, style, hollow=(), aside=0):
        """points: (x, y, low, high) with low … high the range of repeats, open where the frame cuts it; hollow: those
        drawn hollow; aside: pixels to the right, so that equal series stand beside each other."""
        path = " ".join(f"{number(self.x(x) + aside)},{number(self.y(y))}" for x, y, _, _ in points)
        dash = f' stroke-dasharray="{style.dash}"' if style.dash else ""
        self.body.append(f'<polyline points="{path}" fill="none" stroke="{style.color}" stroke-width="2"{dash}/>')
        for i, (x, y, low, high) in enumerate(points):
            at = self.x(x) + aside
            if low is not None and high > low:
                top, bottom = (min(max(self.y(v), TOP), HEIGHT - BOTTOM) for v in (high, low))
                ends = (end for end in (self.y(high), self.y(low)) if TOP <= end <= HEIGHT - BOTTOM)
                self.body.append(f'<g opacity="0.65">{line(at, top, at, bottom, style.color, 1.1)}' + "".join(
                    line(at - 3, end, at + 3, end, style.color, 1.1) for end in ends) + "</g>")
            self.body.append(marker(style.marker, at, self.y(y), style.color, i in hollow))

    def scatter(self, point, style, hollow):
        self.body.append(marker(style.marker, self.x(point[0]), self.y(point[1]), style.color, hollow, 4))

    def bar(self, place, width, segments, label="", above=""):
        """A stack at a place of an axis of names: segments (value, colour); label under, above over it."""
        left, right = self.x(place - width / 2), self.x(place + width / 2)
        base = 0.0
        for value, color in segments:
            if value > 0:
                top, bottom = self.y(base + value), self.y(base)
                self.body.append(f'<rect class="mark" x="{number(left)}" y="{number(top)}" '
                                 f'width="{number(right - left)}" height="{number(bottom - top)}" fill="{color}" '
                                 'stroke="#ffffff" stroke-width="0.8"/>')
                base += value
        middle = (left + right) / 2
        if label:
            self.body.append(text(middle, HEIGHT - BOTTOM + 12, label, size=10))
        if above:
            level = self.y(base) - 4
            if right - left > 6 * len(above):
                self.body.append(text(middle, level, above, size=10))
            else:
                turn = f'transform="rotate(-60 {number(middle + 3)} {number(level)})"'
                self.body.append(text(middle + 3, level, above, "start", 10, turn))

    def render(self):
        middle, height = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
        title, description = f"{self.name}-t", f"{self.name}-d"
        return "".join([
            f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{title} {description}">',
            f'<title id="{title}">{escape(self.title)}</title>',
            f'<desc id="{description}">{escape(self.description)}</desc>',
            text(LEFT, 18, self.title, "start", 13, 'font-weight="600"'), *self.body,
            text(middle, HEIGHT - 7, self.x_label),
            text(15, height, self.y_label, extra=f'transform="rotate(-90 15 {number(height)})"'), "</svg>"])
