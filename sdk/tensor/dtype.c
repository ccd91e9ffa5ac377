/* Facts about dtypes: a table by frozen number, and PyTorch's promotion of two of them. */
#include "tensor/dtype.h"

#include <float.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "graft/tensor.h"

_Static_assert(LDBL_MANT_DIG >= 64, "ref_value needs a long double that holds every i64 and u64 exactly");

typedef struct dt_fact {
  graft_dtype dtype;
  const char *name;
  uint8_t bytes, category;
  uint8_t real, complex, accumulate; /* numbers */
} dt_fact;

#define N(name) GRAFT_NUMBER_##name
/* A real type's complex partner: the half types and integers take c64, as they compute in f32. */
static const dt_fact facts[] = {
    [N(BOOL)] = {GRAFT_BOOL, "bool", 1, DT_BOOL, N(BOOL), N(C64), N(I64)},
    [N(U8)] = {GRAFT_U8, "u8", 1, DT_INTEGER, N(U8), N(C64), N(I64)},
    [N(I8)] = {GRAFT_I8, "i8", 1, DT_INTEGER, N(I8), N(C64), N(I64)},
    [N(I16)] = {GRAFT_I16, "i16", 2, DT_INTEGER, N(I16), N(C64), N(I64)},
    [N(I32)] = {GRAFT_I32, "i32", 4, DT_INTEGER, N(I32), N(C64), N(I64)},
    [N(I64)] = {GRAFT_I64, "i64", 8, DT_INTEGER, N(I64), N(C64), N(I64)},
    [N(U16)] = {GRAFT_U16, "u16", 2, DT_INTEGER, N(U16), N(C64), N(I64)},
    [N(U32)] = {GRAFT_U32, "u32", 4, DT_INTEGER, N(U32), N(C64), N(I64)},
    [N(U64)] = {GRAFT_U64, "u64", 8, DT_INTEGER, N(U64), N(C64), N(I64)},
    [N(F16)] = {GRAFT_F16, "f16", 2, DT_FLOAT, N(F16), N(C64), N(F32)},
    [N(BF16)] = {GRAFT_BF16, "bf16", 2, DT_FLOAT, N(BF16), N(C64), N(F32)},
    [N(F32)] = {GRAFT_F32, "f32", 4, DT_FLOAT, N(F32), N(C64), N(F32)},
    [N(F64)] = {GRAFT_F64, "f64", 8, DT_FLOAT, N(F64), N(C128), N(F64)},
    [N(C64)] = {GRAFT_C64, "c64", 8, DT_COMPLEX, N(F32), N(C64), N(C64)},
    [N(C128)] = {GRAFT_C128, "c128", 16, DT_COMPLEX, N(F64), N(C128), N(C128)},
    [N(F8_E4M3FN)] = {GRAFT_F8_E4M3FN, "f8_e4m3fn", 1, DT_FLOAT, N(F8_E4M3FN), N(C64), N(F32)},
    [N(F8_E5M2)] = {GRAFT_F8_E5M2, "f8_e5m2", 1, DT_FLOAT, N(F8_E5M2), N(C64), N(F32)},
    [N(WIDE)] = {GRAFT_WIDE, "wide", 16, DT_FLOAT, N(WIDE), N(WIDE_COMPLEX), N(WIDE)},
    [N(WIDE_COMPLEX)] = {GRAFT_WIDE_COMPLEX, "wide_complex", 32, DT_COMPLEX, N(WIDE), N(WIDE_COMPLEX), N(WIDE_COMPLEX)},
};
enum { FACTS = sizeof facts / sizeof facts[0], TORCH_DTYPES = N(F8_E5M2) + 1 };

_Static_assert(sizeof(long double) == 16, "GRAFT_WIDE is 16 bytes");

int dt_number(graft_dtype dtype) {
  switch (dtype) {
#define CASE(name) \
  case GRAFT_##name: return N(name);
    /* clang-format off */
    CASE(BOOL) CASE(U8) CASE(I8) CASE(I16) CASE(I32) CASE(I64) CASE(U16) CASE(U32) CASE(U64)
    CASE(F16) CASE(BF16) CASE(F32) CASE(F64) CASE(C64) CASE(C128) CASE(F8_E4M3FN) CASE(F8_E5M2)
    CASE(WIDE) CASE(WIDE_COMPLEX)
    default: return -1; /* clang-format on */
#undef CASE
  }
}

graft_dtype dt_of_number(int number) {
  return number < 0 || number >= FACTS ? GRAFT_DTYPE_NONE : facts[number].dtype;
}

/* What an unknown dtype looks like, so that queries need no second path. */
static const dt_fact *fact_of(graft_dtype dtype) {
  static const dt_fact unknown = {GRAFT_DTYPE_NONE, "none", 0, DT_INTEGER, 0, 0, 0};
  int number = dt_number(dtype);
  return number < 0 ? &unknown : &facts[number];
}

uint64_t dt_bytes(graft_dtype dtype) {
  return fact_of(dtype)->bytes;
}
dt_category dt_category_of(graft_dtype dtype) {
  return (dt_category)fact_of(dtype)->category;
}
bool dt_is_float(graft_dtype dtype) {
  return fact_of(dtype)->category == DT_FLOAT;
}
bool dt_is_complex(graft_dtype dtype) {
  return fact_of(dtype)->category == DT_COMPLEX;
}

bool dt_is_integral(graft_dtype dtype, bool or_bool) {
  if (dtype == GRAFT_BOOL) return or_bool;
  return dt_number(dtype) >= 0 && fact_of(dtype)->category == DT_INTEGER;
}

bool dt_is_unsigned(graft_dtype dtype) {
  return dtype == GRAFT_U8 || dtype == GRAFT_U16 || dtype == GRAFT_U32 || dtype == GRAFT_U64;
}

bool dt_is_half(graft_dtype dtype) {
  return dtype == GRAFT_F16 || dtype == GRAFT_BF16;
}
bool dt_is_float8(graft_dtype dtype) {
  return dtype == GRAFT_F8_E4M3FN || dtype == GRAFT_F8_E5M2;
}

static graft_dtype by_number(graft_dtype dtype, size_t field) {
  if (dt_number(dtype) < 0) return GRAFT_DTYPE_NONE;
  return facts[*((const uint8_t *)fact_of(dtype) + field)].dtype;
}

graft_dtype dt_real(graft_dtype dtype) {
  return by_number(dtype, offsetof(dt_fact, real));
}
graft_dtype dt_complex(graft_dtype dtype) {
  return by_number(dtype, offsetof(dt_fact, complex));
}

static _Thread_local graft_dtype default_dtype = GRAFT_F32;

graft_dtype dt_default(void) {
  return default_dtype;
}
void dt_set_default(graft_dtype dtype) {
  default_dtype = dtype;
}

graft_dtype dt_accumulate(graft_dtype dtype) {
  return by_number(dtype, offsetof(dt_fact, accumulate));
}

uint64_t dt_bit(graft_dtype dtype) {
  int number = dt_number(dtype);
  return number < 0 ? 0 : GRAFT_DTYPE_BIT(number);
}

/* torch.promote_types of PyTorch 2.13: row and column are frozen numbers, a letter is 'a' + the number of the result,
 * '.' a refusal. The columns in order: bool u8 i8 i16 i32 i64 u16 u32 u64 f16 bf16 f32 f64 c64 c128 e4m3fn e5m2. */
static const char promotions[TORCH_DTYPES][TORCH_DTYPES + 1] = {
    "abcdef...jklmno..", /* bool */
    "bbddef...jklmno..", /* u8 */
    "cdcdef...jklmno..", /* i8 */
    "ddddef...jklmno..", /* i16 */
    "eeeeef...jklmno..", /* i32 */
    "ffffff...jklmno..", /* i64 */
    "......g..jklm....", /* u16 */
    ".......h.jklm....", /* u32 */
    "........ijklm....", /* u64 */
    "jjjjjjjjjjllmno..", /* f16 */
    "kkkkkkkkklklmno..", /* bf16 */
    "llllllllllllmno..", /* f32 */
    "mmmmmmmmmmmmmoo..", /* f64 */
    "nnnnnn...nnnono..", /* c64 */
    "oooooo...oooooo..", /* c128 */
    "...............p.", /* e4m3fn */
    "................q", /* e5m2 */
};

/* With the oracle's dtypes, which stand above all others. */
static graft_dtype promote_wide(graft_dtype a, graft_dtype b) {
  if (a == b) return a;
  if (dt_is_float8(a) || dt_is_float8(b)) return GRAFT_DTYPE_NONE;
  return dt_is_complex(a) || dt_is_complex(b) ? GRAFT_WIDE_COMPLEX : GRAFT_WIDE;
}

graft_dtype dt_promote(graft_dtype a, graft_dtype b) {
  int row = dt_number(a), column = dt_number(b);
  if (row < 0 || column < 0) return GRAFT_DTYPE_NONE;
  if (row >= TORCH_DTYPES || column >= TORCH_DTYPES) return promote_wide(a, b);
  char letter = promotions[row][column];
  return letter == '.' ? GRAFT_DTYPE_NONE : facts[letter - 'a'].dtype;
}

const char *graft_dtype_name(graft_dtype dtype) {
  return fact_of(dtype)->name;
}

graft_dtype graft_dtype_parse(const char *name) {
  if (err_is_null(name, __func__, "name")) return GRAFT_DTYPE_NONE;
  for (int i = 0; i < FACTS; i++) {
    if (facts[i].name && strcmp(facts[i].name, name) == 0) return facts[i].dtype;
  }
  return GRAFT_DTYPE_NONE;
}
