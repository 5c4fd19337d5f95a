#include "plan/mode_choice.h"

#include "plan/grid.h"
#include "plan/halo.h"

#include <math.h>

asparse_link asparse_link_default(asparse_link_kind kind) {
  switch (kind) {
  /* Measured between 2 ranks of a 2-core Xeon, Open MPI 4.1: 7–11 GB/s from 256 KiB on, 0.3–0.6 µs below 1 KiB. */
  case ASPARSE_LINK_SHARED_MEMORY: return (asparse_link){5e-7, 7e9, true};
  /* All-to-all between the GPUs of one H200 host is reported at 264–360 GB/s a GPU; a grouped send costs some µs. */
  case ASPARSE_LINK_NVLINK: return (asparse_link){5e-6, 264e9, false};
  /* A guess: 400 Gb/s are 50 GB/s, of which nine tenths arrive. */
  default: return (asparse_link){5e-6, 45e9, false};
  }
}

/* What a way must save to be worth more than a simpler one: less than the model can tell. */
static const double WORTH = 0.02;

enum { LEAST_COLUMNS = 64 }; /* of the narrowest chunk that is tried */

/* A fraction of a count, rounded up. */
static int64_t share(int64_t count, double fraction) { return (int64_t)ceil((double)count * fraction); }

static asparse_window_counts share_windows(const asparse_window_counts *w, double fraction) {
  return (asparse_window_counts){share(w->columns, fraction), share(w->padded, fraction), w->widest,
                                 share(w->used, fraction)};
}

static int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }

/* The part's half by the whole matrix's profile. */
static asparse_profile half_profile(const asparse_volumes *volumes, const asparse_profile *whole, int i, bool own,
                                    int64_t columns) {
  const asparse_part_volume *part = &volumes->part[i];
  const int64_t nnz = own ? part->own_nnz : part->nnz - part->own_nnz;
  const double fraction = volumes->nnz > 0 ? (double)nnz / (double)volumes->nnz : 0;
  asparse_profile profile = *whole;
  profile.m = part->rows;
  profile.k = own ? part->b_rows : part->received;
  profile.n = columns;
  profile.nnz = nnz;
  profile.b_rereads = share(profile.b_rereads, fraction);
  profile.longest_row = smaller(profile.longest_row, nnz);
  profile.accumulate = !own;
  profile.used_rows = smaller(part->rows, nnz);
  for (int h = 0; h < 4; h++) {
    profile.windows[h] = share_windows(&profile.windows[h], fraction);
    profile.windows[h].used = smaller(part->rows / (8 << h) + 1, nnz);
    profile.clustered[h] = share_windows(&profile.clustered[h], fraction);
  }
  for (int s = 0; s < 3; s++) profile.blocks[s] = share(profile.blocks[s], fraction);
  return profile;
}

double asparse_mode_half_seconds(const asparse_volumes *volumes, const asparse_mode_compute *compute, int i, bool own,
                                 int64_t columns) {
  const asparse_profile profile = half_profile(volumes, compute->whole, i, own, columns);
  if (columns == 0 || profile.m == 0 || (!own && profile.nnz == 0)) return 0;
  return compute->rates ? asparse_choose(&profile, compute->rates, ASPARSE_FORMAT_AUTO, 0, NULL, NULL).predicted_seconds
                        : asparse_choose_device(&profile, ASPARSE_FORMAT_AUTO, 0, NULL, NULL, NULL).predicted_seconds;
}

double asparse_link_seconds(const asparse_link *link, int64_t messages, int64_t bytes) {
  return (double)messages * link->latency_seconds + (double)bytes / link->bytes_per_second;
}

double asparse_mode_pipeline_seconds(double own, double exchange, double rest, int chunks, bool by_cores) {
  double now = own;
  if (by_cores) return own + exchange + rest;
  for (int c = 1; c <= chunks; c++) now = fmax(now, exchange * c / chunks) + rest / chunks;
  return now;
}

/* Adds what rank (i, j) takes, whose halves take own and rest seconds. */
static void add_rank(asparse_mode_candidate *c, const asparse_link *link, const asparse_volume_shape *shape,
                     bool row_operands, int i, int j, double own, double rest) {
  const asparse_volume v = asparse_volumes_rank(c->volumes, c->mode, c->pn, shape, i, j);
  const int64_t bytes = v.bytes_received > v.bytes_sent ? v.bytes_received : v.bytes_sent;
  const double exchange = asparse_link_seconds(link, c->chunks * v.messages, bytes);
  const double layout = row_operands ? asparse_link_seconds(link, v.layout_messages, v.layout_bytes) : 0;
  const double all = layout + asparse_mode_pipeline_seconds(own, exchange, rest, c->chunks, link->by_cores);
  c->compute_seconds = fmax(c->compute_seconds, own + rest);
  c->exchange_seconds = fmax(c->exchange_seconds, exchange);
  c->layout_seconds = fmax(c->layout_seconds, layout);
  c->predicted_seconds = fmax(c->predicted_seconds, all);
}

/* Predicts a way with that many chunks of columns. */
static void predict_chunks(asparse_mode_candidate *c, const asparse_mode_compute *compute, const asparse_link *link,
                           const asparse_volume_shape *shape, bool row_operands, int chunks) {
  c->chunks = chunks;
  c->predicted_seconds = c->compute_seconds = c->exchange_seconds = c->layout_seconds = 0;
  for (int i = 0; i < c->volumes->parts; i++) {
    int64_t last_width = -1;
    double own = 0, rest = 0;
    for (int j = 0; j < c->pn; j++) {
      const int64_t width =
          asparse_grid_column_start(shape->n, c->pn, j + 1) - asparse_grid_column_start(shape->n, c->pn, j);
      if (width != last_width) {
        own = asparse_mode_half_seconds(c->volumes, compute, i, true, width);
        rest = chunks * asparse_mode_half_seconds(c->volumes, compute, i, false, width / chunks);
      }
      last_width = width;
      add_rank(c, link, shape, row_operands, i, j, own, rest);
    }
  }
}

static void predict(asparse_mode_candidate *c, const asparse_mode_compute *compute, const asparse_link *link,
                    const asparse_volume_shape *shape, bool row_operands) {
  const int64_t width = shape->n / c->pn;
  const bool one = c->mode == ASPARSE_EXCHANGE_COVER;
  predict_chunks(c, compute, link, shape, row_operands, one ? 1 : asparse_halo_chunks(width, c->wanted_chunks));
  if (one || c->wanted_chunks > 0 || c->exchange_seconds == 0) return;
  for (int chunks = 2; chunks <= ASPARSE_MOST_CHUNKS && width / chunks >= LEAST_COLUMNS; chunks *= 2) {
    asparse_mode_candidate finer = *c;
    predict_chunks(&finer, compute, link, shape, row_operands, chunks);
    if (finer.predicted_seconds < (1 - WORTH) * c->predicted_seconds) *c = finer;
  }
}

int asparse_mode_choose(asparse_mode_candidate *candidates, int count, const asparse_mode_compute *compute,
                        const asparse_link *link, const asparse_volume_shape *shape, bool row_operands) {
  int best = 0;
  for (int i = 0; i < count; i++) {
    predict(&candidates[i], compute, link, shape, row_operands);
    if (candidates[i].predicted_seconds < (1 - WORTH) * candidates[best].predicted_seconds) best = i;
  }
  return best;
}
