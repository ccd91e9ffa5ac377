/* What graft bench times: large tensors, where the device and not the call is the limit, and one call that is nothing
 * but overhead. */
#include "bench.h"

/* Two operations (a product and a sum) for each term of a matrix product or a convolution. */
#define PRODUCT(m, n, k) (2.0 * (m) * (n) * (k))

const bench_row bench_rows[] = {
    /* overhead */
    {"aten::add.Tensor f32[16] f32[16]", 0, 0},
    /* pointwise: 64 MiB a tensor */
    {"aten::add.Tensor f32[16777216] f32[16777216]", 0, 0},
    {"aten::add.Tensor f16[16777216] f16[16777216]", 0, 0},
    {"aten::add.Tensor f32[4096,4096]:1,4096 f32[4096,4096]", 0, 0},
    {"aten::mul.Tensor f32[4096,4096] f32[4096]", 0, 0},
    {"aten::div.Tensor f32[16777216] f32[16777216]", 0, 0},
    {"aten::exp f32[16777216]", 0, 0},
    {"aten::tanh f32[16777216]", 0, 0},
    {"aten::gelu f32[16777216]", 0, 0},
    {"aten::where.self bool[16777216] f32[16777216] f32[16777216]", 0, 0},
    {"aten::_to_copy f32[16777216] f16", 0, 0},
    /* movement */
    {"aten::clone f32[4096,4096]:1,4096 'contiguous'", 0, 0},
    {"aten::cat {f32[2048,4096];f32[2048,4096]} 0", 0, 0},
    {"aten::full [16777216] 1.0 f32", 0, 0},
    /* reductions and scans */
    {"aten::sum.dim_IntList f32[16777216] [0]", 0, 0},
    {"aten::sum.dim_IntList f32[4096,4096] [1]", 0, 0},
    {"aten::sum.dim_IntList f32[4096,4096] [0]", 0, 0},
    {"aten::amax f32[4096,4096] [1]", 0, 0},
    {"aten::argmax f32[4096,4096] 1", 0, 0},
    {"aten::cumsum f32[1024,4096] 1", 0, 0},
    /* rows */
    {"aten::_softmax f32[4096,1024] 1 false", 0, 0},
    {"aten::native_layer_norm f32[4096,1024] [1024] f32[1024] f32[1024] 1e-5", 0, 0},
    /* products */
    {"aten::mm f32[512,512] f32[512,512]", PRODUCT(512, 512, 512), 0},
    {"aten::mm f32[1024,1024] f32[1024,1024]", PRODUCT(1024, 1024, 1024), 0},
    {"aten::mm f32[2048,2048] f32[2048,2048]", PRODUCT(2048, 2048, 2048), 0},
    {"aten::mm f16[1024,1024] f16[1024,1024]", PRODUCT(1024, 1024, 1024), 0},
    {"aten::bmm f32[16,256,256] f32[16,256,256]", 16 * PRODUCT(256, 256, 256), 0},
    {"aten::convolution f32[8,32,56,56] f32[64,32,3,3] _ [1,1] [1,1] [1,1] false [0,0] 1",
     PRODUCT(8 * 64 * 56.0 * 56.0, 1, 32 * 9), 0},
    {"aten::max_pool2d_with_indices f32[8,64,56,56] [2,2]", 0, 0},
    /* indexing, sorting, random numbers */
    {"aten::embedding f32[30000,768] i64[8192]", 0, 30000},
    {"aten::gather f32[4096,1024] 1 i64[4096,1024]", 0, 1024},
    {"aten::sort f32[1024,1024] 1", 0, 0},
    {"aten::native_dropout f32[16777216] 0.1 true", 0, 0},
};
const size_t bench_row_count = sizeof bench_rows / sizeof *bench_rows;
