#include "plan/grid.h"

/* Rows of B and C in blocks of 8 columns keep the alignment that the GPU kernels' fast paths need. */
enum { COLUMN_UNIT = 8 };

static asparse_status wanted_grid(const asparse_options *options, int size, int *rows, int *columns) {
  *rows = options->grid_rows;
  *columns = options->grid_columns;
  const bool given = *rows > 0 || *columns > 0;
  if (!given && options->exchange == ASPARSE_EXCHANGE_GRID)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "exchange grid needs to know its rows and columns of ranks (--grid PMxPN)");
  if (!given) {
    const bool by_columns = options->exchange == ASPARSE_EXCHANGE_COLUMNS;
    *rows = by_columns ? 1 : size;
    *columns = by_columns ? size : 1;
  }
  if (*rows <= 0 || *columns <= 0 || (int64_t)*rows * *columns != size)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "a grid of %d × %d ranks does not fit %d rank%s", *rows, *columns, size,
                        size == 1 ? "" : "s");
  if (options->exchange == ASPARSE_EXCHANGE_COLUMNS && *rows != 1)
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "exchange columns is a grid of 1 × %d ranks, not %d × %d", size, *rows,
                        *columns);
  return ASPARSE_OK;
}

asparse_status asparse_grid_create(asparse_comm *comm, const asparse_options *options, asparse_grid *grid) {
  asparse_status status = ASPARSE_OK;
  *grid = (asparse_grid){0};
  TRY(wanted_grid(options, comm->size, &grid->rows, &grid->columns));
  if (grid->columns == 1) {
    grid->column_comm = comm;
    return ASPARSE_OK;
  }
  TRY(asparse_comm_split(comm, comm->rank / grid->columns, comm->rank % grid->columns, &grid->row_comm));
  TRY(asparse_comm_split(comm, comm->rank % grid->columns, comm->rank / grid->columns, &grid->column_comm));
cleanup:
  if (status != ASPARSE_OK) asparse_grid_free(grid);
  return status;
}

void asparse_grid_free(asparse_grid *grid) {
  if (grid->columns > 1) asparse_comm_destroy(&grid->column_comm);
  asparse_comm_destroy(&grid->row_comm);
  *grid = (asparse_grid){0};
}

asparse_status asparse_grid_check(const asparse_grid *grid, const asparse_options *options) {
  int rows, columns;
  PASS(wanted_grid(options, grid->rows * grid->columns, &rows, &columns));
  const bool asked = options->grid_rows > 0 || options->exchange == ASPARSE_EXCHANGE_COLUMNS;
  if (asked && (rows != grid->rows || columns != grid->columns))
    return ASPARSE_FAIL(ASPARSE_ERR_USAGE,
                        "the matrix lies on a grid of %d × %d ranks, the plan asks for %d × %d; distribute it for that "
                        "grid (a partition file is always on P × 1)",
                        grid->rows, grid->columns, rows, columns);
  return ASPARSE_OK;
}

int64_t asparse_grid_column_start(int64_t n, int blocks, int block) {
  const int64_t units = n / COLUMN_UNIT + (n % COLUMN_UNIT != 0);
  if (units < blocks) return asparse_even_start(n, blocks, block);
  const int64_t start = COLUMN_UNIT * asparse_even_start(units, blocks, block);
  return start < n ? start : n;
}
