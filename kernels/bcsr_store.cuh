/* C from the accumulators of a consumer through shared memory and the copy engine: whole 128-byte lines. */
#ifndef ASPARSE_BCSR_STORE_CUH
#define ASPARSE_BCSR_STORE_CUH

#include "kernels/bcsr_tile.cuh"

namespace bcsr {

/* Stores 64 × N of C, clipped to [m × n] by the tensor map, in boxes of 64 rows × 128 bytes. box_at(i): room for box i,
 * which nothing else reads or writes. Boxes 0: there is room for all, at once; otherwise box i is where box i + Boxes
 * is. The caller's thread 0 ends with tma_store_wait<0>. */
template <typename T, int N, int Boxes, typename BoxAt>
__device__ __forceinline__ void store_boxes(const float (&d)[N / 2], BoxAt box_at, int consumer,
                                            const CUtensorMap *c_map, int row, int column, bool accumulate,
                                            uint64_t policy) {
  constexpr int kColumns = 128 / sizeof(T), kBoxes = N / kColumns, kStep = Boxes == 0 ? kBoxes : 1;
  constexpr int kRoom = Boxes == 0 || Boxes > kBoxes ? kBoxes : Boxes; /* for boxes of different places */
  static_assert(kBoxes % kRoom == 0, "the next tile starts with box 0 and finds the others unread");
  constexpr int kUnread = Boxes == 0 ? 0 : kRoom - 1;
  const int thread = threadIdx.x % kWarpgroup;
#pragma unroll
  for (int first = 0; first < kBoxes; first += kStep) {
    if (thread == 0) sm90::tma_store_wait<kUnread>();
    sm90::named_barrier(1 + consumer, kWarpgroup); /* what these boxes held has been read */
#pragma unroll
    for (int i = 0; i < kStep * kColumns / 8; i++) {
      const int j = first * kColumns / 8 + i;
      uint8_t *box = box_at(j * 8 / kColumns);
      const int byte = fragment_column(j) % kColumns * int{sizeof(T)};
#pragma unroll
      for (int half = 0; half < 2; half++)
        store_pair(reinterpret_cast<T *>(box + swizzled(fragment_row(half), byte)), d[4 * j + 2 * half],
                   d[4 * j + 2 * half + 1]);
    }
    sm90::fence_async_proxy();
    sm90::named_barrier(1 + consumer, kWarpgroup);
    if (thread == 0) {
#pragma unroll
      for (int i = 0; i < kStep; i++) {
        const int box = first + i;
        if (accumulate) sm90::tma_add(c_map, column + box * kColumns, row, box_at(box));
        else sm90::tma_store(c_map, column + box * kColumns, row, box_at(box), policy);
      }
      sm90::tma_store_commit();
    }
  }
}

/* By boxes where C allows it, else by the threads. The copy engine clips stores to whole 16-byte pieces, so a ragged
 * edge is left to the threads too. */
template <int N, int Boxes, typename BoxAt>
__device__ __forceinline__ void store_part(const float (&d)[N / 2], BoxAt box_at, int consumer, bool by_boxes,
                                           const CUtensorMap *c_map, int m, const asparse_cuda_dense_pair &bc,
                                           int64_t row, int column, uint64_t policy) {
  const bool bf16 = bc.c_dtype == ASPARSE_BF16;
  const int first_row = static_cast<int>(row);
  if (column >= bc.n) return;
  if (!by_boxes || (column + N > bc.n && bc.n % (bf16 ? 8 : 4) != 0)) store_direct<N>(d, m, bc, row, column);
  else if (bf16) store_boxes<__nv_bfloat16, N, Boxes>(d, box_at, consumer, c_map, first_row, column, false, policy);
  else store_boxes<float, N, Boxes>(d, box_at, consumer, c_map, first_row, column, bc.accumulate, policy);
}

} // namespace bcsr

#endif
