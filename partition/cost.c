/* The cost of a row: predicted time of its share of the padded shard.
 *
 *   cost(i) = n · (ENTRY · nnz(i) + COLUMN · columns(w) · nnz(i) / nnz(w) + ROW)
 *
 * w is the 16-row window (counted from the slab's first row) of row i, columns(w) its distinct columns, each of which
 * brings a row of B into cache; ROW is the writing of a row of C. */
#include "partition/partition.h"
#include "partition/row_units.h"

/* Picoseconds for each dense column. Measured: least squares of the relative error of the faster of CSR, WCSR 8 and
 * WCSR 16 in fp32 at n = 128, one thread of a 2.3 GHz Xeon (AVX-512), over 13 matrices of 5 thousand to 3.2 million
 * entries (FEM, circuits, graphs); it predicts each within 0.67 to 1.23 of the measurement, where time over entries
 * alone varies tenfold. */
enum { ENTRY = 11, COLUMN = 139, ROW = 172, WINDOW_HEIGHT = 16 };

/* A factor that all rows share moves no cut; beyond this one it could only overflow. */
enum { MOST_COLUMNS = 1024 };

asparse_status asparse_partition_row_cost(const asparse_csr *a, int64_t n, int64_t *cost) {
  asparse_status status = ASPARSE_OK;
  int64_t *columns = NULL, n_windows = a->n_rows / WINDOW_HEIGHT + (a->n_rows % WINDOW_HEIGHT != 0);
  double n_counted = (double)(n < MOST_COLUMNS ? n : MOST_COLUMNS);
  ALLOC(columns, n_windows);
  TRY(asparse_slab_units_count(a, WINDOW_HEIGHT, 0, columns));
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t w = i / WINDOW_HEIGHT, begin = w * WINDOW_HEIGHT;
    int64_t end = begin + WINDOW_HEIGHT < a->n_rows ? begin + WINDOW_HEIGHT : a->n_rows;
    double nnz = (double)(a->row_ptr[i + 1] - a->row_ptr[i]);
    double share = nnz > 0 ? nnz / (double)(a->row_ptr[end] - a->row_ptr[begin]) : 0;
    cost[i] = (int64_t)(n_counted * (ENTRY * nnz + COLUMN * (double)columns[w] * share + ROW));
  }
cleanup:
  asparse_free(columns);
  return status;
}
