/* Descriptions in words: reading, writing, listing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generate/kind.h"

static const asparse_generator_kind *const kinds[] = {
    &generator_grid2d, &generator_grid3d, &generator_fem2d,   &generator_fem3d,
    &generator_banded, &generator_rmat,   &generator_uniform, &generator_blocks,
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static const char *const value_names[] = {
    [ASPARSE_VALUES_RANDOM] = "random", [ASPARSE_VALUES_ONE] = "one", [ASPARSE_VALUES_SPD] = "spd"};
enum { N_VALUES = sizeof value_names / sizeof value_names[0] };

/* Appends "separator + name" to a text of `size` bytes. */
static void append(char *text, size_t size, const char *separator, const char *name) {
  size_t used = strlen(text);
  snprintf(text + used, size - used, "%s%s", used ? separator : "", name);
}

static asparse_status find_kind(const char *name, const asparse_generator_kind **kind) {
  char names[128] = "";
  for (int i = 0; i < N_KINDS; i++) {
    *kind = kinds[i];
    if (strcmp(name, kinds[i]->name) == 0) return ASPARSE_OK;
    append(names, sizeof names, ", ", kinds[i]->name);
  }
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "there is no kind of matrix '%s'; there are %s", name, names);
}

static double get(const asparse_generator *g, const generator_parameter *p) {
  const char *field = (const char *)g + p->offset;
  return p->number == GENERATOR_REAL ? *(const double *)field : (double)*(const int64_t *)field;
}

static void set(asparse_generator *g, const generator_parameter *p, double value) {
  char *field = (char *)g + p->offset;
  if (p->number == GENERATOR_REAL) *(double *)field = value;
  else *(int64_t *)field = (int64_t)value;
}

/* A number as short as it can be and still read back the same. */
static const char *number_text(double value, char text[32]) {
  snprintf(text, 32, "%.15g", value);
  if (strtod(text, NULL) != value) snprintf(text, 32, "%.17g", value);
  return text;
}

static bool is_allowed(const generator_parameter *p, double value) {
  if (p->number == GENERATOR_EITHER) return value == p->low || value == p->high;
  if (p->number == GENERATOR_WHOLE && value != floor(value)) return false;
  return value >= p->low && value <= p->high;
}

/* What a parameter takes, in words. */
static const char *range_text(const generator_parameter *p, char text[96]) {
  static const char *const formats[] = {[GENERATOR_REAL] = "a number from %s to %s",
                                        [GENERATOR_WHOLE] = "a whole number from %s to %s",
                                        [GENERATOR_EITHER] = "%s or %s"};
  char low[32], high[32];
  snprintf(text, 96, formats[p->number], number_text(p->low, low), number_text(p->high, high));
  return text;
}

static asparse_status read_number(asparse_generator *g, const generator_parameter *p, const char *text) {
  char *end = NULL, range[96];
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || !is_allowed(p, value))
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s: %s takes %s, not '%s'", g->kind->name, p->name, range_text(p, range),
                        text);
  set(g, p, value);
  return ASPARSE_OK;
}

static asparse_status read_values(asparse_generator *g, const char *text) {
  char names[64] = "";
  for (int i = 0; i < N_VALUES; i++) {
    if (i == ASPARSE_VALUES_SPD && !g->kind->spd_values) continue;
    append(names, sizeof names, ", ", value_names[i]);
    if (strcmp(text, value_names[i]) != 0) continue;
    g->values = (asparse_generator_values)i;
    return ASPARSE_OK;
  }
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s: values takes one of %s, not '%s'", g->kind->name, names, text);
}

static int parameter_index(const asparse_generator_kind *kind, const char *name) {
  for (int i = 0; kind->parameters[i].name; i++) {
    if (strcmp(name, kind->parameters[i].name) == 0) return i;
  }
  return -1;
}

static asparse_status unknown_parameter(const asparse_generator_kind *kind, const char *item) {
  char names[128] = "";
  for (int i = 0; kind->parameters[i].name; i++) append(names, sizeof names, ", ", kind->parameters[i].name);
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s has no parameter for '%s'; it takes %s, values", kind->name, item, names);
}

/* Reads "name=value" or the value of parameter *next; bit i of *given: parameter i has been read. */
static asparse_status read_item(asparse_generator *g, char *item, int *next, unsigned *given) {
  char *equals = strchr(item, '=');
  if (equals) *equals = '\0';
  if (equals && strcmp(item, "values") == 0) return read_values(g, equals + 1);
  int i = equals ? parameter_index(g->kind, item) : (*next)++;
  if (i < 0 || !g->kind->parameters[i].name) return unknown_parameter(g->kind, item);
  if (*given & 1u << i)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s: %s is given twice", g->kind->name, g->kind->parameters[i].name);
  *given |= 1u << i;
  return read_number(g, &g->kind->parameters[i], equals ? equals + 1 : item);
}

/* Those that were not given. */
static void set_defaults(asparse_generator *g, unsigned given) {
  const generator_parameter *p = g->kind->parameters;
  for (int i = 0; p[i].name; i++) {
    if (given & 1u << i || !p[i].otherwise) continue;
    int other = parameter_index(g->kind, p[i].otherwise);
    set(g, &p[i], other >= 0 ? get(g, &p[other]) : strtod(p[i].otherwise, NULL));
  }
}

asparse_status asparse_generator_parse(const char *text, uint64_t seed, asparse_dtype dtype, asparse_generator *g) {
  char copy[2 * ASPARSE_GENERATOR_TEXT];
  unsigned given = 0;
  int next = 0;
  if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "the description of the matrix is longer than %zu letters", sizeof copy - 1);
  char *items = copy, *kind = strsep(&items, ":");
  *g = (asparse_generator){.seed = seed, .dtype = dtype};
  PASS(find_kind(kind, &g->kind));
  g->values = g->kind->spd_values ? ASPARSE_VALUES_SPD : ASPARSE_VALUES_RANDOM;
  while (items) PASS(read_item(g, strsep(&items, ","), &next, &given));
  set_defaults(g, given);
  return g->kind->prepare(g);
}

asparse_status generator_set_size(asparse_generator *g, double m, double k, double entries) {
  const double most_entries = (double)((int64_t)1 << 48);
  if (m > GENERATOR_MOST_ROWS || k > GENERATOR_MOST_ROWS)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s: %.4g × %.4g is too large; at most %.0f rows and columns", g->kind->name,
                        m, k, GENERATOR_MOST_ROWS);
  if (entries > most_entries)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s: %.4g entries are too many; at most %.0f", g->kind->name, entries,
                        most_entries);
  g->m = (int64_t)m;
  g->k = (int64_t)k;
  g->expected_entries = (int64_t)entries;
  return ASPARSE_OK;
}

void asparse_generator_text(const asparse_generator *g, char text[ASPARSE_GENERATOR_TEXT]) {
  const generator_parameter *p = g->kind->parameters;
  char number[32];
  snprintf(text, ASPARSE_GENERATOR_TEXT, "%s:", g->kind->name);
  for (; p->name; p++) {
    double value = get(g, p);
    if (!p->otherwise && value == 0) continue;
    size_t used = strlen(text);
    snprintf(text + used, ASPARSE_GENERATOR_TEXT - used, "%s=%s,", p->name, number_text(value, number));
  }
  size_t used = strlen(text);
  snprintf(text + used, ASPARSE_GENERATOR_TEXT - used, "values=%s", value_names[g->values]);
}

void asparse_generator_list(FILE *file) {
  for (int i = 0; i < N_KINDS; i++) {
    char range[96];
    fprintf(file, "%s%s: %s\n", i ? "\n" : "", kinds[i]->name, kinds[i]->meaning);
    for (const generator_parameter *p = kinds[i]->parameters; p->name; p++)
      fprintf(file, "  %-8s %s: %s (default %s)\n", p->name, p->meaning, range_text(p, range),
              p->otherwise ? p->otherwise : "none");
    fprintf(file, "  %-8s of the entries: %s\n", "values",
            kinds[i]->spd_values ? "spd (symmetric positive definite), random (in [-1, 1)), one (default spd)"
                                 : "random (in [-1, 1)), one (default random)");
  }
}
