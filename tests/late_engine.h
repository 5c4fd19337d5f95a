/* An engine in host memory that works as a GPU does: what is enqueued happens later, queue by queue in order, the two
 * queues at random beside each other, and only while somebody asks. What waits for too little is found out. */
#ifndef ASPARSE_TEST_LATE_ENGINE_H
#define ASPARSE_TEST_LATE_ENGINE_H

#include <string.h>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "slabs.h"

typedef struct late_work late_work;
struct late_work {
  bool (*run)(late_work *work); /* false: not yet */
  asparse_event *event;
  int64_t ticket;
  void *to;
  const void *from;
  size_t bytes;
  const int32_t *rows;
  int64_t n_rows, pitch;
  void (*call)(void *data);
  void *data;
};

struct asparse_event {
  int64_t recorded, reached; /* how often */
  double seconds;
};

enum { LATE_ROOM = 4096 };
static struct {
  late_work work[LATE_ROOM];
  int begin, end;
} late_queues[ASPARSE_QUEUES];
static uint64_t late_state = 1;

static inline void late_enqueue(asparse_queue queue, late_work work) {
  if (late_queues[queue].begin == late_queues[queue].end) late_queues[queue].begin = late_queues[queue].end = 0;
  assert_true(late_queues[queue].end < LATE_ROOM);
  late_queues[queue].work[late_queues[queue].end++] = work;
}

/* The next work of one queue, drawn at random. */
static inline void late_step(void) {
  const int queue = (int)test_random(&late_state, ASPARSE_QUEUES);
  if (late_queues[queue].begin == late_queues[queue].end) return;
  late_work *next = &late_queues[queue].work[late_queues[queue].begin];
  if (next->run(next)) late_queues[queue].begin++;
}

static inline asparse_status late_wait(asparse_engine *engine) {
  (void)engine;
  while (late_queues[0].begin < late_queues[0].end || late_queues[1].begin < late_queues[1].end) late_step();
  return ASPARSE_OK;
}

static inline bool late_run_call(late_work *work) { return work->call(work->data), true; }

/* A kernel of the test: call(data), when its turn comes. */
static inline void late_call(asparse_queue queue, void (*call)(void *), void *data) {
  late_enqueue(queue, (late_work){.run = late_run_call, .call = call, .data = data});
}

static inline bool late_run_copy(late_work *work) { return memcpy(work->to, work->from, work->bytes), true; }

static inline asparse_status late_copy(asparse_engine *engine, asparse_queue queue, void *to, const void *from,
                                       size_t bytes) {
  (void)engine;
  if (bytes > 0) late_enqueue(queue, (late_work){.run = late_run_copy, .to = to, .from = from, .bytes = bytes});
  return ASPARSE_OK;
}

static inline bool late_run_pack(late_work *work) {
  for (int64_t i = 0; i < work->n_rows; i++)
    memcpy((char *)work->to + (size_t)i * work->bytes,
           (const char *)work->from + (work->rows ? work->rows[i] : i) * work->pitch, work->bytes);
  return true;
}

static inline asparse_status late_pack(asparse_engine *engine, asparse_queue queue, asparse_dtype dtype, int64_t n_rows,
                                       const int32_t *rows, int64_t n, const void *b, int64_t ldb, void *packed) {
  (void)engine;
  const int64_t size = (int64_t)asparse_dtype_size(dtype);
  late_enqueue(queue, (late_work){.run = late_run_pack,
                                  .to = packed,
                                  .from = b,
                                  .bytes = (size_t)(n * size),
                                  .rows = rows,
                                  .n_rows = n_rows,
                                  .pitch = ldb * size});
  return ASPARSE_OK;
}

static inline bool late_run_record(late_work *work) {
  work->event->reached = work->ticket;
  work->event->seconds = asparse_seconds();
  return true;
}

static inline asparse_status late_record(asparse_engine *engine, asparse_queue queue, asparse_event *event) {
  (void)engine;
  late_enqueue(queue, (late_work){.run = late_run_record, .event = event, .ticket = ++event->recorded});
  return ASPARSE_OK;
}

static inline bool late_run_after(late_work *work) { return work->event->reached >= work->ticket; }

static inline asparse_status late_after(asparse_engine *engine, asparse_queue queue, asparse_event *event) {
  (void)engine;
  late_enqueue(queue, (late_work){.run = late_run_after, .event = event, .ticket = event->recorded});
  return ASPARSE_OK;
}

static inline asparse_status late_reached(asparse_engine *engine, asparse_event *event, bool *reached) {
  (void)engine;
  late_step();
  *reached = event->reached == event->recorded;
  return ASPARSE_OK;
}

static inline asparse_status late_elapsed(asparse_engine *engine, asparse_event *from, asparse_event *to,
                                          double *seconds) {
  PASS(late_wait(engine));
  *seconds = to->seconds - from->seconds;
  return ASPARSE_OK;
}

static inline asparse_status late_allocate(asparse_engine *engine, int64_t count, size_t size, const char *what,
                                           void **pointer) {
  (void)engine;
  *pointer = asparse_malloc(count, size, what);
  return *pointer ? ASPARSE_OK : ASPARSE_ERR_MEMORY;
}

static inline asparse_status late_event_create(asparse_engine *engine, asparse_event **event) {
  (void)engine;
  *event = asparse_calloc(1, sizeof **event, "event");
  return *event ? ASPARSE_OK : ASPARSE_ERR_MEMORY;
}

static inline void late_event_destroy(asparse_event *event) { asparse_free(event); }

/* One row; when the queues are empty. */
static inline asparse_status late_move(asparse_engine *engine, void *to, size_t to_pitch, const void *from,
                                       size_t from_pitch, size_t width, size_t rows) {
  (void)to_pitch, (void)from_pitch;
  PASS(late_wait(engine));
  assert_int_equal(rows, 1);
  return memcpy(to, from, width), ASPARSE_OK;
}

static inline void *late_stream(const asparse_engine *engine, asparse_queue queue) {
  return (void)engine, (void)queue, NULL;
}

/* What a halo uses of a backend. */
static const asparse_backend late_backend = {.name = "late",
                                             .space = ASPARSE_SPACE_DEVICE,
                                             .stream = late_stream,
                                             .allocate = late_allocate,
                                             .release = asparse_free,
                                             .copy_in = late_move,
                                             .copy_out = late_move,
                                             .pack = late_pack,
                                             .pin = late_allocate,
                                             .unpin = asparse_free,
                                             .copy = late_copy,
                                             .event_create = late_event_create,
                                             .event_destroy = late_event_destroy,
                                             .record = late_record,
                                             .after = late_after,
                                             .reached = late_reached,
                                             .elapsed = late_elapsed,
                                             .wait = late_wait};

#endif
