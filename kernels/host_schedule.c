#include "kernels/host_kernels.h"

#include <omp.h>
#include <stdatomic.h>

/* Chunks per thread: enough for the last ones to even out the threads. 16 and 64 were equally
 * fast within noise on six matrices; a chunk costs two binary searches. */
enum { CHUNKS_PER_THREAD = 16 };
/* Multiply-adds below which waking the other threads is not worth it: some 20 µs of work; not tuned. */
enum { PARALLEL_WORK = 1 << 18 };
/* Giants that are remembered; a matrix with more of them has enough of them to occupy the threads. */
enum { MAX_GIANTS = 64 };
/* Giants are shared in multiples of this many columns, so that no two threads write one cache line. */
enum { COLUMN_QUANTUM = 16 };
/* Cost of a unit beside its pieces, in pieces: its rows of C are written. */
enum { UNIT_COST = 2 };

/* Units [unit_begin, unit_end) cut into count chunks of cost target, the last one shorter. */
typedef struct chunks {
  const int64_t *unit_ptr;
  int64_t unit_begin, unit_end;
  int64_t count, target;
} chunks;

/* Cost of the units from unit_begin up to unit. */
static int64_t cost_before(const chunks *s, int64_t unit) {
  return s->unit_ptr[unit] - s->unit_ptr[s->unit_begin] + (unit - s->unit_begin) * UNIT_COST;
}

static chunks cut(const int64_t *unit_ptr, int64_t unit_begin, int64_t unit_end, int threads) {
  chunks s = {unit_ptr, unit_begin, unit_end, (int64_t)threads * CHUNKS_PER_THREAD, 0};
  s.target = cost_before(&s, unit_end) / s.count + 1;
  return s;
}

/* First unit with no less than i targets before it. */
static int64_t chunk_start(const chunks *s, int64_t i) {
  if (i == s->count) return s->unit_end;
  int64_t low = s->unit_begin, high = s->unit_end;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (cost_before(s, middle) < i * s->target) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* A giant is a unit that costs more than a chunk. There is a multiple of the target inside it, so it
 * is the last unit of its chunk. */
static bool ends_with_giant(const chunks *s, int64_t begin, int64_t end) {
  return begin < end && cost_before(s, end) - cost_before(s, end - 1) > s->target;
}

void asparse_host_schedule(const asparse_product *p, asparse_host_kernel *kernel, const int64_t *unit_ptr,
                           int64_t piece_size, int64_t unit_begin, int64_t unit_end) {
  const int threads = omp_get_max_threads();
  const double work = (double)(unit_ptr[unit_end] - unit_ptr[unit_begin]) * (double)piece_size * (double)p->n;
  if (threads == 1 || work < PARALLEL_WORK) {
    kernel(p, unit_begin, unit_end, 0, p->n);
    return;
  }
  const chunks s = cut(unit_ptr, unit_begin, unit_end, threads);
  const int64_t quanta = (p->n + COLUMN_QUANTUM - 1) / COLUMN_QUANTUM;
  const int64_t shares = quanta < threads ? quanta : threads;
  int64_t giants[MAX_GIANTS];
  atomic_int n_giants = 0;
#pragma omp parallel
  {
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < s.count; i++) {
      const int64_t begin = chunk_start(&s, i), end = chunk_start(&s, i + 1);
      bool postpone = false;
      if (ends_with_giant(&s, begin, end)) {
        const int slot = atomic_fetch_add(&n_giants, 1);
        postpone = slot < MAX_GIANTS;
        if (postpone) giants[slot] = end - 1;
      }
      kernel(p, begin, end - postpone, 0, p->n);
    }
    const int postponed = n_giants < MAX_GIANTS ? n_giants : MAX_GIANTS;
#pragma omp for schedule(dynamic, 1) collapse(2)
    for (int g = 0; g < postponed; g++) {
      for (int64_t share = 0; share < shares; share++) {
        const int64_t col_begin = quanta * share / shares * COLUMN_QUANTUM;
        const int64_t col_end = share + 1 < shares ? quanta * (share + 1) / shares * COLUMN_QUANTUM : p->n;
        kernel(p, giants[g], giants[g] + 1, col_begin, col_end);
      }
    }
  }
}
