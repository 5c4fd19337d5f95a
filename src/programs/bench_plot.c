#include "programs/bench_plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "io/output.h"

/* The picture in pixels, and the frame of the axes in it. */
static const double WIDTH = 960, HEIGHT = 600, LEFT = 80, RIGHT = 800, TOP = 60, BOTTOM = 530;

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"};
enum { COLOURS = sizeof colours / sizeof *colours };

/* A logarithmic axis from low to high, at pixels from … to. */
typedef struct axis {
  double low, high, from, to;
} axis;

static double place(const axis *a, double value) {
  return a->from + (a->to - a->from) * log10(value / a->low) / log10(a->high / a->low);
}

static bool is_point(const bench_case *c) { return c->chosen >= 0 && bench_baseline(c) && bench_density(c) > 0; }

static double speedup(const bench_case *c) { return bench_baseline(c)->seconds / c->rows[c->chosen].seconds; }

/* Widens the axis to whole decades around value. */
static void include(axis *a, double value) {
  a->low = fmin(a->low, pow(10, floor(log10(value))));
  a->high = fmax(a->high, pow(10, ceil(log10(value))));
}

/* The labelled values of a decade of y. */
static const double steps[] = {1, 1.5, 2, 3, 5, 7, 10};
enum { STEPS = 6 };

/* The labelled value next to value, at or below it, or at or above it. */
static double step_beside(double value, bool above) {
  const double decade = pow(10, floor(log10(value)));
  int i = 0;
  while (i < STEPS && steps[i + 1] * decade <= value) i++;
  return decade * steps[above && steps[i] * decade < value ? i + 1 : i];
}

static void fit_axes(const bench_record *record, axis *x, axis *y) {
  *x = (axis){INFINITY, 0, LEFT, RIGHT};
  *y = (axis){0.7, 2, BOTTOM, TOP};
  for (int i = 0; i < record->n_cases; i++) {
    const bench_case *c = &record->cases[i];
    if (!is_point(c)) continue;
    include(x, bench_density(c));
    y->low = fmin(y->low, step_beside(speedup(c), false));
    y->high = fmax(y->high, step_beside(speedup(c), true));
  }
  if (!isfinite(x->low)) *x = (axis){1e-4, 1, LEFT, RIGHT};
  if (!(x->low < x->high)) x->low /= 10;
}

static void draw_text(FILE *out, double x, double y, const char *anchor, const char *text) {
  fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, text);
}

static void draw_line(FILE *out, double x1, double y1, double x2, double y2, const char *class) {
  fprintf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2);
}

/* Gridlines at the labelled values of y and at whole decades of x. */
static void draw_grid(FILE *out, const axis *x, const axis *y) {
  char label[32];
  for (double value = x->low; value < 1.01 * x->high; value *= 10) {
    draw_line(out, place(x, value), TOP, place(x, value), BOTTOM, "grid");
    snprintf(label, sizeof label, "%.3g %%", 100 * value);
    draw_text(out, place(x, value), BOTTOM + 20, "middle", label);
  }
  for (int decade = (int)floor(log10(y->low)); decade <= (int)ceil(log10(y->high)); decade++) {
    for (int i = 0; i < STEPS; i++) {
      const double value = steps[i] * pow(10, decade);
      if (value < 0.999 * y->low || value > 1.001 * y->high) continue;
      draw_line(out, LEFT, place(y, value), RIGHT, place(y, value), decade == 0 && i == 0 ? "one" : "grid");
      snprintf(label, sizeof label, "%g", value);
      draw_text(out, LEFT - 8, place(y, value) + 4, "end", label);
    }
  }
}

static void draw_labels(FILE *out, const bench_record *record) {
  const bool cusparse = record->n_cases > 0 && record->cases[0].best_cusparse >= 0;
  char title[128];
  snprintf(title, sizeof title, "Chosen kernel over %s, %d matrices", cusparse ? "the best of cuSPARSE" : "CSR",
           record->n_matrices);
  draw_text(out, (LEFT + RIGHT) / 2, TOP - 24, "middle", title);
  draw_text(out, (LEFT + RIGHT) / 2, BOTTOM + 48, "middle", "density of A");
  fprintf(out, "<text transform=\"translate(28 %.1f) rotate(-90)\" text-anchor=\"middle\">speed-up</text>\n",
          (TOP + BOTTOM) / 2);
  for (int i = 0; i < record->options->n_cols; i++) {
    char label[32];
    const double y = TOP + 20 + 24 * i;
    snprintf(label, sizeof label, "N = %" PRId64, record->options->cols[i]);
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\"/>\n", RIGHT + 24, y - 4, colours[i % COLOURS]);
    draw_text(out, RIGHT + 36, y, "start", label);
  }
}

/* A name inside an element. */
static void write_escaped(FILE *out, const char *text) {
  for (; *text; text++) {
    if (*text == '<') fputs("&lt;", out);
    else if (*text == '&') fputs("&amp;", out);
    else if ((unsigned char)*text >= ' ') fputc(*text, out);
  }
}

static void draw_points(FILE *out, const bench_record *record, const axis *x, const axis *y) {
  for (int i = 0; i < record->n_cases; i++) {
    const bench_case *c = &record->cases[i];
    int colour = 0;
    if (!is_point(c)) continue;
    while (record->options->cols[colour] != c->profile.n) colour++;
    fprintf(out, "<circle class=\"point\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"><title>",
            place(x, bench_density(c)), place(y, speedup(c)), colours[colour % COLOURS]);
    write_escaped(out, c->matrix);
    fprintf(out, ", N = %" PRId64 ": %s %d, %.2f</title></circle>\n", c->profile.n, c->rows[c->chosen].kernel->name,
            c->rows[c->chosen].kernel->unit, speedup(c));
  }
}

static void draw(FILE *out, const bench_record *record) {
  axis x, y;
  fit_axes(record, &x, &y);
  fprintf(out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n"
          "<style>text { font: 14px sans-serif; fill: #222 } .grid { stroke: #ddd } .one { stroke: #444; stroke-width: "
          "1.5 } .frame { fill: none; stroke: #444 } .point { fill-opacity: 0.65 }</style>\n"
          "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
          WIDTH, HEIGHT, WIDTH, HEIGHT);
  draw_grid(out, &x, &y);
  fprintf(out, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", LEFT, TOP,
          RIGHT - LEFT, BOTTOM - TOP);
  draw_points(out, record, &x, &y);
  draw_labels(out, record);
  fputs("</svg>\n", out);
}

static asparse_status write_file(const bench_record *record, const char *path) {
  FILE *out = fopen(path, "w");
  if (out) draw(out, record);
  bool written = out && !ferror(out);
  if (out && fclose(out) != 0) written = false;
  return written ? ASPARSE_OK : ASPARSE_FAIL(ASPARSE_ERR_IO, "cannot write the plot to %s", record->options->plot);
}

asparse_status bench_write_plot(asparse_comm *comm, const bench_record *record) {
  asparse_output output = {.temporary = ""};
  PASS(asparse_output_begin(comm, record->options->plot, &output));
  return asparse_output_end(comm, &output, write_file(record, output.temporary));
}
