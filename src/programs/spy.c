#include "programs/spy.h"

#include "asparse_config.h"

#if ASPARSE_HAVE_PNG
#include <math.h>
#include <png.h>
#include <stdio.h>

#include "io/output.h"

/* The longer side in pixels, and the least of the shorter one, so that a vector can be seen. */
enum { LONG_SIDE = 1024, SHORT_SIDE = 16 };

/* Cells of the matrix are counted on a grid no finer than the matrix, and drawn on as many pixels or more. */
typedef struct picture {
  int64_t grid_rows, grid_cols;
  int64_t *counts; /* [grid_rows · grid_cols] entries */
  int width, height;
} picture;

/* Pixels of a side of `length` when the longer side has `longest` rows or columns. */
static int pixels(int64_t length, int64_t longest) {
  int64_t whole = longest < LONG_SIDE && longest > 0 ? LONG_SIDE / longest * longest : LONG_SIDE;
  int64_t side = longest > 0 ? (int64_t)lround((double)whole * (double)length / (double)longest) : 0;
  return (int)(side < SHORT_SIDE ? SHORT_SIDE : side);
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* The cell of an index below length, of `cells` cells. */
static int64_t cell_of(int64_t index, int64_t length, int64_t cells) {
  if (length > INT64_MAX / LONG_SIDE) return smaller(index / LONG_SIDE * cells / (length / LONG_SIDE), cells - 1);
  return index * cells / length;
}

/* Local. */
static asparse_status count_entries(const asparse_csr *a, picture *p) {
  asparse_status status = ASPARSE_OK;
  int64_t longest = a->m > a->k ? a->m : a->k;
  p->height = pixels(a->m, longest);
  p->width = pixels(a->k, longest);
  p->grid_rows = smaller(a->m, p->height);
  p->grid_cols = smaller(a->k, p->width);
  ALLOC_ZERO(p->counts, p->grid_rows * p->grid_cols);
  for (int64_t i = 0; i < a->n_rows; i++) {
    int64_t y = cell_of(a->row_begin + i, a->m, p->grid_rows);
    for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++)
      p->counts[y * p->grid_cols + cell_of(a->col_idx[e], a->k, p->grid_cols)]++;
  }
cleanup:
  return status;
}

/* Dark on white; the logarithm keeps single entries visible beside dense blocks. */
static asparse_status shade(const picture *p, unsigned char **shades) {
  asparse_status status = ASPARSE_OK;
  int64_t cells = p->grid_rows * p->grid_cols, most = 1;
  for (int64_t i = 0; i < cells; i++)
    if (p->counts[i] > most) most = p->counts[i];
  ALLOC(*shades, (int64_t)p->width * p->height);
  for (int y = 0; y < p->height; y++) {
    for (int x = 0; x < p->width; x++) {
      int64_t row = (int64_t)y * p->grid_rows / p->height, col = (int64_t)x * p->grid_cols / p->width;
      int64_t count = cells > 0 ? p->counts[row * p->grid_cols + col] : 0;
      double dark = count > 0 ? 0.35 + 0.65 * log((double)count + 1) / log((double)most + 1) : 0;
      (*shades)[(int64_t)y * p->width + x] = (unsigned char)lround(255 * (1 - dark));
    }
  }
cleanup:
  return status;
}

static asparse_status write_png(const picture *p, const unsigned char *shades, const char *path, const char *name) {
  png_image image = {.version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_GRAY};
  image.width = (png_uint_32)p->width;
  image.height = (png_uint_32)p->height;
  if (png_image_write_to_file(&image, path, 0, shades, 0, NULL)) return ASPARSE_OK;
  asparse_status status = ASPARSE_FAIL(ASPARSE_ERR_IO, "%s: cannot write the picture: %s", name, image.message);
  png_image_free(&image);
  return status;
}

asparse_status spy_write(asparse_comm *comm, const asparse_csr *slab, const char *path) {
  asparse_status status = ASPARSE_OK;
  picture p = {0};
  unsigned char *shades = NULL;
  asparse_output output = {.temporary = ""};
  TRY(asparse_comm_agree(comm, count_entries(slab, &p)));
  TRY(asparse_comm_sum(comm, p.counts, (int)(p.grid_rows * p.grid_cols)));
  TRY(asparse_output_begin(comm, path, &output));
  if (comm->rank == 0) {
    status = shade(&p, &shades);
    if (status == ASPARSE_OK) status = write_png(&p, shades, output.temporary, path);
  }
  status = asparse_output_end(comm, &output, status);
cleanup:
  asparse_free(p.counts);
  asparse_free(shades);
  return status;
}

#else

asparse_status spy_write(asparse_comm *comm, const asparse_csr *slab, const char *path) {
  (void)comm, (void)slab;
  return ASPARSE_FAIL(ASPARSE_ERR_USAGE, "%s: this asparse_info draws no pictures; install libpng-dev and build again",
                      path);
}

#endif
