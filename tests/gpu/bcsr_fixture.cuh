/* What the GPU tests of BCSR kernels share: the matrix on the device, and the ladder's variants under one signature. */
#ifndef BCSR_FIXTURE_CUH
#define BCSR_FIXTURE_CUH

#include <functional>

#include "kernels/cuda_bcsr.h"
#include "tests/gpu/sparse_fixture.cuh"

struct HostGroups {
  asparse_bcsr_groups *g = nullptr;
  HostGroups(const asparse_bcsr *a, int32_t rows) { STATUS_OK(asparse_bcsr_groups_build(a, rows, &g)); }
  HostGroups(const HostGroups &) = delete;
  ~HostGroups() { asparse_bcsr_groups_destroy(&g); }
};

/* Groups of 1 … ASPARSE_BCSR_MOST_ROWS block rows. */
struct DeviceGroups {
  Buffer block_rows, step_ptr, steps;
  asparse_bcsr_groups groups;
  explicit DeviceGroups(const asparse_bcsr_groups &g)
      : block_rows(g.block_rows, int64_t{g.n_groups} * g.rows * sizeof(int32_t)),
        step_ptr(g.step_ptr, (g.n_groups + int64_t{1}) * sizeof(int32_t)),
        steps(g.steps, g.n_steps * sizeof(asparse_bcsr_step)), groups(g) {
    groups.block_rows = block_rows.as<int32_t>();
    groups.step_ptr = step_ptr.as<int32_t>();
    groups.steps = steps.as<asparse_bcsr_step>();
  }
};

struct DeviceBcsr {
  Buffer block_row_ptr, block_col_idx, entry_mask, blocks;
  DeviceGroups pairs;
  asparse_cuda_bcsr bcsr; /* without groups */
  explicit DeviceBcsr(const asparse_bcsr *a)
      : block_row_ptr(a->block_row_ptr, (a->n_block_rows + 1) * sizeof(int64_t)),
        block_col_idx(a->block_col_idx, a->block_row_ptr[a->n_block_rows] * sizeof(int32_t)),
        entry_mask(a->entry_mask, a->block_row_ptr[a->n_block_rows] * 64 * sizeof(uint64_t)),
        blocks(a->blocks, a->block_row_ptr[a->n_block_rows] * 64 * 64 * sizeof(uint16_t)), pairs(*HostGroups(a, 2).g),
        bcsr() {
    bcsr.m = a->m;
    bcsr.k = a->k;
    bcsr.n_block_rows = a->n_block_rows;
    bcsr.n_blocks = a->block_row_ptr[a->n_block_rows];
    bcsr.block_row_ptr = block_row_ptr.as<int64_t>();
    bcsr.block_col_idx = block_col_idx.as<int32_t>();
    bcsr.entry_mask = entry_mask.as<uint64_t>();
    bcsr.blocks = blocks.as<uint16_t>();
  }
  /* With groups of that many block rows. */
  asparse_cuda_bcsr with_groups(int rows) const {
    asparse_cuda_bcsr a = bcsr;
    a.groups = rows == 2 ? pairs.groups : asparse_bcsr_groups{};
    return a;
  }
};

struct BcsrVariant {
  std::string name;
  bool needs_aligned_b; /* b a multiple of 16 bytes, ldb of 8 */
  int tile_rows;        /* what groups it takes; 1: none */
  std::function<asparse_bcsr_launcher> multiply;
};

/* The steps, the choice, then every configuration of the pipeline: rows x columns x stages, c cluster, s shares, p
 * persistent. */
inline std::vector<BcsrVariant> bcsr_variants() {
  std::vector<BcsrVariant> variants;
  for (const asparse_bcsr_variant &step : asparse_bcsr_ladder)
    variants.push_back(
        {step.name, step.needs_aligned_b, step.needs_groups ? ASPARSE_BCSR_GROUP_ROWS : 1, step.multiply});
  variants.push_back({"multiply", false, ASPARSE_BCSR_GROUP_ROWS, asparse_bcsr_multiply});
  for (int i = 0; i < ASPARSE_BCSR_PIPELINE_CONFIGS; i++) {
    const asparse_bcsr_pipeline_config config = asparse_bcsr_pipeline_compiled(i);
    char name[64];
    std::snprintf(name, sizeof name, "%dx%dx%d c%d s%d%s", config.tile_rows, config.tile_columns, config.stages,
                  config.cluster, config.shares, config.persistent ? " p" : "");
    variants.push_back({name, true, config.tile_rows,
                        [config](const asparse_cuda_bcsr *a, const asparse_cuda_dense_pair *bc, cudaStream_t stream) {
                          return asparse_bcsr_pipeline(a, bc, config, stream);
                        }});
  }
  return variants;
}

#endif
