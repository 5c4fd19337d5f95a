/* What the GPU tests of sparse kernels share: device buffers, matrices, the fp64 reference, comparison. */
#ifndef ASPARSE_SPARSE_FIXTURE_CUH
#define ASPARSE_SPARSE_FIXTURE_CUH

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>
#include <string>
#include <vector>

#include <cuda_runtime.h>

extern "C" {
#include "base/dense.h"
#include "base/shard.h"
#include "base/status.h"
/* partition/partition.h knows MPI, which GPU tests do without. */
#include "partition/cluster.h"
asparse_status asparse_wcsr_build(const asparse_local_csr *a, int32_t window_height, asparse_wcsr **out);
asparse_status asparse_bcsr_build(const asparse_local_csr *a, int32_t block_size, asparse_bcsr **out);
}
#include "kernels/cuda_csr.h"
#include "kernels/cuda_sell.h"
#include "kernels/cuda_wcsr.h"

#define CUDA_OK(call)                                                                                                  \
  do {                                                                                                                 \
    cudaError_t error_ = (call);                                                                                       \
    if (error_ != cudaSuccess) {                                                                                       \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));                           \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (0)
#define STATUS_OK(call)                                                                                                \
  do {                                                                                                                 \
    if ((call) != ASPARSE_OK) {                                                                                        \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, asparse_error_message());                              \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (0)

/* Bytes on the device, exactly as many as asked for, so that memcheck sees a read past the end. */
struct Buffer {
  void *d = nullptr;
  size_t bytes = 0;
  explicit Buffer(size_t size) : bytes(size) {
    if (size) CUDA_OK(cudaMalloc(&d, size));
  }
  Buffer(const void *host, size_t size) : Buffer(size) {
    if (size) CUDA_OK(cudaMemcpy(d, host, size, cudaMemcpyHostToDevice));
  }
  Buffer(const Buffer &) = delete;
  ~Buffer() { cudaFree(d); }
  template <typename T> T *as() const { return static_cast<T *>(d); }
  void read(void *host) const {
    if (bytes) CUDA_OK(cudaMemcpy(host, d, bytes, cudaMemcpyDeviceToHost));
  }
};

template <typename T> Buffer upload(const std::vector<T> &x) { return Buffer(x.data(), x.size() * sizeof(T)); }

/* A stream of pseudo-random numbers. */
struct Random {
  uint64_t state;
  uint64_t next() { return asparse_mix64(state++); }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; } /* [0, 1) */
  double value() { return 2 * unit() - 1; }
};

/* Ends the test as skipped (CTest's 77) where there is no GPU. */
inline void need_gpu() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return;
  std::printf("skipped: no GPU\n");
  std::exit(77);
}

/* Seed of this run: the first argument, or the time. Printed, so that a failure can be repeated. */
inline uint64_t seed_of(int argc, char **argv) {
  uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : static_cast<uint64_t>(std::time(nullptr));
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

/* ---- matrices ------------------------------------------------------------------------------- */

struct Matrix {
  std::string name;
  int32_t m, k;
  std::vector<int64_t> row_ptr; /* [m + 1] */
  std::vector<int32_t> col_idx; /* [nnz] */
  std::vector<char> values;     /* [nnz] of dtype */
  asparse_dtype dtype;

  int64_t nnz() const { return row_ptr[m]; }
  int64_t longest_row() const {
    int64_t longest = 0;
    for (int32_t i = 0; i < m; i++) longest = std::max(longest, row_ptr[i + 1] - row_ptr[i]);
    return longest;
  }
  asparse_local_csr csr() { return {m, k, dtype, row_ptr.data(), col_idx.data(), values.data()}; }
  /* Random values of that dtype. */
  void fill(asparse_dtype type, uint64_t seed) {
    Random random{seed};
    dtype = type;
    values.resize(static_cast<size_t>(nnz()) * asparse_dtype_size(type));
    for (int64_t e = 0; e < nnz(); e++) asparse_store(type, values.data(), e, random.value());
  }
};

inline Matrix from_rows(std::string name, int32_t k, const std::vector<std::set<int32_t>> &rows) {
  Matrix a{std::move(name), static_cast<int32_t>(rows.size()), k, {0}, {}, {}, ASPARSE_FP64};
  for (const auto &row : rows) {
    a.col_idx.insert(a.col_idx.end(), row.begin(), row.end());
    a.row_ptr.push_back(static_cast<int64_t>(a.col_idx.size()));
  }
  return a;
}

/* about per_row entries in each row, columns uniform */
inline Matrix uniform(int32_t m, int32_t k, double per_row, uint64_t seed) {
  Random random{seed};
  std::vector<std::set<int32_t>> rows(m);
  for (int64_t e = 0; e < static_cast<int64_t>(per_row * m); e++) {
    rows[random.below(m)].insert(static_cast<int32_t>(random.below(k)));
  }
  return from_rows("random " + std::to_string(m) + "x" + std::to_string(k), k, rows);
}

/* Each element with that probability; row i with (i + 1)^-skew times that of the first (all the same at skew 0), the
 * mean staying density. Rows are shuffled. */
inline Matrix bernoulli(int32_t m, int32_t k, double density, double skew, uint64_t seed) {
  double total = 0;
  for (int32_t i = 0; i < m; i++) total += std::pow(i + 1.0, -skew);
  Random random{seed};
  std::vector<double> chance(m);
  for (int32_t i = 0; i < m; i++) {
    chance[i] = std::fmin(1.0, density * m / total * std::pow(i + 1.0, -skew));
    std::swap(chance[i], chance[random.below(i + 1)]);
  }
  char name[64];
  std::snprintf(name, sizeof name, "%dx%d %g%%%s", m, k, 100 * density, skew > 0 ? " skewed" : "");
  Matrix a{name, m, k, {0}, {}, {}, ASPARSE_FP64};
  for (int32_t i = 0; i < m; i++) {
    for (int32_t j = 0; j < k; j++) {
      if (random.unit() < chance[i]) a.col_idx.push_back(j);
    }
    a.row_ptr.push_back(static_cast<int64_t>(a.col_idx.size()));
  }
  return a;
}

/* A regular nx × ny × nz grid with b unknowns a node, each coupled with those of the (2·reach+1)^d box around its
 * node, or of the star in it (5 and 7 points). */
inline Matrix grid(int32_t nx, int32_t ny, int32_t nz, int32_t b, bool star) {
  int32_t nodes = nx * ny * nz;
  std::vector<std::set<int32_t>> rows(static_cast<size_t>(nodes) * b);
  for (int32_t node = 0; node < nodes; node++) {
    int32_t x = node % nx, y = node / nx % ny, z = node / nx / ny;
    for (int32_t d = 0; d < 27; d++) {
      int32_t dx = d % 3 - 1, dy = d / 3 % 3 - 1, dz = d / 9 - 1;
      if (star && std::abs(dx) + std::abs(dy) + std::abs(dz) > 1) continue;
      if (x + dx < 0 || x + dx >= nx || y + dy < 0 || y + dy >= ny || z + dz < 0 || z + dz >= nz) continue;
      int32_t other = node + dx + nx * (dy + ny * dz);
      for (int32_t i = 0; i < b * b; i++) rows[node * b + i / b].insert(other * b + i % b);
    }
  }
  return from_rows((star ? "grid " : "FEM ") + std::to_string(nx) + "x" + std::to_string(ny) + "x" +
                       std::to_string(nz) + " b=" + std::to_string(b),
                   nodes * b, rows);
}

/* 2^scale vertices, per_row · 2^scale edges drawn with the Graph500 probabilities. */
inline Matrix rmat(int scale, int per_row, uint64_t seed) {
  Random random{seed};
  int32_t m = 1 << scale;
  std::vector<std::set<int32_t>> rows(m);
  for (int64_t e = 0; e < static_cast<int64_t>(per_row) * m; e++) {
    int32_t i = 0, j = 0;
    for (int bit = 0; bit < scale; bit++) {
      double u = random.unit();
      i = 2 * i + (u >= 0.76);
      j = 2 * j + ((u >= 0.57 && u < 0.76) || u >= 0.95);
    }
    rows[i].insert(j);
  }
  return from_rows("RMAT 2^" + std::to_string(scale), m, rows);
}

/* One dense row among rows of one entry. */
inline Matrix dense_row(int32_t m, int32_t k, int32_t dense, uint64_t seed) {
  Random random{seed};
  std::vector<std::set<int32_t>> rows(m);
  for (int32_t i = 0; i < m; i++) rows[i].insert(static_cast<int32_t>(random.below(k)));
  for (int32_t j = 0; j < k; j++) rows[dense].insert(j);
  return from_rows("dense row of " + std::to_string(k), k, rows);
}

/* ---- matrices on the device ----------------------------------------------------------------- */

inline std::vector<int32_t> long_rows_of(const Matrix &a) {
  const int32_t long_row = asparse_cuda_csr_long_row(a.m, a.row_ptr.data());
  std::vector<int32_t> rows(asparse_cuda_csr_long_rows(a.m, a.row_ptr.data(), long_row, nullptr));
  asparse_cuda_csr_long_rows(a.m, a.row_ptr.data(), long_row, rows.data());
  return rows;
}

struct DeviceCsr {
  Buffer row_ptr, col_idx, values, long_rows;
  asparse_cuda_csr csr;
  explicit DeviceCsr(const Matrix &a)
      : row_ptr(upload(a.row_ptr)), col_idx(upload(a.col_idx)), values(upload(a.values)),
        long_rows(upload(long_rows_of(a))), csr() {
    csr.m = a.m;
    csr.k = a.k;
    csr.dtype = a.dtype;
    csr.row_ptr = row_ptr.as<int64_t>();
    csr.col_idx = col_idx.as<int32_t>();
    csr.values = values.d;
    csr.long_row = asparse_cuda_csr_long_row(a.m, a.row_ptr.data());
    csr.n_long_rows = static_cast<int32_t>(long_rows.bytes / sizeof(int32_t));
    csr.long_rows = long_rows.as<int32_t>();
  }
};

/* tiles_per_task: most tiles of a task of wcsr-atomics, of a warp's share of wcsr-gather. clustered: like rows brought
 * together. */
struct HostWcsr {
  asparse_wcsr *a = nullptr;
  asparse_wcsr_work *work = nullptr;
  asparse_wcsr_groups *groups = nullptr;
  HostWcsr(Matrix &matrix, int32_t height, int32_t tiles_per_task, bool clustered = false) {
    asparse_local_csr csr = matrix.csr();
    asparse_clustered rows = {};
    if (clustered) STATUS_OK(asparse_rows_cluster(&csr, &rows));
    STATUS_OK(asparse_wcsr_build(clustered ? rows.rows : &csr, height, &a));
    if (clustered) std::swap(a->row_map, rows.order);
    asparse_clustered_free(&rows);
    STATUS_OK(asparse_wcsr_work_build(a, tiles_per_task, &work));
    STATUS_OK(asparse_wcsr_groups_build(a, {tiles_per_task, tiles_per_task}, &groups));
  }
  HostWcsr(const HostWcsr &) = delete;
  ~HostWcsr() {
    asparse_wcsr_destroy(&a);
    asparse_wcsr_work_destroy(&work);
    asparse_wcsr_groups_destroy(&groups);
  }
  size_t columns() const { return static_cast<size_t>(a->window_row_ptr[a->n_windows]); }
};

struct DeviceWcsr {
  static constexpr int64_t kMostSlices = 64; /* columns / 64 */
  Buffer col_idx, row_mask, values, row_map, tasks, splits, shares, group_splits, slot_split, arrived;
  asparse_cuda_wcsr wcsr;
  explicit DeviceWcsr(const HostWcsr &h)
      : col_idx(h.a->window_col_idx, h.columns() * sizeof(int32_t)),
        row_mask(h.a->row_mask, h.columns() * sizeof(uint64_t)),
        values(h.a->values, h.columns() * h.a->window_height * sizeof(uint16_t)),
        row_map(h.a->row_map, h.a->row_map ? h.a->m * sizeof(int32_t) : 0),
        tasks(h.work->tasks, h.work->n_tasks * sizeof(asparse_wcsr_task)),
        splits(h.work->splits, h.work->n_splits * sizeof(asparse_wcsr_split)),
        shares(h.groups->shares, h.groups->n_groups * ASPARSE_WCSR_WARPS * sizeof(asparse_wcsr_share)),
        group_splits(h.groups->splits, h.groups->n_splits * sizeof(asparse_wcsr_split)),
        slot_split(h.groups->slot_split, h.groups->n_slots * sizeof(int32_t)),
        arrived(h.groups->n_splits * kMostSlices * sizeof(int32_t)), wcsr() {
    if (arrived.bytes) CUDA_OK(cudaMemset(arrived.d, 0, arrived.bytes));
    wcsr.row_map = row_map.as<int32_t>();
    wcsr.arrived = arrived.as<int32_t>();
    wcsr.groups = *h.groups;
    wcsr.groups.shares = shares.as<asparse_wcsr_share>();
    wcsr.groups.splits = group_splits.as<asparse_wcsr_split>();
    wcsr.groups.slot_split = slot_split.as<int32_t>();
    wcsr.m = h.a->m;
    wcsr.k = h.a->k;
    wcsr.window_height = h.a->window_height;
    wcsr.window_col_idx = col_idx.as<int32_t>();
    wcsr.row_mask = row_mask.as<uint64_t>();
    wcsr.values = values.as<uint16_t>();
    wcsr.n_tiles = static_cast<int64_t>(h.columns() / ASPARSE_TILE_COLUMNS);
    wcsr.work = {h.work->n_tasks, h.work->n_splits, h.work->n_slots, tasks.as<asparse_wcsr_task>(),
                 splits.as<asparse_wcsr_split>()};
  }
};

struct HostSell {
  asparse_sell *a = nullptr;
  HostSell(Matrix &matrix, int32_t columns, int32_t most_steps) {
    asparse_local_csr csr = matrix.csr();
    STATUS_OK(asparse_sell_build(&csr, columns, most_steps, &a));
  }
  HostSell(const HostSell &) = delete;
  ~HostSell() { asparse_sell_destroy(&a); }
};

struct DeviceSell {
  Buffer slices, rows, entries;
  asparse_cuda_sell sell;
  DeviceSell(const HostSell &h, int32_t row_groups)
      : slices(h.a->slices, h.a->n_slices * sizeof(asparse_sell_slice)),
        rows(h.a->rows, sizeof(int32_t) * h.a->n_slices * h.a->height),
        entries(h.a->entries, sizeof(uint32_t) * (h.a->n_stored + 2 * h.a->height * ASPARSE_SELL_QUAD)), sell() {
    sell.m = h.a->m;
    sell.k = h.a->k;
    sell.columns = h.a->columns;
    sell.height = h.a->height;
    sell.n_slices = h.a->n_slices;
    sell.row_groups = row_groups;
    sell.slices = slices.as<asparse_sell_slice>();
    sell.rows = rows.as<int32_t>();
    sell.entries = entries.as<uint32_t>();
  }
};

#endif
