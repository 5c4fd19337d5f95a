/* The pipelined steps of the BCSR ladder: warp specialisation (bcsr_ring.cuh), with its options. */
#include "kernels/bcsr_launch.h"
#include "kernels/bcsr_ring.cuh"
#include "kernels/bcsr_store.cuh"
#include "kernels/launch.cuh"

namespace {

using namespace bcsr;

/* Tiles: groups of block rows × column tiles of a cluster, in bands of groups whose blocks stay in L2, groups fastest:
 * clusters that run together read the same columns of B, and B is read from memory once a band. */
struct Tiles {
  int32_t n_groups, column_tiles, band; /* band: groups */
};

struct Problem {
  CUtensorMap blocks_map, b_map, c_map;
  asparse_cuda_bcsr a;
  asparse_cuda_dense_pair bc;
  Tiles tiles;
  bool c_by_boxes;
  bool c_streams; /* lines of C leave L2 before those of A and B */
};

/* The tiles of one cluster: one of a grid, or every so many. */
template <class P> struct TileWalk {
  int first = 0, height, at, column_tile; /* band [first, first + height), group first + at */
  __device__ __forceinline__ explicit TileWalk(const Tiles &tiles) {
    at = blockIdx.x / (P::Cluster * P::Shares);
    column_tile = blockIdx.y;
    height = P::Persistent ? min(tiles.band, tiles.n_groups) : tiles.n_groups;
    normalize(tiles);
  }
  __device__ __forceinline__ void normalize(const Tiles &tiles) {
    while (at >= height && height > 0) {
      at -= height;
      if (++column_tile < tiles.column_tiles) continue;
      column_tile = 0;
      first += height;
      height = min(tiles.band, tiles.n_groups - first);
    }
  }
  __device__ __forceinline__ void advance(const Tiles &tiles) {
    if constexpr (P::Persistent) at += gridDim.x / P::Cluster, normalize(tiles);
    else height = 0;
  }
  __device__ __forceinline__ bool done() const { return height <= 0; }
  __device__ __forceinline__ int group() const { return first + at; }
  __device__ __forceinline__ int column() const {
    return (column_tile * P::Cluster + blockIdx.x % P::Cluster) * P::Columns;
  }
  __device__ __forceinline__ Range steps(const asparse_cuda_bcsr &a) const {
    return done() ? Range{0, 0} : steps_of<P>(a, group());
  }
};

/* Block row i of a group, -1: none. */
template <class P> __device__ __forceinline__ int block_row_of(const asparse_cuda_bcsr &a, int group, int i) {
  if constexpr (P::Rows == 1) return group;
  else return __ldg(a.groups.block_rows + group * P::Rows + i);
}

/* Most block rows of a halo part. */
__device__ __forceinline__ bool block_row_is_empty(const asparse_cuda_bcsr &a, int block_row) {
  return a.block_row_ptr[block_row] == a.block_row_ptr[block_row + 1];
}

/* The producer's part: reads of indices are a tile ahead, those of their places two. */
template <class P>
__device__ __forceinline__ void produce_tiles(const Ring &ring, const Problem &p, TileWalk<P> tile, Range range) {
  const int lane = threadIdx.x % 32;
  Place<P> place(ring);
  TileWalk<P> ahead = tile;
  ahead.advance(p.tiles);
  Range next_range = ahead.steps(p.a);
  int4 steps = load_step<P>(p.a, range.begin + lane, range.end);
  sm90::wait_for_previous();
  for (; !tile.done(); tile.advance(p.tiles)) {
    const int4 next_steps = load_step<P>(p.a, next_range.begin + lane, next_range.end);
    ahead.advance(p.tiles);
    const Range range_after = ahead.steps(p.a);
    produce<P>(ring, place, &p.blocks_map, &p.b_map, p.a, range, steps, tile.column());
    range = next_range, next_range = range_after, steps = next_steps;
  }
}

template <class P>
__device__ __forceinline__ void consume_tiles(const Ring &ring, const Problem &p, TileWalk<P> tile, Range range,
                                              int consumer) {
  sm90::wait_for_previous();
  const uint64_t policy = sm90::l2_policy(p.c_streams);
  Place<P> place(ring);
  auto box_at = [&](int box) {
    if constexpr (P::Persistent) return ring.boxes + (consumer * P::Boxes + box % P::Boxes) * kBoxBytes;
    constexpr int kInSlice = P::SliceBytes / kBoxBytes;
    return ring.stages + box / kInSlice * P::StageBytes + kBoxBytes + consumer * P::SliceBytes +
           box % kInSlice * kBoxBytes;
  };
  while (!tile.done()) {
    const int block_row = block_row_of<P>(p.a, tile.group(), consumer / P::Slices);
    const int column = tile.column() + consumer % P::Slices * P::N, n_steps = range.end - range.begin;
    tile.advance(p.tiles);
    range = tile.steps(p.a);
    float d[P::N / 2];
    consume<P>(d, ring, place, consumer, n_steps);
    if (tile.done()) sm90::let_next_begin();
    if constexpr (P::Shares > 1) {
      if (!add_shares<P>(d, box_at)) continue;
    }
    if (block_row < 0 || (p.bc.accumulate && block_row_is_empty(p.a, block_row))) continue;
    const int64_t row = int64_t{block_row} * kBlock;
    repair(d, p.a, p.bc, row, column);
    store_part<P::N, P::Boxes>(d, box_at, consumer, p.c_by_boxes, &p.c_map, p.a.m, p.bc, row, column, policy);
  }
  if (threadIdx.x % kWarpgroup == 0) sm90::tma_store_wait<0>();
}

template <class P>
__global__ void __launch_bounds__(P::Threads, P::Ctas) pipeline_kernel(const __grid_constant__ Problem p) {
  const int warpgroup = threadIdx.x / kWarpgroup;
  if (threadIdx.x == 0) {
    sm90::tma_prefetch(&p.blocks_map);
    sm90::tma_prefetch(&p.b_map);
    if (p.c_by_boxes) sm90::tma_prefetch(&p.c_map);
  }
  const TileWalk<P> tile(p.tiles);
  const Range range = tile.steps(p.a); /* read while the ring is made */
  const Ring ring = ring_create<P>(aligned_shared());
  if (warpgroup == P::Consumers) {
    if constexpr (P::MovesRegisters) sm90::registers_give<P::ProducerRegisters>();
    if (threadIdx.x < P::Consumers * kWarpgroup + 32) produce_tiles<P>(ring, p, tile, range);
    if constexpr (P::Shares > 1) sm90::cluster_sync(); /* see add_shares */
  } else {
    if constexpr (P::MovesRegisters) sm90::registers_take<P::ConsumerRegisters>();
    consume_tiles<P>(ring, p, tile, range, warpgroup);
  }
  if constexpr (P::Cluster * P::Shares > 1)
    sm90::cluster_sync(); /* shared memory stays while others of the cluster use it */
}

/* CTAs that run at once, whole clusters. */
template <class P> cudaError_t resident_clusters(const cudaLaunchConfig_t &launch, int64_t n_tiles, int *clusters) {
  int device, multiprocessors;
  cudaError_t error;
  if ((error = cudaGetDevice(&device)) != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  *clusters = multiprocessors * P::Ctas / P::Cluster;
  if (P::Cluster > 1 && n_tiles >= *clusters / 2)
    return cudaOccupancyMaxActiveClusters(clusters, pipeline_kernel<P>, &launch);
  return cudaSuccess;
}

/* So many groups that their blocks take a quarter of the L2. */
int32_t band_of(const asparse_cuda_bcsr *a, int32_t n_groups) {
  const int64_t most_bytes = 12 << 20, bytes = a->n_blocks * kBoxBytes;
  const int64_t bands = bytes / most_bytes + 1;
  return static_cast<int32_t>((n_groups + bands - 1) / bands);
}

/* C of that size would push A and B out of L2: 60 MB on an H200, where it gains 0 to 2 %. */
constexpr int64_t kStreamedBytes = 24 << 20;

/* What the kernel is told, and the grid it takes when it is not persistent. */
template <class P>
cudaError_t prepare(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, Problem *p, dim3 *grid) {
  if (P::Rows > 1 && a->groups.rows != P::Rows) return cudaErrorInvalidValue;
  const int32_t n_groups = P::Rows > 1 ? a->groups.n_groups : a->n_block_rows;
  const int64_t cluster_columns = P::Columns * P::Cluster,
                column_tiles = (bc->n + cluster_columns - 1) / cluster_columns;
  if (column_tiles > 65535) return cudaErrorInvalidValue;
  p->a = *a;
  p->bc = *bc;
  p->tiles = {n_groups, static_cast<int32_t>(column_tiles), band_of(a, n_groups)};
  p->c_by_boxes = asparse_tma_can_address(bc->c, a->m, bc->n, bc->ldc * bcsr_c_element(bc)) &&
                  !(bc->accumulate && bc->c_dtype == ASPARSE_BF16);
  p->c_streams = int64_t{a->m} * bc->n * bcsr_c_element(bc) > kStreamedBytes;
  *grid = dim3(n_groups * P::Cluster * P::Shares, static_cast<unsigned>(column_tiles));
  cudaError_t error;
  if ((error = asparse_bcsr_map_blocks(&p->blocks_map, a, kBlock / P::Cluster)) != cudaSuccess) return error;
  if ((error = asparse_bcsr_map_b(&p->b_map, a->k, bc)) != cudaSuccess) return error;
  return p->c_by_boxes ? asparse_bcsr_map_c(&p->c_map, a->m, bc) : cudaSuccess;
}

template <class P>
cudaError_t launch(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
  Problem p = {};
  cudaLaunchConfig_t config = {};
  cudaError_t error = prepare<P>(a, bc, &p, &config.gridDim);
  if (error != cudaSuccess) return error;
  error = cudaFuncSetAttribute(pipeline_kernel<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::SharedBytes);
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute attributes[2] = {may_begin_early()}, &cluster = attributes[1];
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = P::Cluster * P::Shares;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.blockDim = dim3(P::Threads);
  config.dynamicSmemBytes = P::SharedBytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = P::Cluster * P::Shares > 1 ? 2 : 1;
  if (P::Persistent) {
    const int64_t n_tiles = int64_t{p.tiles.n_groups} * p.tiles.column_tiles;
    int clusters;
    if ((error = resident_clusters<P>(config, n_tiles, &clusters)) != cudaSuccess) return error;
    config.gridDim = dim3((n_tiles < clusters ? static_cast<int>(n_tiles) : clusters) * P::Cluster);
  }
  return cudaLaunchKernelEx(&config, pipeline_kernel<P>, p);
}

struct Compiled {
  asparse_bcsr_pipeline_config config;
  asparse_bcsr_launcher *launch;
};

template <int Rows, int Consumers, int N, int Stages, int Boxes, int Cluster = 1, int Shares = 1>
constexpr Compiled compile() {
  using P = Pipeline<Rows, Consumers, N, Stages, Boxes, Cluster, Shares>;
  return {{Rows, P::Columns, Stages, Cluster, Shares, P::Persistent}, launch<P>};
}

const Compiled compiled[] = {
    compile<1, 1, 64, 4, 0>(),       compile<1, 2, 64, 4, 0>(),       compile<1, 2, 128, 5, 0>(),
    compile<1, 2, 256, 3, 0>(),      compile<1, 1, 64, 4, 0, 1, 2>(), compile<1, 1, 64, 4, 0, 1, 4>(),
    compile<1, 1, 64, 4, 0, 1, 8>(), compile<1, 2, 64, 4, 0, 1, 2>(), compile<1, 2, 128, 5, 0, 2>(),
    compile<1, 2, 128, 4, 4>(),      compile<2, 2, 192, 4, 3>(),      compile<2, 2, 256, 4, 2>()};
static_assert(sizeof compiled / sizeof *compiled == ASPARSE_BCSR_PIPELINE_CONFIGS, "");

bool equal(const asparse_bcsr_pipeline_config &x, const asparse_bcsr_pipeline_config &y) {
  return x.tile_rows == y.tile_rows && x.tile_columns == y.tile_columns && x.stages == y.stages &&
         x.cluster == y.cluster && x.shares == y.shares && x.persistent == y.persistent;
}

} // namespace

asparse_bcsr_pipeline_config asparse_bcsr_pipeline_compiled(int i) { return compiled[i].config; }

cudaError_t asparse_bcsr_pipeline(const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc,
                                  asparse_bcsr_pipeline_config config, cudaStream_t stream) {
  bool done;
  const cudaError_t error = bcsr_begin(a, bc, true, stream, &done);
  if (error != cudaSuccess || done) return error;
  for (const Compiled &candidate : compiled)
    if (equal(candidate.config, config)) return candidate.launch(a, bc, stream);
  return cudaErrorInvalidValue;
}
