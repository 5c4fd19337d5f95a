/* The planner: what it decides, what it leaves alone, and the rates of links it remembers. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/engines.h"
#include "plan/link_cache.h"
#include "plan/planner.h"
#include "slabs.h"

static char folder[64], file[80];

/* A remembered link for exactly these ranks, or a damaged file. */
static void write_cache(const char *text) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (test_comm->rank == 0) {
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void crowded_rates(void **unused) {
  (void)unused;
  asparse_comm comm = {.cores = 64};
  asparse_host_rates alone, crowded;
  assert_int_equal(asparse_engines_host_rates(&comm, &alone), ASPARSE_OK);
  comm.cores = 0.25 * alone.threads;
  assert_int_equal(asparse_engines_host_rates(&comm, &crowded), ASPARSE_OK);
  assert_true(crowded.bytes_per_second == 0.25 * alone.bytes_per_second);
  for (int i = 0; i < 3; i++) assert_true(crowded.flops_per_second[i] == 0.25 * alone.flops_per_second[i]);
}

/* The key of the file's first line. */
static void read_key(char key[256]) {
  char line[512] = "";
  int begin = 0;
  FILE *f = fopen(file, "r");
  assert_non_null(f);
  assert_non_null(fgets(line, sizeof line, f));
  fclose(f);
  sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %n", &begin);
  line[strcspn(line, "\n")] = '\0';
  snprintf(key, 256, "%s", line + begin);
}

static void plan_with(const asparse_csr *slab, const asparse_options *options, int64_t n, asparse_planning *planning) {
  const int64_t blocks = asparse_memory_live_blocks();
  assert_int_equal(asparse_planner_plan(test_comm, slab, options, n, planning), ASPARSE_OK);
  assert_int_equal(asparse_memory_live_blocks(), blocks);
}

static bool has(const asparse_planning *planning, asparse_exchange_mode mode) {
  for (int i = 0; i < planning->n_ways; i++) {
    if (planning->ways[i].exchange == mode) return true;
  }
  return false;
}

static void same_everywhere(const asparse_planning *planning) {
  int64_t mine[2] = {planning->n_ways, planning->best}, least[2] = {mine[0], mine[1]}, most[2] = {mine[0], mine[1]};
  asparse_comm_min(test_comm, least, 2);
  asparse_comm_max(test_comm, most, 2);
  assert_memory_equal(least, most, sizeof least);
}

/* All ways of these ranks, the fastest of them best. */
static void ways(void **unused) {
  (void)unused;
  uint64_t state = 1;
  asparse_csr *whole = test_whole(&state, 300, 300, 5, -1), *slab = test_slab(whole, test_comm, &state);
  asparse_options options = asparse_options_default();
  asparse_planning planning;
  plan_with(slab, &options, 64, &planning);
  same_everywhere(&planning);
  const int size = test_comm->size;
  assert_int_equal(planning.n_ways, size == 1 ? 0 : size == 4 ? 5 : 4);
  for (int i = 0; i < planning.n_ways; i++) {
    const asparse_planned_way *way = &planning.ways[i];
    assert_int_equal(way->grid_rows * way->grid_columns, size);
    assert_true(way->predicted_seconds > 0 && way->bytes_max >= 0);
    assert_true(planning.ways[planning.best].predicted_seconds <= 1.03 * way->predicted_seconds);
  }
  assert_true(size == 1 || (has(&planning, ASPARSE_EXCHANGE_ROWS) && has(&planning, ASPARSE_EXCHANGE_COLUMNS)));
  options.reproducible = true;
  plan_with(slab, &options, 64, &planning);
  assert_true(size == 1 || !has(&planning, ASPARSE_EXCHANGE_COVER));
  plan_with(slab, &options, 1, &planning); /* one column cannot be split */
  assert_true(!has(&planning, ASPARSE_EXCHANGE_COLUMNS) && !has(&planning, ASPARSE_EXCHANGE_GRID));
  options = asparse_options_default();
  options.bf16_result = true; /* of fp64: the plan refuses */
  plan_with(slab, &options, 64, &planning);
  assert_int_equal(planning.n_ways, 0);
  assert_int_equal(asparse_csr_convert(slab, ASPARSE_BF16), ASPARSE_OK);
  plan_with(slab, &options, 64, &planning);
  assert_true(size == 1 || (planning.n_ways > 1 && !has(&planning, ASPARSE_EXCHANGE_COVER)));
  asparse_csr_destroy(&slab);
  asparse_csr_destroy(&whole);
}

/* What the caller decided is left alone. */
static void left_alone(void **unused) {
  (void)unused;
  uint64_t state = 2;
  asparse_csr *whole = test_whole(&state, 40, 40, 4, -1), *slab = test_slab(whole, test_comm, &state);
  asparse_options options[4];
  for (int i = 0; i < 4; i++) options[i] = asparse_options_default();
  options[0].exchange = ASPARSE_EXCHANGE_ROWS;
  options[1].grid_rows = test_comm->size;
  options[1].grid_columns = 1;
  options[2].exchange = ASPARSE_EXCHANGE_COVER;
  options[3].partition = ASPARSE_PARTITION_METIS;
  for (int i = 0; i < 4; i++) {
    asparse_planning planning;
    plan_with(slab, &options[i], 16, &planning);
    assert_int_equal(planning.n_ways, 0);
    const asparse_options placed = asparse_planned_options(&options[i], &planning);
    assert_true(placed.exchange == options[i].exchange && placed.grid_rows == options[i].grid_rows &&
                placed.grid_columns == options[i].grid_columns);
  }
  asparse_csr_destroy(&slab);
  asparse_csr_destroy(&whole);
}

/* A slow link makes ranks keep to themselves, where operands may lie as blocks; a fast one lets them exchange. */
static void link_decides(void **unused) {
  (void)unused;
  if (test_comm->size == 1) return;
  uint64_t state = 3;
  char key[256] = "", text[512];
  asparse_csr *whole = test_whole(&state, 400, 400, 3, -1), *slab = test_slab(whole, test_comm, &state);
  asparse_options options = asparse_options_default();
  asparse_planning planning;
  options.operands = ASPARSE_PLACEMENT_PLANNER;
  plan_with(slab, &options, 256, &planning); /* makes the file, if no test before did */
  if (test_comm->rank == 0) read_key(key);
  snprintf(text, sizeof text, "1e-3 1e6 1e6 1e10 1e10 1e10 1e10 %s\n", key);
  write_cache(text);
  plan_with(slab, &options, 256, &planning);
  assert_true(planning.link_remembered && planning.link.bytes_per_second == 1e6);
  assert_int_equal(planning.ways[planning.best].exchange, ASPARSE_EXCHANGE_COLUMNS);
  snprintf(text, sizeof text, "1e-12 1e18 1e18 1e10 1e10 1e10 1e10 %s\n", key);
  write_cache(text);
  plan_with(slab, &options, 256, &planning);
  for (int i = 0; i < planning.n_ways; i++)
    assert_true(planning.ways[planning.best].predicted_seconds <= 1.03 * planning.ways[i].predicted_seconds);
  for (int i = 0; i < planning.n_ways; i++)
    assert_true((planning.ways[i].bytes_max == 0) == (planning.ways[i].exchange == ASPARSE_EXCHANGE_COLUMNS));
  options.operands = ASPARSE_PLACEMENT_ROWS; /* to blocks of columns and back */
  plan_with(slab, &options, 256, &planning);
  for (int i = 0; i < planning.n_ways; i++) assert_true(planning.ways[i].bytes_max > 0);
  asparse_csr_destroy(&slab);
  asparse_csr_destroy(&whole);
}

/* Measured once, then remembered; damaged lines and other machines' are passed over, but kept. */
static void remembered(void **unused) {
  (void)unused;
  asparse_engine *engine = NULL;
  asparse_links measured, again;
  asparse_host_rates rates = {1, 1e10, {2e10, 3e10, 4e10}}, others = {1, 1, {1, 1, 1}};
  bool known = true;
  assert_int_equal(asparse_engine_open(ASPARSE_BACKEND_HOST, 0, &engine), ASPARSE_OK);
  write_cache("1 2 3 4 5 6 7 another machine\nnan 1 1 1 1 1 1 x\n1 2\n\n-1 5 5 5 5 5 5 y");
  assert_int_equal(asparse_link_cache_find(test_comm, engine, &measured, &known), ASPARSE_OK);
  assert_int_equal(known, test_comm->size == 1);
  assert_int_equal(asparse_link_cache_get(test_comm, engine, &measured, &rates, &known), ASPARSE_OK);
  assert_int_equal(asparse_link_cache_get(test_comm, engine, &again, &others, &known), ASPARSE_OK);
  assert_true(known);
  if (test_comm->size > 1) {
    assert_memory_equal(&again, &measured, sizeof again);
    assert_true(others.bytes_per_second == rates.bytes_per_second);
    assert_memory_equal(others.flops_per_second, rates.flops_per_second, sizeof rates.flops_per_second);
    char line[512], lines = 0, others = 0;
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    for (; fgets(line, sizeof line, f); lines++) others += strcmp(line, "1 2 3 4 5 6 7 another machine\n") == 0;
    fclose(f);
    assert_true(others == 1 && lines > 1);
  }
  asparse_engine_close(&engine);
}

/* A folder that cannot be made: rates are measured every time. */
static void nowhere(void **unused) {
  (void)unused;
  asparse_engine *engine = NULL;
  asparse_links links;
  asparse_host_rates rates = {0};
  bool known = true;
  assert_int_equal(asparse_engine_open(ASPARSE_BACKEND_HOST, 0, &engine), ASPARSE_OK);
  setenv("ASPARSE_CACHE", "/dev/null/cache", 1);
  assert_int_equal(asparse_link_cache_get(test_comm, engine, &links, &rates, &known), ASPARSE_OK);
  assert_int_equal(known, test_comm->size == 1);
  assert_true(links.all_bytes_per_second > 0);
  setenv("ASPARSE_CACHE", folder, 1);
  asparse_engine_close(&engine);
}

/* The n-th allocation fails on one rank: all report it, nothing is left. */
static void allocation_failures(void **unused) {
  (void)unused;
  uint64_t state = 4;
  asparse_csr *whole = test_whole(&state, 60, 60, 4, -1), *slab = test_slab(whole, test_comm, &state);
  asparse_options options = asparse_options_default();
  options.backend = ASPARSE_BACKEND_HOST; /* auto would go on without the GPU that it had no memory for */
  asparse_planning planning;
  plan_with(slab, &options, 16, &planning); /* rates of host and links are known from here on */
  const int64_t blocks = asparse_memory_live_blocks();
  asparse_status status = ASPARSE_ERR_MEMORY;
  int64_t n = 1;
  for (; status != ASPARSE_OK && test_comm->size > 1; n += 1 + n / 8) {
    asparse_memory_fail_at(test_comm->rank == n % test_comm->size ? n : 0);
    status = asparse_planner_plan(test_comm, slab, &options, 16, &planning);
    asparse_memory_fail_at(0);
    assert_true(status == ASPARSE_OK || status == ASPARSE_ERR_MEMORY);
    asparse_error_clear();
    assert_int_equal(asparse_memory_live_blocks(), blocks);
    assert_true(n < 2000);
  }
  assert_true(test_comm->size == 1 || n > 5);
  asparse_csr_destroy(&slab);
  asparse_csr_destroy(&whole);
}

static int group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ways),
                                     cmocka_unit_test(left_alone),
                                     cmocka_unit_test(link_decides),
                                     cmocka_unit_test(remembered),
                                     cmocka_unit_test(nowhere),
                                     cmocka_unit_test(crowded_rates),
                                     cmocka_unit_test(allocation_failures)};
  if (test_comm->rank == 0) snprintf(folder, sizeof folder, "/tmp/asparse-cache-%ld", (long)getpid());
  MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
  snprintf(file, sizeof file, "%s/links", folder);
  if (test_comm->rank == 0) mkdir(folder, 0700);
  setenv("ASPARSE_CACHE", folder, 1);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  if (test_comm->rank == 0) unlink(file), rmdir(folder);
  return failed;
}

int main(int argc, char **argv) { return test_run(&argc, &argv, group); }
