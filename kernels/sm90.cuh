/* The Hopper instructions the kernels use, one thin function each. Section names are those of the PTX ISA 9.0.
 * Everything here is for sm_90a. */
#ifndef ASPARSE_SM90_CUH
#define ASPARSE_SM90_CUH

#include <cuda.h> /* CUtensorMap */
#include <stdint.h>

namespace sm90 {

__device__ __forceinline__ uint32_t shared_address(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/* A place in shared memory: a pointer, or its address where a loop steps through it. */
struct Shared {
  uint32_t address;
  __device__ __forceinline__ Shared(const void *pointer) : address(shared_address(pointer)) {}
  __device__ __forceinline__ explicit Shared(uint32_t address) : address(address) {}
  __device__ __forceinline__ Shared operator+(uint32_t bytes) const { return Shared(address + bytes); }
};

/* Up to 4 µs, the same for a converged warp, at every step of a pipeline when built with -DASPARSE_RANDOM_DELAYS: an
 * ordering that only holds by luck then shows as a wrong result. */
__device__ __forceinline__ void random_delay() {
#ifdef ASPARSE_RANDOM_DELAYS
  uint32_t clock;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
  __nanosleep((clock ^ threadIdx.x >> 5) * 2654435761u >> 20);
#endif
}

/* ---- mbarrier (Parallel Synchronization and Communication Instructions: mbarrier) ---------- */

__device__ __forceinline__ void barrier_init(Shared barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier.address), "r"(arrivals) : "memory");
}

/* Makes initialised barriers visible to the copy engine. */
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(Shared barrier) {
  random_delay();
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier.address) : "memory");
}

/* Arrives and makes the phase wait for that many bytes from the copy engine. */
__device__ __forceinline__ void barrier_arrive_expect(Shared barrier, uint32_t bytes) {
  random_delay();
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier.address), "r"(bytes) : "memory");
}

/* Arrives at the same barrier of a CTA of the cluster. Orders this CTA's accesses only (release at cluster scope is a
 * fence of the whole GPU): enough to hand back memory that only the async proxy has read. */
__device__ __forceinline__ void barrier_arrive_at(Shared barrier, uint32_t cluster_rank) {
  random_delay();
  asm volatile("{\n"
               ".reg .b32 remote;\n"
               "mapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
               "}" ::"r"(barrier.address),
               "r"(cluster_rank)
               : "memory");
}

/* Returns once the phase of that parity is complete. A fresh barrier counts as having completed parity 1. */
__device__ __forceinline__ void barrier_wait(Shared barrier, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(done)
                 : "r"(barrier.address), "r"(parity)
                 : "memory");
  } while (!done);
  random_delay();
}

/* bar.sync among some of the CTA's warps; id 1 … 15 (0 is __syncthreads). */
__device__ __forceinline__ void named_barrier(int id, int threads) {
  random_delay();
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* ---- cp.async (Data Movement and Conversion Instructions: cp.async) ------------------------ */

/* 16 bytes to shared memory without a register: the first bytes ≤ 16 of global, then zeros. Both aligned to 16. */
__device__ __forceinline__ void copy_async_16(void *shared, const void *global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(bytes)
               : "memory");
}

/* Closes the group of this thread's copies. */
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Returns when at most Pending of this thread's groups are unfinished. */
template <int Pending> __device__ __forceinline__ void copy_async_wait() {
  random_delay();
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

/* ---- griddepcontrol (Parallel Synchronization and Communication Instructions) -------------- */

/* The next kernel of the stream may begin once every CTA has said so or ended. Once is enough, by any thread. */
__device__ __forceinline__ void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

/* Returns when the kernels before this one have ended, and their writes are visible. Loads through the read-only path
 * (__ldg) may move across: what those kernels write needs ordinary ones, and so does what shall be read before. */
__device__ __forceinline__ void wait_for_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/* ---- clusters (Parallel Synchronization and Communication Instructions: barrier.cluster) --- */

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/* All threads of all CTAs of the cluster meet. */
__device__ __forceinline__ void cluster_sync() {
  random_delay();
  asm volatile("barrier.cluster.arrive.release;\n"
               "barrier.cluster.wait.acquire;" ::
                   : "memory");
}

/* 16 bytes at the same place in the shared memory of a CTA of the cluster. */
__device__ __forceinline__ float4 load_at(const float4 *shared, uint32_t cluster_rank) {
  float4 x;
  asm volatile("{\n"
               ".reg .b32 remote;\n"
               "mapa.shared::cluster.u32 remote, %4, %5;\n"
               "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n"
               "}"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(shared_address(shared)), "r"(cluster_rank)
               : "memory");
  return x;
}

/* ---- TMA (Data Movement and Conversion Instructions: cp.async.bulk.tensor) ----------------- */

__device__ __forceinline__ void tma_prefetch(const CUtensorMap *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* The box of a 2-D map at (column, row) to shared memory; elements outside the tensor arrive as zeros and count. */
__device__ __forceinline__ void tma_load(Shared shared, const CUtensorMap *map, int column, int row, Shared barrier) {
  random_delay();
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
               "[%4];" ::"r"(shared.address),
               "l"(map), "r"(column), "r"(row), "r"(barrier.address)
               : "memory");
}

/* The same box to the same place in every CTA of the cluster whose bit is set; each CTA's own barrier counts it. */
__device__ __forceinline__ void tma_load_multicast(Shared shared, const CUtensorMap *map, int column, int row,
                                                   Shared barrier, uint16_t ctas) {
  random_delay();
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
               "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared.address),
               "l"(map), "r"(column), "r"(row), "r"(barrier.address), "h"(ctas)
               : "memory");
}

/* How L2 treats lines that are written: evicted before others, or not. */
__device__ __forceinline__ uint64_t l2_policy(bool evict_first) {
  uint64_t first, normal;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(normal));
  return evict_first ? first : normal;
}

/* The box from shared memory to (column, row); elements outside the tensor are dropped. */
__device__ __forceinline__ void tma_store(const CUtensorMap *map, int column, int row, const void *shared,
                                          uint64_t policy) {
  random_delay();
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::"l"(map),
      "r"(column), "r"(row), "r"(shared_address(shared)), "l"(policy)
      : "memory");
}

/* The same, added to what is there. */
__device__ __forceinline__ void tma_add(const CUtensorMap *map, int column, int row, const void *shared) {
  random_delay();
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
               "r"(column), "r"(row), "r"(shared_address(shared))
               : "memory");
}

/* Closes the group of this thread's stores. */
__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/* Waits until all but the last Pending of this thread's groups have read shared memory. */
template <int Pending> __device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

/* Orders this thread's ordinary writes of shared memory before what the async proxy (WGMMA, TMA) reads. */
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- red (Parallel Synchronization and Communication Instructions: red) -------------------- */

/* *global += x, atomically, nothing returned. */
__device__ __forceinline__ void atomic_add(float *global, float x) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(global)), "f"(x) : "memory");
}

/* Both elements, each atomically; aligned to 8 bytes. */
__device__ __forceinline__ void atomic_add(float2 *global, float2 x) {
  asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(global)), "f"(x.x),
               "f"(x.y)
               : "memory");
}

/* ---- setmaxnreg (Miscellaneous Instructions) ----------------------------------------------- */

template <int Registers> __device__ __forceinline__ void registers_give() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers> __device__ __forceinline__ void registers_take() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/* ---- WGMMA (Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions) ---------- */

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/* Returns when at most Pending of the committed groups are unfinished. */
template <int Pending> __device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/* How 16-byte pieces of an operand's rows are permuted in shared memory, as bits 62–63 of its descriptor. */
enum class Swizzle : uint64_t { k128 = 1, k32 = 3 };

/* Matrix descriptor for an operand in shared memory (Matrix Descriptor Format): address in bits 0–13, leading offset in
 * 16–29, stride offset in 32–45, each in units of 16 bytes. */
__device__ __forceinline__ uint64_t wgmma_descriptor(Shared shared, uint32_t leading_bytes, uint32_t stride_bytes,
                                                     Swizzle swizzle = Swizzle::k128) {
  return static_cast<uint64_t>((shared.address & 0x3ffff) >> 4) | static_cast<uint64_t>(leading_bytes >> 4) << 16 |
         static_cast<uint64_t>(stride_bytes >> 4) << 32 | static_cast<uint64_t>(swizzle) << 62;
}

/* d += A·B, m64nNk16, bf16 in, fp32 accumulated; A K-major, B MN-major (its rows are k, as row-major B has them).
 * Lane l of warp w holds row 16·w + l/4 (+ 8), columns 8·j + 2·(l%4) + {0, 1}: d[4·j + {0, 1}] (+ 2). */
template <int N> __device__ __forceinline__ void wgmma(float (&d)[N / 2], uint64_t a, uint64_t b);

/* Operand lists: eight accumulators from d[i] on, then 32. */
#define SM90_D8(i)                                                                                                     \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),          \
      "+f"(d[i + 7])
#define SM90_D32(i) SM90_D8(i), SM90_D8(i + 8), SM90_D8(i + 16), SM90_D8(i + 24)

#define SM90_NAMES_0                                                                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                             \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SM90_NAMES_1                                                                                                   \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                   \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SM90_NAMES_2                                                                                                   \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                                   \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define SM90_NAMES_3                                                                                                   \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "                       \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define SM90_WGMMA(N, A, B, NAMES, ...)                                                                                \
  template <> __device__ __forceinline__ void wgmma<N>(float(&d)[N / 2], uint64_t a, uint64_t b) {                     \
    asm volatile("{\n"                                                                                                 \
                 ".reg .pred p;\n"                                                                                     \
                 "setp.eq.u32 p, 0, 0;\n"                                                                              \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" NAMES "}, " A ", " B                     \
                 ", p, 1, 1, 0, 1;\n"                                                                                  \
                 "}"                                                                                                   \
                 : __VA_ARGS__                                                                                         \
                 : "l"(a), "l"(b));                                                                                    \
  }
SM90_WGMMA(64, "%32", "%33", SM90_NAMES_0, SM90_D32(0))
SM90_WGMMA(128, "%64", "%65", SM90_NAMES_0 ", " SM90_NAMES_1, SM90_D32(0), SM90_D32(32))
SM90_WGMMA(192, "%96", "%97", SM90_NAMES_0 ", " SM90_NAMES_1 ", " SM90_NAMES_2, SM90_D32(0), SM90_D32(32), SM90_D32(64))
SM90_WGMMA(256, "%128", "%129", SM90_NAMES_0 ", " SM90_NAMES_1 ", " SM90_NAMES_2 ", " SM90_NAMES_3, SM90_D32(0),
           SM90_D32(32), SM90_D32(64), SM90_D32(96))
#undef SM90_WGMMA
#undef SM90_NAMES_0
#undef SM90_NAMES_1
#undef SM90_NAMES_2
#undef SM90_NAMES_3
#undef SM90_D32
#undef SM90_D8

} // namespace sm90

#endif
