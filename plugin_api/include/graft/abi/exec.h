/* Graft plugin ABI: the call of an op.
 *
 * A slot takes (exec, args). args is a generated struct, one for each overload, headed by graft_args. The host has done
 * the dull part before: promotion, broadcasting (stride 0), negative dims, defaults, empty tensors, overlap checks and
 * the allocation of outputs. Unless its capabilities ask for more, a slot sees contiguous, aligned, non-empty tensors
 * of the promoted dtype, and outputs that share no memory with inputs.
 *
 * A slot submits its work to exec->stream and returns; it never waits for the device, except that an op whose output
 * size depends on data may wait on its own event (and is GRAFT_UNIMPLEMENTED while capturing). It returns
 * GRAFT_UNIMPLEMENTED before any side effect for a case it does not serve (the host then takes another way and
 * remembers it), and answers the same for the same case every time, whatever numbers come as host values, and, under
 * GRAFT_CAP_MEMO_IGNORES_SCALARS, as float and Scalar arguments.
 *
 * An elementwise op (its tensors all broadcast to the shape of its result, and no argument speaks of a dim) may see its
 * dims permuted, merged and without those of size 1, all tensors alike: what belongs together stays together, but
 * shapes and ranks are not the caller's. Ops that draw random numbers see them as they are.
 *
 * Tables hold functional forms. In-place and out calls use the same slot: an output descriptor then equals an input's
 * (buffer, offset, strides), only if the capabilities say GRAFT_CAP_IN_PLACE. Partial overlap never reaches a slot. A
 * result that is a list of tensors is a list of outputs, one for each item of the list that the op works on, and each
 * may be in place. What is written beyond the results is said above the args struct. Accumulation is in f32 for f16,
 * bf16 and f32, in f64 for f64, exact for integers; wider is allowed, narrower is a bug.
 *
 * An output that is not wanted is NULL. An output whose shape the op finds is a graft_output, given to
 * graft_host.output_shape. Arguments are appended in later minors, and their zero means the old behaviour; any other
 * change of a schema is another op, with an id and a slot of its own. A value of a str argument (GRAFT_STR_*) that a
 * slot does not know is GRAFT_UNIMPLEMENTED.
 *
 * Above an args struct stands the schema and, after "Prepared:", what the host has done to the arguments, whatever the
 * caller gave. Tensors are `promoted` to the dtype that the op computes in, `broadcast` to the shape of the result,
 * or come `as indices`; others are as the caller has them. Numbers and lists are `none negative` (dims counted from the
 * front), `ascending`, `never absent`, `never empty`, `at full length` (that of the schema) or `one a spatial dim`; of
 * the rest only the schema's defaults are filled in. Outputs that may be NULL are named; others never are.
 *
 * What PyTorch leaves to its kernels is said here. _weight_int4pack_mm: self [m, k] times weights of n columns, of
 * which mat2 [n, k/2], u8, has two in each byte: that of an even k in the high four bits, the next one in the low four.
 * As numbers q of 0 to 15 they stand for (q - 8) s + z, where qScaleAndZeros [k / qGroupSize, n, 2] has s and then z of
 * a group. _weight_int8pack_mm: mat2 [n, k] times scales [n]. _scaled_mm: scales multiply the product, of one number
 * each or by row [m, 1] and column [1, n]; then bias is added; a result in float8 is multiplied by scale_result.
 * _grouped_mm: group g ends before offs[g], where group g + 1 begins: rows of self [m, k] beside mat2 [groups, k, n],
 * columns of mat2 [k, n] beside self [groups, m, k], or of two matrices places of k, which gives [groups, m, n]; what
 * is in no group is 0.
 *
 * Indices in a tensor are checked by the slot, which is the first to read them: one that lies outside what it addresses
 * is GRAFT_OUT_OF_RANGE, at the call or at the next wait as a fault of its stream, and nothing outside a tensor is read
 * or written. A slot that cannot do so says GRAFT_CAP_HOST_CHECKS_INDICES: the host then reads them before each call,
 * which waits for the device, and never calls the slot with one that is out of range. */
#ifndef GRAFT_ABI_EXEC_H
#define GRAFT_ABI_EXEC_H

#include "graft/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t graft_exec_flags;
enum {
  GRAFT_EXEC_DETERMINISTIC = 0x1, /* the same inputs give the same bits, or GRAFT_UNIMPLEMENTED */
  GRAFT_EXEC_CAPTURING = 0x2,     /* work is recorded, not run; sent only as "graft.capture" says (extension.h) */
  /* A hint: matrix products of f32 may round their inputs to 10 mantissa bits (tf32) or more. A permission, not a
   * demand: a plugin that ignores it is right. Without it, f32 means f32. */
  GRAFT_EXEC_ALLOW_TF32 = 0x10000
};

/* How to run one op. Belongs to the host, lives until the slot returns. */
typedef struct graft_exec {
  size_t struct_size;
  graft_device *device;
  graft_stream *stream;
  graft_exec_flags flags; /* must-understand bits only as the op's capabilities list them */
  uint32_t reserved;
  void *host_context; /* the host's own */
  /* What this plugin published with graft_host.memo_publish for the same op, device, dtypes, shapes, strides,
   * alignments (of first bytes in their buffers, as far as 512 bytes or the device's own where that is more), other
   * arguments and flags, and for outputs that share memory with tensors among the arguments in the same way; NULL
   * before. Whether two arguments share memory, numbers that come as host values and GRAFT_EXEC_CAPTURING are no part
   * of that. Several streams may use one memo at once. */
  void *memo;
} graft_exec;

/* Heads every args struct; frozen. struct_size is the size of the whole args struct as the host knows it. */
typedef struct graft_args {
  size_t struct_size;
  uint32_t op_id; /* GRAFT_OP_* */
  uint32_t reserved;
} graft_args;

/* The random stream of one call: Philox 4x32-10 with key = seed (low word first). What is drawn from it is said here
 * and nowhere else, and is the same on every device.
 *
 * Word k of the stream is word k mod 4 of the block whose 128-bit counter is offset/4 + k/4 (high words 0). Element i
 * of the output, in logical (row-major) order, takes word i, or the two words 2i (low) and 2i+1 (high) for f64 and
 * where it says r. For n elements the host advances offset by 4*ceil(n/4), by 4*ceil(n/2) where each takes two words,
 * whichever path runs the op. A complex number is two elements, the real part first. In what follows
 *   u   is uniform in [0, 1): (w >> 8) * 2^-24 of the element's word; for f64 (r >> 11) * 2^-53. Half types and
 *       integers draw as f32, and are rounded once, at the end.
 *   r   are 64 bits: high << 32 | low, in every dtype.
 *   z   is normal, by Box-Muller on pairs of elements (2j, 2j+1) with their u1 and u2: sqrt(-2 ln(1 - u1)) times
 *       cos(2 pi u2) and sin(2 pi u2). A last element without partner is the first of a pair.
 *
 *   rand, uniform       u; half types truncated, not rounded, so that 1 is never reached. With bounds other than 0 and
 *                       1: from + u (to - from), in at most two roundings.
 *   randn, normal       z; mean + std z. Each part of a complex number has mean and std / sqrt(2).
 *   bernoulli           1 where u < p, else 0: p is the chance of a 1. The result's dtype says how u is drawn; a tensor
 *                       of chances keeps its own dtype, and u is compared with its values as they are.
 *   native_dropout      an element is kept where u < 1 - p (the difference in f64), and is then multiplied by 1 / (1 -
 *                       p); else it is 0. Where it is not training nothing is drawn.
 *   exponential         -ln(1 - u) / lambd, where u = 0 counts as 2^-24 (f64: 2^-53): the result is above 0.
 *   cauchy              median + sigma tan(pi (u - 1/2)), where u = 0 counts as for exponential.
 *   geometric           the larger of 1 and ceil(ln(1 - u) / ln(1 - p)), in every dtype.
 *   log_normal          e to the power of mean + std z.
 *   _standard_gamma     by Marsaglia and Tsang (ACM Transactions on Mathematical Software 26, 2000), in attempts.
 *                       Attempt t of element i, of shape a, takes the block whose counter is offset/4 + i in its low 64
 *                       bits and t in its high 64 bits: four words, each a u of f32; for f64 the blocks of 2t and 2t +
 *                       1, two words each. The first two u give the z of an even element, the others are u3 and u4.
 *                       With d = a - 1/3, or a + 2/3 where a < 1, and y = 1 + z / sqrt(9 d), that attempt counts which
 *                       is the first with y > 0 and ln(1 - u3) < z^2 / 2 + d (1 - y^3 + ln(y^3)). The result is d y^3,
 *                       times (1 - u4)^(1/a) where a < 1, and the smallest normal number at least; d after 64 attempts.
 *                       It is that smallest number for a = 0, infinite for an infinite a, NaN for other a that are not
 *                       above 0. For n elements the host advances offset by 4n.
 *   rrelu_with_noise    in training, for x <= 0, a slope: lower + u (upper - lower), as one difference and one fused
 *                       multiplication and addition of the bounds in f32 (f64: in f64), then rounded to the dtype; for
 *                       other x it is 1. The slope is the element of noise, x times it the result. Else nothing is
 *                       drawn.
 *   random.from         from + floor(r (to - from) / 2^64), in every dtype. Without `to` it counts as 2^63. The host
 *                       has brought the bounds into the dtype.
 *   randint.low         the same, with low and high.
 *   multinomial         samples are the elements, row by row. With v = (r >> 11) * 2^-53 and the row's weights summed
 *                       in f64, in order of the categories: the first category whose running sum is above v total, or
 *                       equals the total. Without replacement a category that was taken has no weight for the row's
 *                       later samples; where no weight is left, it is the first category that was not taken.
 *   randperm            the numbers 0 to n-1, sorted by their r as unsigned numbers, stably.
 *   attention           (_scaled_dot_product_fused_attention_overrideable) a weight is dropped as native_dropout does
 *                       it, with the u of f32 in every dtype; elements are [batch, heads, query, key]. The op puts out
 *                       the seed and the offset it drew from, both 0 where dropout_p is 0 and nothing is drawn; its
 *                       backward, which is given them, draws the same numbers and advances nothing.
 *
 * Words, what is compared with them, integers, choices and slopes are exact; what takes a logarithm or an angle is held
 * to the limit of that function in the dtype; an attempt that rounding decides may go either way. What cauchy,
 * geometric, log_normal and _standard_gamma draw is said since ABI 1.2: their slots in older plugins are not called.
 * Known-answer vectors: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), and
 * tests/fixtures/random_vectors.h. */
typedef struct graft_philox {
  size_t struct_size;
  uint64_t seed;
  uint64_t offset; /* in 32-bit words, a multiple of 4 */
  /* One u64 on the device that is added to offset when the op runs. NULL unless the op's capabilities say
   * GRAFT_CAP_PHILOX_STATE; a slot that does not read it answers GRAFT_UNIMPLEMENTED where it is not NULL. */
  const graft_tensor_desc *state;
} graft_philox;

typedef uint32_t graft_cap_flags;
enum {
  GRAFT_CAP_STRIDED = 0x1,        /* inputs and outputs of any positive strides */
  GRAFT_CAP_EXPANDED = 0x2,       /* inputs of stride 0; counts only beside GRAFT_CAP_STRIDED */
  GRAFT_CAP_UNALIGNED = 0x4,      /* offsets that are a multiple of the element size only */
  GRAFT_CAP_MIXED_DTYPE = 0x8,    /* inputs not yet promoted, to be converted to the output's dtype as they are loaded;
                                     never sent where the result has another dtype than the op computes in */
  GRAFT_CAP_IN_PLACE = 0x10,      /* an output may be an input */
  GRAFT_CAP_HOST_VALUE = 0x20,    /* rank-0 inputs may come as GRAFT_TENSOR_HOST_VALUE */
  GRAFT_CAP_EMPTY = 0x40,         /* tensors without elements */
  GRAFT_CAP_DETERMINISTIC = 0x80, /* always deterministic, whether asked for or not */
  GRAFT_CAP_INDEX_I32 = 0x100,    /* index arguments may be i32; else they come as i64 */
  GRAFT_CAP_PHILOX_STATE = 0x200, /* the slot reads graft_philox.state */
  /* The slot reads its indices unchecked: the host checks them before. Said only where host->abi_minor is at least 2,
   * since an older host passes over it. */
  GRAFT_CAP_HOST_CHECKS_INDICES = 0x400,
  /* The values of float and Scalar arguments, alone or in lists, do not show in what the slot keeps as its memo: one
   * memo serves calls that differ in them only. Without it each such value has a memo of its own. */
  GRAFT_CAP_MEMO_IGNORES_SCALARS = 0x800,
  /* Of ops over lists: a tensor of one element, which is an item of another list than the first, may come in the shape
   * of the first list's item beside it, with stride 0 in each dim that is longer than 1. Each item speaks for itself: a
   * list may have such ones and others. Without the flag, whatever STRIDED and EXPANDED say, such calls are made item
   * by item. */
  GRAFT_CAP_EXPANDED_ITEMS = 0x1000
};

/* What a plugin says of one op on one device. Zero-filled and sized by the host; all zero means: the host may try, the
 * slot answers GRAFT_UNIMPLEMENTED where it can't. The dtype sets speak of value tensors; indices come as i64 (or i32,
 * see GRAFT_CAP_INDEX_I32) and masks as bool whatever the sets say. */
typedef struct graft_op_caps {
  size_t struct_size;
  uint64_t input_dtypes;             /* set of GRAFT_NUMBER_*; 0: ask the slot */
  uint64_t output_dtypes;            /* likewise */
  graft_cap_flags flags;             /* a flag not set means the dull default */
  graft_exec_flags exec_flags_known; /* must-understand exec flags this op knows */
  uint32_t args_size_known;          /* how many bytes of the args struct it reads; 0: as the op first appeared. Where
                                        what lies behind is not zero the host takes another way */
  uint32_t max_ndim;                 /* 0: no limit */
} graft_op_caps;

#ifdef __cplusplus
}
#endif

#endif
