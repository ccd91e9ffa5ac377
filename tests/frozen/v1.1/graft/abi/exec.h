/* Graft plugin ABI: the call of an op.
 *
 * A slot takes (exec, args). args is a generated struct, one for each overload, headed by graft_args. The host has done
 * the dull part before: promotion, broadcasting (stride 0), negative dims, defaults, empty tensors, overlap checks and
 * the allocation of outputs. Unless its capabilities ask for more, a slot sees contiguous, aligned, non-empty tensors
 * of the promoted dtype, and outputs that share no memory with inputs.
 *
 * A slot submits its work to exec->stream and returns; it never waits for the device, except that an op whose output
 * size depends on data may wait on its own event. It returns GRAFT_UNIMPLEMENTED before any side effect for a case it
 * does not serve (the host then takes another way and remembers it), and answers the same for the same case every time.
 *
 * Tables hold functional forms. In-place and out calls use the same slot: an output descriptor then equals an input's
 * (buffer, offset, strides), only if the capabilities say GRAFT_CAP_IN_PLACE. Partial overlap never reaches a slot.
 * Accumulation is in f32 for f16, bf16 and f32, in f64 for f64, exact for integers; wider is allowed, narrower is a bug.
 *
 * An output that is not wanted is NULL. An output whose shape the op finds is a graft_output, given to
 * graft_host.output_shape. Arguments are appended in later minors, and their zero means the old behaviour. */
#ifndef GRAFT_ABI_EXEC_H
#define GRAFT_ABI_EXEC_H

#include "graft/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t graft_exec_flags;
enum {
  GRAFT_EXEC_DETERMINISTIC = 0x1, /* the same inputs give the same bits, or GRAFT_UNIMPLEMENTED */
  GRAFT_EXEC_CAPTURING = 0x2,     /* reserved for the graph extension; never sent in version 1 */
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
  void *memo; /* what this plugin published with graft_host.memo_publish for the same op, device, dtypes, shapes, strides,
                 alignments, other arguments and flags; NULL before. Several streams may use one memo at once. */
} graft_exec;

/* Heads every args struct; frozen. struct_size is the size of the whole args struct as the host knows it. */
typedef struct graft_args {
  size_t struct_size;
  uint32_t op_id; /* GRAFT_OP_* */
  uint32_t reserved;
} graft_args;

/* The random stream of one call, for Philox 4x32-10 with key = seed (low word first).
 *
 * Element i of the output in logical (row-major) order takes word i mod 4 of the block whose 128-bit counter is
 * offset/4 + i/4 (high words 0); f64 takes two words an element (2i: low, 2i+1: high). The host advances the generator
 * by 4*ceil(n/4) for n elements, for f64 by 4*ceil(n/2), whichever path runs the op.
 *   uniform: f32 (w >> 8) * 2^-24; f64 ((high << 32 | low) >> 11) * 2^-53; half types from the f32 value, truncated, so
 *            that 1 is never reached; all in [0, 1).
 *   bernoulli, dropout: keep where u < 1 - p, u as for f32 (f64 tensors: as for f64).
 *   randperm: a stable sort by 64-bit keys (two words each, low word first, compared as unsigned).
 *   randn: Box-Muller on pairs of elements (2j, 2j+1) with uniforms (u1, u2): r = sqrt(-2 ln(1 - u1)),
 *          r cos(2 pi u2), r sin(2 pi u2); held to the transcendental limit, not to bits. Half types use the uniforms
 *          of f32 and are rounded once; a complex number is two elements, the real part first.
 * Known-answer vectors: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), and the tests. */
typedef struct graft_philox {
  size_t struct_size;
  uint64_t seed;
  uint64_t offset;                /* in 32-bit words, a multiple of 4 */
  const graft_tensor_desc *state; /* optional: one u64 on the device that is added to offset; NULL in version 1 */
} graft_philox;

typedef uint32_t graft_cap_flags;
enum {
  GRAFT_CAP_STRIDED = 0x1,        /* inputs and outputs of any positive strides */
  GRAFT_CAP_EXPANDED = 0x2,       /* inputs of stride 0 */
  GRAFT_CAP_UNALIGNED = 0x4,      /* offsets that are a multiple of the element size only */
  GRAFT_CAP_MIXED_DTYPE = 0x8,    /* inputs not yet promoted, to be converted to the output's dtype as they are loaded;
                                     never sent where the result has another dtype than the op computes in */
  GRAFT_CAP_IN_PLACE = 0x10,      /* an output may be an input */
  GRAFT_CAP_HOST_VALUE = 0x20,    /* rank-0 inputs may come as GRAFT_TENSOR_HOST_VALUE */
  GRAFT_CAP_EMPTY = 0x40,         /* tensors without elements */
  GRAFT_CAP_DETERMINISTIC = 0x80, /* always deterministic, whether asked for or not */
  GRAFT_CAP_INDEX_I32 = 0x100     /* index arguments may be i32; else they come as i64 */
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
  uint32_t args_size_known;          /* how many bytes of the args struct it reads; 0: those of version 1.0 */
  uint32_t max_ndim;                 /* 0: no limit */
} graft_op_caps;

#ifdef __cplusplus
}
#endif

#endif
