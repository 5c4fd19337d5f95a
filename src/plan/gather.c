/* The whole of B or C on rank 0, and every rank's share of it. */
#include "base/dense.h"
#include "plan/plan.h"

enum { TAG_ROWS = 23, TAG_SHARE, ROOT = 0 };

/* One operand on its way to or from rank 0, one rank's share after the other. */
typedef struct passage {
  const asparse_matrix *a;
  asparse_comm *comm;
  const int64_t *starts; /* of parts */
  asparse_extent mine;
  asparse_dense *share;    /* this rank's */
  asparse_extent *extents; /* [comm->size] on rank 0 */
  asparse_dense *packed;   /* rank 0: room for the largest share */
  int64_t *rows;           /* rank 0: [rows of it] original rows of a share; NULL where they are consecutive */
  MPI_Request *requests;
} passage;

static int64_t bytes_of(const asparse_extent *e, asparse_dtype dtype) {
  return e->m * e->n * (int64_t)asparse_dtype_size(dtype);
}

/* Original numbers of this rank's rows; NULL where they are consecutive. */
static const int64_t *own_rows(const passage *p) {
  const int64_t part_begin = p->starts[p->a->grid.column_comm->rank];
  return p->a->part.row_map ? p->a->part.row_map + (p->mine.row_begin - part_begin) : NULL;
}

/* Room for the largest share. Collective. */
static asparse_status passage_create(passage *p) {
  asparse_status status = ASPARSE_OK;
  asparse_comm *comm = p->comm;
  const asparse_dense *share = p->share;
  int64_t largest[3] = {bytes_of(&p->mine, share->dtype), p->mine.m, share->ld != share->n};
  TRY(asparse_comm_max(comm, largest, 3));
  TRY_THAT(largest[2] == 0, ASPARSE_ERR_USAGE, "shares of B and C go to and from rank 0 without gaps between rows");
  const int64_t pieces = asparse_comm_pieces(comm, largest[0]) + asparse_comm_pieces(comm, 8 * largest[1]);
  p->requests = asparse_malloc(pieces, sizeof *p->requests, "requests");
  p->extents = asparse_malloc(comm->size, sizeof *p->extents, "shares");
  if (!p->requests || !p->extents) status = ASPARSE_ERR_MEMORY;
  if (status == ASPARSE_OK && comm->rank == ROOT) {
    status = asparse_dense_create(&p->packed, 1, largest[0] / (int64_t)asparse_dtype_size(share->dtype), share->dtype);
    if (p->a->method == ASPARSE_PARTITION_METIS && !(p->rows = asparse_malloc(largest[1], sizeof *p->rows, "rows")))
      status = ASPARSE_ERR_MEMORY;
  }
  TRY(asparse_comm_agree(comm, status));
  TRY_MPI(MPI_Gather(&p->mine, 4, MPI_INT64_T, p->extents, 4, MPI_INT64_T, ROOT, comm->mpi));
cleanup:
  return status;
}

static void passage_free(passage *p) {
  asparse_dense_destroy(&p->packed);
  asparse_free(p->rows);
  asparse_free(p->extents);
  asparse_free(p->requests);
}

/* A message between rank 0 and another rank; done when it returns. */
static asparse_status pass(passage *p, void *data, int64_t bytes, int peer, int tag, bool send) {
  asparse_status status = ASPARSE_OK;
  int64_t n_requests = 0;
  if (send) TRY(asparse_comm_isend(p->comm, data, bytes, peer, tag, p->requests, &n_requests));
  else TRY(asparse_comm_irecv(p->comm, data, bytes, peer, tag, p->requests, &n_requests));
  TRY(asparse_comm_wait(p->comm, n_requests, p->requests, NULL));
cleanup:
  return status;
}

/* Rows of a share [m × n without gaps] to or from their places in the whole. */
static void place(asparse_dense *whole, const asparse_extent *e, const int64_t *rows, char *share, bool gather) {
  const size_t size = asparse_dtype_size(whole->dtype), width = (size_t)e->n * size;
  for (int64_t i = 0; i < e->m; i++) {
    const int64_t row = rows ? rows[i] : e->row_begin + i;
    char *in_whole = (char *)whole->values + (size_t)(row * whole->ld + e->col_begin) * size,
         *in_share = share + i * (int64_t)width;
    if (gather) memcpy(in_whole, in_share, width);
    else memcpy(in_share, in_whole, width);
  }
}

static asparse_status serve(passage *p, asparse_dense *whole, bool gather) {
  place(whole, &p->mine, own_rows(p), p->share->values, gather);
  for (int r = 1; r < p->comm->size; r++) {
    const asparse_extent *e = &p->extents[r];
    const int64_t bytes = bytes_of(e, whole->dtype);
    if (p->rows) PASS(pass(p, p->rows, 8 * e->m, r, TAG_ROWS, false));
    if (gather) PASS(pass(p, p->packed->values, bytes, r, TAG_SHARE, false));
    place(whole, e, p->rows, p->packed->values, gather);
    if (!gather) PASS(pass(p, p->packed->values, bytes, r, TAG_SHARE, true));
  }
  return ASPARSE_OK;
}

static asparse_status move(passage *p, asparse_dense *whole, bool gather) {
  if (p->comm->rank == ROOT) return serve(p, whole, gather);
  const int64_t *rows = own_rows(p);
  if (rows) PASS(pass(p, (void *)rows, 8 * p->mine.m, ROOT, TAG_ROWS, true));
  return pass(p, p->share->values, bytes_of(&p->mine, p->share->dtype), ROOT, TAG_SHARE, gather);
}

asparse_status asparse_plan_scatter_b(const asparse_plan *plan, const asparse_dense *whole, asparse_dense *b) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  passage p = {.a = a, .comm = a->comm, .starts = a->col_starts, .share = b};
  p.mine = asparse_plan_extent_of_b(plan, asparse_plan_placement(plan));
  if (a->comm->rank == ROOT && (whole->m != a->k || whole->n != plan->n_global || whole->dtype != b->dtype))
    status = ASPARSE_FAIL(ASPARSE_ERR_USAGE, "B on rank 0 is %lld × %lld %s; the plan needs %lld × %lld %s",
                          (long long)whole->m, (long long)whole->n, asparse_dtype_name(whole->dtype), (long long)a->k,
                          (long long)plan->n_global, asparse_dtype_name(b->dtype));
  TRY(asparse_comm_agree(a->comm, status));
  TRY(passage_create(&p));
  TRY(move(&p, (asparse_dense *)whole, false));
cleanup:
  passage_free(&p);
  return status;
}

asparse_status asparse_plan_gather_c(const asparse_plan *plan, const asparse_dense *c, asparse_dense **out) {
  asparse_status status = ASPARSE_OK;
  const asparse_matrix *a = plan->matrix;
  asparse_dense *whole = NULL;
  passage p = {.a = a, .comm = a->comm, .starts = a->row_starts, .share = (asparse_dense *)c};
  p.mine = asparse_plan_extent_of_c(plan, asparse_plan_placement(plan));
  if (a->comm->rank == ROOT) status = asparse_dense_create(&whole, a->m, plan->n_global, c->dtype);
  TRY(asparse_comm_agree(a->comm, status));
  TRY(passage_create(&p));
  TRY(move(&p, whole, true));
  *out = whole;
  whole = NULL;
cleanup:
  asparse_dense_destroy(&whole);
  passage_free(&p);
  return status;
}
