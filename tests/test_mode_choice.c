/* Predicted times of exchanges by their formula, and the choices that follow. */
#include <math.h>

#include "plan/mode_choice.h"
#include "slabs.h"

static const asparse_host_rates rates = {1, 2e10, {4e10, 8e10, 5e10}};
static const asparse_volume_shape shape = {128, 8, 8};

/* 2^16 rows of 16 entries that share nothing. */
static asparse_profile whole_profile(void) {
  asparse_profile p = {.m = 1 << 16, .k = 1 << 16, .n = 128, .nnz = 1 << 20, .dtype = ASPARSE_FP64, .longest_row = 16};
  p.c_dtype = ASPARSE_FP64;
  for (int i = 0; i < 4; i++)
    p.windows[i] = (asparse_window_counts){.columns = p.nnz, .padded = p.nnz, .widest = 16 << (3 + i)};
  for (int i = 0; i < 3; i++) p.blocks[i] = p.nnz;
  return p;
}

/* `parts` equal parts that each receive `received` rows from every other, or with covers `cover`. own: the fraction of
 * entries in own columns. */
static asparse_volumes equal_parts(int parts, int64_t received, int64_t cover, double own, asparse_part_volume *part) {
  const asparse_profile p = whole_profile();
  for (int q = 0; q < parts; q++) {
    const int others = parts - 1;
    part[q] = (asparse_part_volume){.rows = p.m / parts,
                                    .b_rows = p.k / parts,
                                    .nnz = p.nnz / parts,
                                    .own_nnz = (int64_t)(own * (double)(p.nnz / parts)),
                                    .received = received * others,
                                    .sent = received * others,
                                    .sources = received > 0 ? others : 0,
                                    .destinations = received > 0 ? others : 0,
                                    .cover_received = cover * others,
                                    .cover_sent = cover * others,
                                    .all_sources = others,
                                    .all_destinations = others};
  }
  return (asparse_volumes){
      .parts = parts, .m = p.m, .k = p.k, .nnz = p.nnz, .cover_is_exact = true, .imbalance = 1, .part = part};
}

typedef struct choice {
  asparse_part_volume one[1], four[4], sixteen[16];
  asparse_volumes volumes[3];
  asparse_mode_candidate candidates[5]; /* of 16 ranks */
  asparse_exchange_mode best;
} choice;

static void choose(choice *c, int64_t received, int64_t cover, double own, asparse_link link, bool row_operands) {
  const asparse_profile whole = whole_profile();
  const asparse_mode_compute compute = {&whole, &rates};
  c->volumes[0] = equal_parts(1, 0, 0, 1, c->one);
  c->volumes[1] = equal_parts(4, received, cover, own, c->four);
  c->volumes[2] = equal_parts(16, received, cover, own, c->sixteen);
  const asparse_mode_candidate all[5] = {{.mode = ASPARSE_EXCHANGE_REPLICATE, .volumes = &c->volumes[2], .pn = 1},
                                         {.mode = ASPARSE_EXCHANGE_ROWS, .volumes = &c->volumes[2], .pn = 1},
                                         {.mode = ASPARSE_EXCHANGE_COLUMNS, .volumes = &c->volumes[0], .pn = 16},
                                         {.mode = ASPARSE_EXCHANGE_GRID, .volumes = &c->volumes[1], .pn = 4},
                                         {.mode = ASPARSE_EXCHANGE_COVER, .volumes = &c->volumes[2], .pn = 1}};
  memcpy(c->candidates, all, sizeof all);
  c->best = c->candidates[asparse_mode_choose(c->candidates, 5, &compute, &link, &shape, row_operands)].mode;
}

/* Seconds of part i's entries in own columns, or the rest of them. */
static double half_of(const asparse_volumes *volumes, int i, bool own, int64_t columns) {
  const asparse_profile whole = whole_profile();
  const asparse_mode_compute compute = {&whole, &rates};
  return asparse_mode_half_seconds(volumes, &compute, i, own, columns);
}

static double half(const asparse_volumes *volumes, bool own, int64_t columns) {
  return half_of(volumes, 0, own, columns);
}

static void assert_near(double found, double wanted) { assert_true(fabs(found - wanted) <= 1e-9 * fabs(wanted)); }

static void times_follow_the_formula(void **unused) {
  (void)unused;
  int in_chunks[2] = {0, 0};
  for (double rate = 1e7; rate < 1e13; rate *= 3) { /* hidden behind own columns, or not */
    const asparse_link link = {3e-6, rate, false};
    choice c;
    choose(&c, 100, 60, 0.75, link, true);
    const double own = half(&c.volumes[2], true, 128), rest = half(&c.volumes[2], false, 128);
    const double halves = 2 * half(&c.volumes[2], false, 64);
    const double quarter_own = half(&c.volumes[1], true, 32), quarter_rest = half(&c.volumes[1], false, 32);
    const double block = half(&c.volumes[0], true, 8);
    const double rows = 15 * 3e-6 + 1500 * 128 * 8 / rate, rows_in_two = rows + 15 * 3e-6;
    const double grid = 3 * 3e-6 + 300 * 32 * 8 / rate;
    const double cover = 15 * 3e-6 + 900 * 128 * 8 / rate, all = 15 * 3e-6 + 15. * 4096 * 128 * 8 / rate;
    /* B: rows of the others' slices in own columns; C: own slice in the others' columns; 15 messages for each. */
    const double columns = 30 * 3e-6 + 2 * 15. * 4096 * 8 * 8 / rate;
    const double grid_layout = 6 * 3e-6 + 2 * 3. * 4096 * 32 * 8 / rate;
    const double at_once = fmax(own, rows) + rest;
    const double first = fmax(own, rows_in_two / 2) + halves / 2;
    const double in_two = fmax(first, rows_in_two) + halves / 2;
    const int chunks = in_two < 0.98 * at_once ? 2 : 1;
    in_chunks[chunks - 1]++;
    assert_int_equal(c.candidates[1].chunks, chunks);
    assert_near(c.candidates[1].exchange_seconds, chunks == 2 ? rows_in_two : rows);
    assert_near(c.candidates[1].compute_seconds, own + (chunks == 2 ? halves : rest));
    assert_near(c.candidates[1].predicted_seconds, chunks == 2 ? in_two : at_once);
    assert_true(c.candidates[0].predicted_seconds <= (fmax(own, all) + rest) * (1 + 1e-9));
    assert_near(c.candidates[2].layout_seconds, columns);
    assert_near(c.candidates[2].exchange_seconds, 0);
    assert_near(c.candidates[2].predicted_seconds, columns + block);
    assert_near(c.candidates[3].layout_seconds, grid_layout);
    assert_near(c.candidates[3].predicted_seconds, grid_layout + fmax(quarter_own, grid) + quarter_rest);
    assert_near(c.candidates[4].predicted_seconds, fmax(own, cover) + rest);
  }
  assert_true(in_chunks[0] > 0 && in_chunks[1] > 0);
}

static void pipeline(void **unused) {
  (void)unused;
  for (int chunks = 1; chunks <= 4; chunks++) {
    assert_near(asparse_mode_pipeline_seconds(8, 0, 4, chunks, false), 12);
    assert_near(asparse_mode_pipeline_seconds(8, 8. / chunks, 4, chunks, false), 12);      /* all hidden */
    assert_near(asparse_mode_pipeline_seconds(1, 20, 4, chunks, false), 20 + 4. / chunks); /* the last chunk is not */
    assert_near(asparse_mode_pipeline_seconds(0, 4, 20, chunks, false), 20 + 4. / chunks); /* but for the first */
    assert_near(asparse_mode_pipeline_seconds(8, 5, 4, chunks, true), 17);
  }
}

/* The slowest rank decides, and of its two directions the busier one. */
static void slowest_rank_decides(void **unused) {
  (void)unused;
  const asparse_profile whole = whole_profile();
  const asparse_mode_compute compute = {&whole, &rates};
  const asparse_link link = {0, 1e9, false};
  asparse_part_volume part[4];
  asparse_volumes volumes = equal_parts(4, 0, 0, 0, part);
  part[2].sent = 50000;
  part[1].received = 20000;
  part[3].nnz *= 2;
  asparse_mode_candidate rows = {.mode = ASPARSE_EXCHANGE_ROWS, .volumes = &volumes, .pn = 1, .wanted_chunks = 1};
  assert_int_equal(asparse_mode_choose(&rows, 1, &compute, &link, &shape, true), 0);
  assert_near(rows.exchange_seconds, 50000 * 128 * 8 / 1e9);
  double most = 0;
  for (int i = 0; i < 4; i++) most = fmax(most, half_of(&volumes, i, true, 128) + half_of(&volumes, i, false, 128));
  assert_near(rows.compute_seconds, most);
  assert_near(rows.predicted_seconds, 50000 * 128 * 8 / 1e9 + half_of(&volumes, 2, false, 128));
  assert_true(half_of(&volumes, 3, false, 128) > 1.5 * half(&volumes, false, 128));
}

static void choices(void **unused) {
  (void)unused;
  const asparse_link slow = {1e-6, 1e9, false}, far = {1e-2, 1e12, false};
  choice c;
  choose(&c, 10, 10, 0.9, slow, true); /* a mesh: few rows, and covers save nothing */
  assert_int_equal(c.best, ASPARSE_EXCHANGE_ROWS);
  choose(&c, 3000, 300, 0.1, slow, true); /* power law: covers save much */
  assert_int_equal(c.best, ASPARSE_EXCHANGE_COVER);
  choose(&c, 4096, 4096, 0.06, slow, true); /* all of B is needed everywhere: a sixteenth of the columns is less */
  assert_int_equal(c.best, ASPARSE_EXCHANGE_COLUMNS);
  choose(&c, 10, 10, 0.9, far, false); /* messages cost more than anything: none where operands lie as planned */
  assert_int_equal(c.best, ASPARSE_EXCHANGE_COLUMNS);
  const asparse_profile whole = whole_profile();
  const asparse_mode_compute compute = {&whole, &rates};
  choose(&c, 3000, 2980, 0.1, slow, true); /* what covers save is not worth them */
  asparse_mode_candidate simpler[2] = {c.candidates[1], c.candidates[4]};
  simpler[0].wanted_chunks = 1;
  assert_int_equal(asparse_mode_choose(simpler, 2, &compute, &slow, &shape, true), 0);
  assert_true(simpler[1].predicted_seconds < simpler[0].predicted_seconds);
  choose(&c, 4096, 4096, 0.06, slow, true);
  assert_int_equal(asparse_mode_choose(c.candidates, 2, &compute, &slow, &shape, true), 0);
  assert_true(c.candidates[0].predicted_seconds == c.candidates[1].predicted_seconds);
}

static void gpu_model(void **unused) {
  (void)unused;
  asparse_profile whole = whole_profile();
  whole.dtype = ASPARSE_BF16;
  whole.c_dtype = ASPARSE_FP32;
  const asparse_mode_compute host = {&whole, &rates}, device = {&whole, NULL};
  asparse_part_volume part[4];
  const asparse_volumes volumes = equal_parts(4, 10, 10, 0.5, part);
  for (int own = 0; own < 2; own++) {
    const double seconds = asparse_mode_half_seconds(&volumes, &device, 0, own, 128);
    assert_true(seconds > 1e-6 && seconds < asparse_mode_half_seconds(&volumes, &host, 0, own, 128) / 10);
    assert_true(asparse_mode_half_seconds(&volumes, &device, 0, own, 0) == 0);
  }
  for (int kind = ASPARSE_LINK_SHARED_MEMORY; kind <= ASPARSE_LINK_INFINIBAND; kind++) {
    const asparse_link link = asparse_link_default((asparse_link_kind)kind);
    assert_true(link.latency_seconds > 1e-7 && link.latency_seconds < 1e-4);
    assert_true(link.bytes_per_second > 1e9 && link.bytes_per_second < 1e12);
  }
}

static int group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(times_follow_the_formula), cmocka_unit_test(pipeline),
                                     cmocka_unit_test(slowest_rank_decides), cmocka_unit_test(choices),
                                     cmocka_unit_test(gpu_model)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
