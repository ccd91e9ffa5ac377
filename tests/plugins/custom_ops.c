/* Ops of a vendor "acme", for plugins that include async.c: what they compute on its buffers, and the same in plain
 * host memory. Slots wait for their stream, which a device's would not. */
#include <stddef.h>

enum {
  ACME_SCALE_ADD = 0x80000001,
  ACME_SCALE_ADD_BACKWARD,
  ACME_CUBE,
  ACME_CUBE_BACKWARD,
  ACME_CUBE_SECOND,
  ACME_PICK,
  ACME_PICK_BACKWARD,
  ACME_PROBE,
  ACME_OPAQUE,
  ACME_WEIGH,
  ACME_WEIGH_BACKWARD
};

typedef char *(*data_fn)(const graft_tensor_desc *t);

/* Where a slot's tensors lie, and where those of a reference function do. */
static char *of_buffer(const graft_tensor_desc *t) {
  return t->dl.data->memory + t->dl.byte_offset;
}
static char *of_host(const graft_tensor_desc *t) {
  return (char *)(void *)t->dl.data;
}

static double get(const graft_tensor_desc *t, data_fn data, int64_t i) {
  char *at = data(t);
  switch (t->dl.dtype) {
    case GRAFT_F32: return (double)((float *)(void *)at)[i];
    case GRAFT_I64: return (double)((int64_t *)(void *)at)[i];
    default: return ((double *)(void *)at)[i];
  }
}

static void put(const graft_tensor_desc *t, data_fn data, int64_t i, double value) {
  char *at = data(t);
  if (t->dl.dtype == GRAFT_F32)
    ((float *)(void *)at)[i] = (float)value;
  else
    ((double *)(void *)at)[i] = value;
}

static int64_t count_of(const graft_tensor_desc *t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->dl.ndim; d++) n *= t->dl.shape[d];
  return n;
}

static int is_real(const graft_tensor_desc *t) {
  return t->dl.dtype == GRAFT_F32 || t->dl.dtype == GRAFT_F64;
}

/* --- rules --- */

static graft_status refuse_call(void *self, const char *text) {
  const graft_host *host = ((async_instance *)self)->host;
  host->set_error(host->context, text);
  return GRAFT_INVALID_ARGUMENT;
}

static graft_status like(const graft_tensor_desc *t, graft_custom_result *result) {
  result->dtype = t->dl.dtype;
  result->ndim = t->dl.ndim;
  for (int32_t d = 0; d < t->dl.ndim; d++) result->shape[d] = t->dl.shape[d];
  return GRAFT_OK;
}

static int alike(const graft_tensor_desc *a, const graft_tensor_desc *b) {
  int same = a->dl.dtype == b->dl.dtype && a->dl.ndim == b->dl.ndim;
  for (int32_t d = 0; same && d < a->dl.ndim; d++) same = a->dl.shape[d] == b->dl.shape[d];
  return same;
}

/* --- scale_add: x + alpha y --- */

typedef struct scale_add_args {
  graft_args head;
  const graft_tensor_desc *x, *y;
  double alpha;
  const graft_tensor_desc *out;
} scale_add_args;

typedef struct scale_add_backward_args {
  graft_args head;
  const graft_tensor_desc *grad, *x, *y;
  double alpha;
  const graft_tensor_desc *grad_x, *grad_y;
} scale_add_backward_args;

static double number_error, gradient_error, formula_error; /* what lies add */

static graft_status infer_scale_add(void *self, const graft_args *args, graft_custom_result *const *results,
                                    uint32_t count) {
  const scale_add_args *a = (const scale_add_args *)(const void *)args;
  (void)count;
  if (!alike(a->x, a->y)) return refuse_call(self, "x and y must have one shape and one dtype");
  return like(a->x, results[0]);
}

static graft_status scale_add(const scale_add_args *a, data_fn data, double error) {
  if (!is_real(a->x)) return GRAFT_UNIMPLEMENTED;
  for (int64_t i = 0, n = count_of(a->out); i < n; i++)
    put(a->out, data, i, get(a->x, data, i) + (a->alpha + error) * get(a->y, data, i));
  return GRAFT_OK;
}

static graft_status infer_scale_add_backward(void *self, const graft_args *args, graft_custom_result *const *results,
                                             uint32_t count) {
  const scale_add_backward_args *a = (const scale_add_backward_args *)(const void *)args;
  (void)self, (void)count;
  like(a->x, results[0]);
  return like(a->y, results[1]);
}

static graft_status scale_add_backward(const scale_add_backward_args *a, data_fn data, double error) {
  if (!is_real(a->x)) return GRAFT_UNIMPLEMENTED;
  for (int64_t i = 0, n = count_of(a->grad); i < n; i++) {
    put(a->grad_x, data, i, get(a->grad, data, i));
    put(a->grad_y, data, i, (a->alpha + error) * get(a->grad, data, i));
  }
  return GRAFT_OK;
}

/* --- cube, twice differentiable --- */

typedef struct cube_args {
  graft_args head;
  const graft_tensor_desc *x, *out;
} cube_args;

typedef struct cube_backward_args {
  graft_args head;
  const graft_tensor_desc *grad, *x, *out;
} cube_backward_args;

typedef struct cube_second_args {
  graft_args head;
  const graft_tensor_desc *second, *grad, *x, *of_grad, *of_x;
} cube_second_args;

static graft_status infer_cube(void *self, const graft_args *args, graft_custom_result *const *results,
                               uint32_t count) {
  (void)self, (void)count;
  return like(((const cube_args *)(const void *)args)->x, results[0]);
}

static graft_status cube(const cube_args *a, data_fn data, double error) {
  if (!is_real(a->x)) return GRAFT_UNIMPLEMENTED;
  for (int64_t i = 0, n = count_of(a->out); i < n; i++) {
    double x = get(a->x, data, i);
    put(a->out, data, i, x * x * x + error);
  }
  return GRAFT_OK;
}

static graft_status infer_cube_backward(void *self, const graft_args *args, graft_custom_result *const *results,
                                        uint32_t count) {
  (void)self, (void)count;
  return like(((const cube_backward_args *)(const void *)args)->x, results[0]);
}

static graft_status cube_backward(const cube_backward_args *a, data_fn data, double error) {
  if (!is_real(a->x)) return GRAFT_UNIMPLEMENTED;
  for (int64_t i = 0, n = count_of(a->out); i < n; i++) {
    double x = get(a->x, data, i);
    put(a->out, data, i, 3 * x * x * get(a->grad, data, i) * (1 + error));
  }
  return GRAFT_OK;
}

static graft_status infer_cube_second(void *self, const graft_args *args, graft_custom_result *const *results,
                                      uint32_t count) {
  const cube_second_args *a = (const cube_second_args *)(const void *)args;
  (void)self, (void)count;
  like(a->grad, results[0]);
  return like(a->x, results[1]);
}

static graft_status cube_second(const cube_second_args *a, data_fn data, double error) {
  if (!is_real(a->x)) return GRAFT_UNIMPLEMENTED;
  (void)error;
  for (int64_t i = 0, n = count_of(a->x); i < n; i++) {
    double x = get(a->x, data, i), second = get(a->second, data, i);
    put(a->of_grad, data, i, 3 * x * x * second);
    put(a->of_x, data, i, 6 * x * second * get(a->grad, data, i));
  }
  return GRAFT_OK;
}

/* --- pick: x[index], of one dim; the index has no gradient --- */

typedef struct pick_args {
  graft_args head;
  const graft_tensor_desc *x, *index, *out;
} pick_args;

typedef struct pick_backward_args {
  graft_args head;
  const graft_tensor_desc *grad, *x, *index, *grad_x;
} pick_backward_args;

static graft_status infer_pick(void *self, const graft_args *args, graft_custom_result *const *results,
                               uint32_t count) {
  const pick_args *a = (const pick_args *)(const void *)args;
  (void)count;
  if (a->x->dl.ndim != 1 || a->index->dl.dtype != GRAFT_I64)
    return refuse_call(self, "x must have one dim, and index be i64");
  like(a->index, results[0]);
  results[0]->dtype = a->x->dl.dtype;
  return GRAFT_OK;
}

static graft_status pick(const pick_args *a, data_fn data, double error) {
  if (!is_real(a->x)) return GRAFT_UNIMPLEMENTED;
  for (int64_t i = 0, n = count_of(a->out); i < n; i++) {
    int64_t at = (int64_t)get(a->index, data, i);
    if (at < 0 || at >= a->x->dl.shape[0]) return GRAFT_OUT_OF_RANGE;
    put(a->out, data, i, get(a->x, data, at) + error);
  }
  return GRAFT_OK;
}

static graft_status infer_pick_backward(void *self, const graft_args *args, graft_custom_result *const *results,
                                        uint32_t count) {
  (void)self, (void)count;
  return like(((const pick_backward_args *)(const void *)args)->x, results[0]);
}

static graft_status pick_backward(const pick_backward_args *a, data_fn data, double error) {
  (void)error;
  if (!is_real(a->x)) return GRAFT_UNIMPLEMENTED;
  for (int64_t i = 0; i < a->x->dl.shape[0]; i++) put(a->grad_x, data, i, 0);
  for (int64_t i = 0, n = count_of(a->index); i < n; i++) {
    int64_t at = (int64_t)get(a->index, data, i);
    put(a->grad_x, data, at, get(a->grad_x, data, at) + get(a->grad, data, i));
  }
  return GRAFT_OK;
}

/* --- weigh: times x + the sum of a list; only x has a gradient --- */

typedef struct weigh_args {
  graft_args head;
  graft_tensor_list more;
  const graft_tensor_desc *x;
  graft_int_list unused;
  int64_t times;
  const graft_tensor_desc *out;
} weigh_args;

typedef struct weigh_backward_args {
  graft_args head;
  const graft_tensor_desc *grad;
  graft_tensor_list more;
  const graft_tensor_desc *x;
  graft_int_list unused;
  int64_t times;
  const graft_tensor_desc *grad_x;
} weigh_backward_args;

static graft_status infer_weigh(void *self, const graft_args *args, graft_custom_result *const *results,
                                uint32_t count) {
  const weigh_args *a = (const weigh_args *)(const void *)args;
  (void)count;
  for (uint64_t i = 0; i < a->more.count; i++)
    if (!alike(a->x, a->more.items[i])) return refuse_call(self, "the list and x must have one shape and one dtype");
  return like(a->x, results[0]);
}

static graft_status weigh(const weigh_args *a, data_fn data, double error) {
  if (!is_real(a->x)) return GRAFT_UNIMPLEMENTED;
  for (int64_t i = 0, n = count_of(a->out); i < n; i++) {
    double sum = (double)a->times * get(a->x, data, i) + error;
    for (uint64_t k = 0; k < a->more.count; k++) sum += get(a->more.items[k], data, i);
    put(a->out, data, i, sum);
  }
  return GRAFT_OK;
}

static graft_status infer_weigh_backward(void *self, const graft_args *args, graft_custom_result *const *results,
                                         uint32_t count) {
  (void)self, (void)count;
  return like(((const weigh_backward_args *)(const void *)args)->x, results[0]);
}

static graft_status weigh_backward(const weigh_backward_args *a, data_fn data, double error) {
  if (!is_real(a->x)) return GRAFT_UNIMPLEMENTED;
  for (int64_t i = 0, n = count_of(a->grad); i < n; i++)
    put(a->grad_x, data, i, ((double)a->times + error) * get(a->grad, data, i));
  return GRAFT_OK;
}

/* --- probe: one argument of each kind; the numbers that it saw, and a second result where y is there --- */

typedef struct probe_args {
  graft_args head;
  const graft_tensor_desc *x, *y;
  graft_tensor_list more;
  int64_t n;
  graft_scalar_list numbers;
  const int64_t *m;
  double f;
  uint8_t b;
  const graft_scalar *s;
  graft_int_list pair;
  graft_f64_list reals;
  uint8_t mask[3];
  graft_dtype dtype;
  const char *mode;
  const uint8_t *flag;
  const graft_tensor_desc *out0, *out1;
} probe_args;

enum { PROBED = 16 };

static graft_status infer_probe(void *self, const graft_args *args, graft_custom_result *const *results,
                                uint32_t count) {
  const probe_args *a = (const probe_args *)(const void *)args;
  (void)self;
  if (count != 2 || results[0]->capacity < 1) return GRAFT_INTERNAL;
  results[0]->dtype = GRAFT_F64;
  results[0]->ndim = 1;
  results[0]->shape[0] = PROBED;
  return a->y ? like(a->y, results[1]) : GRAFT_OK;
}

static graft_status probe(const probe_args *a, data_fn data, double error) {
  if (!is_real(a->x)) return GRAFT_UNIMPLEMENTED;
  const double seen[PROBED] = {get(a->x, data, 0),
                               (double)a->more.count,
                               (double)a->n,
                               a->m ? (double)*a->m : -1,
                               a->f,
                               a->b,
                               a->s->dtype == GRAFT_I64 ? (double)a->s->value.i : a->s->value.f,
                               (double)a->pair.items[0],
                               (double)a->pair.items[1],
                               a->reals.count ? a->reals.items[a->reals.count - 1] : -1,
                               (double)a->numbers.count,
                               a->mask[0] * 4 + a->mask[1] * 2 + a->mask[2],
                               (double)a->dtype,
                               a->mode ? (double)strlen(a->mode) : -1,
                               a->flag ? *a->flag : -1,
                               (double)(a->more.count ? get(a->more.items[0], data, 0) : 0) + error};
  for (int i = 0; i < PROBED; i++) put(a->out0, data, i, seen[i]);
  for (int64_t i = 0; a->out1 && i < count_of(a->out1); i++) put(a->out1, data, i, get(a->y, data, i));
  return GRAFT_OK;
}

/* --- each as a slot and as a reference function --- */

#define ACME_OP(name, slot_error, both_error)                                                                   \
  static graft_status name##_slot(const graft_exec *exec, const graft_args *args) {                             \
    graft_status status = st_synchronize(exec->stream);                                                         \
    return status ? status : name((const name##_args *)(const void *)args, of_buffer, slot_error + both_error); \
  }                                                                                                             \
  static graft_status name##_reference(void *self, const graft_args *args) {                                    \
    (void)self;                                                                                                 \
    return name((const name##_args *)(const void *)args, of_host, both_error);                                  \
  }
ACME_OP(scale_add, number_error, 0)
ACME_OP(scale_add_backward, gradient_error, formula_error)
ACME_OP(cube, number_error, 0)
ACME_OP(cube_backward, gradient_error, formula_error)
ACME_OP(cube_second, gradient_error, formula_error)
ACME_OP(pick, number_error, 0)
ACME_OP(pick_backward, gradient_error, formula_error)
ACME_OP(probe, number_error, 0)
ACME_OP(weigh, number_error, 0)
ACME_OP(weigh_backward, gradient_error, formula_error)

#define ACME_ROW(id, gradient, text, name) \
  { sizeof(graft_custom_op), id, gradient, text, infer_##name, name##_slot, name##_reference, NULL, 0, 0 }

static graft_custom_op acme_rows[] = {
    ACME_ROW(ACME_SCALE_ADD, ACME_SCALE_ADD_BACKWARD,
             "acme::scale_add(Tensor x, Tensor y, *, float alpha=1.0) -> Tensor", scale_add),
    ACME_ROW(ACME_SCALE_ADD_BACKWARD, 0,
             "acme::scale_add_backward(Tensor grad, Tensor x, Tensor y, *, float alpha=1.0) -> (Tensor, Tensor)",
             scale_add_backward),
    ACME_ROW(ACME_CUBE, ACME_CUBE_BACKWARD, "acme::cube(Tensor x) -> Tensor", cube),
    ACME_ROW(ACME_CUBE_BACKWARD, ACME_CUBE_SECOND, "acme::cube_backward(Tensor grad, Tensor x) -> Tensor",
             cube_backward),
    ACME_ROW(ACME_CUBE_SECOND, 0, "acme::cube_second(Tensor second, Tensor grad, Tensor x) -> (Tensor, Tensor)",
             cube_second),
    ACME_ROW(ACME_PICK, ACME_PICK_BACKWARD, "acme::pick(Tensor x, Tensor index) -> Tensor", pick),
    ACME_ROW(ACME_PICK_BACKWARD, 0, "acme::pick_backward(Tensor grad, Tensor x, Tensor index) -> Tensor grad_x",
             pick_backward),
    ACME_ROW(
        ACME_PROBE, 0,
        "acme::probe.all(Tensor x, Tensor? y, Tensor[] more, int n, Scalar[] numbers, int? m=None, float f=0.5, bool "
        "b=True, Scalar s=2, int[2] pair=[3, 4], float[] reals=[], bool[3] mask=[True, False, True], ScalarType? "
        "dtype=None, str mode=\"fast\", *, bool? flag=None) -> (Tensor, Tensor)",
        probe),
    /* Without a reference function. */
    {sizeof(graft_custom_op), ACME_OPAQUE, 0, "acme::opaque(Tensor x) -> Tensor", infer_cube, cube_slot, NULL, NULL, 0,
     0},
    ACME_ROW(ACME_WEIGH, ACME_WEIGH_BACKWARD,
             "acme::weigh(Tensor[] more, Tensor x, int[] unused=[], int times=2) -> Tensor", weigh),
    ACME_ROW(
        ACME_WEIGH_BACKWARD, 0,
        "acme::weigh_backward(Tensor grad, Tensor[] more, Tensor x, int[] unused=[], int times=2) -> Tensor grad_x",
        weigh_backward),
};
enum { ACME_ROWS = sizeof acme_rows / sizeof *acme_rows };

static const graft_custom_op *acme_pointers[ACME_ROWS];
static graft_custom_ops_api acme_api = {sizeof acme_api, ACME_ROWS, 0, acme_pointers};

static int acme_left_out = -1; /* a row whose pointer is NULL, for a lie */

static const graft_custom_ops_api *acme_table(void) {
  for (int i = 0; i < ACME_ROWS; i++) acme_pointers[i] = i == acme_left_out ? NULL : &acme_rows[i];
  acme_rows[5].cases = "T[33] i64[17]<33\nT[1] i64[]<1"; /* pick */
  acme_rows[6].cases = "T[17] T[33] i64[17]<33";
  acme_rows[7].cases = "T[3] _ {T[2];T[3]} 5 [1,2.5]\nT[3] T[2] {} 5 [] 7 mode='slow'";
  acme_rows[9].cases = "{T[17];T[17]} T[17] times=3\n{} T[5,2]";
  acme_rows[10].cases = "T[17] {T[17]} T[17] times=3";
  return &acme_api;
}

/* --- the plugin's functions --- */

static graft_status acme_extension(void *self, const char *name, uint32_t minimum, const void **table) {
  if (strcmp(name, GRAFT_EXTENSION_CUSTOM_OPS) != 0) return extension(self, name, minimum, table);
  if (minimum > GRAFT_CUSTOM_OPS_VERSION) return GRAFT_UNIMPLEMENTED;
  *table = acme_table();
  return GRAFT_OK;
}

/* They are asked of op_caps as all others. */
static graft_status acme_caps(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  if (op_id < ACME_SCALE_ADD || op_id > ACME_WEIGH_BACKWARD) return op_caps(device, op_id, caps);
  graft_op_caps known = {.struct_size = caps->struct_size};
  memcpy(caps, &known, caps->struct_size < sizeof known ? caps->struct_size : sizeof known);
  return GRAFT_OK;
}

static graft_status acme_query(const graft_exec *exec, const graft_args *args, graft_op_caps *caps) {
  if (args->op_id < ACME_SCALE_ADD || args->op_id > ACME_WEIGH_BACKWARD) return op_query(exec, args, caps);
  return acme_caps(exec->device, args->op_id, caps);
}

/* Gives an instance these ops. */
static void acme_join(async_instance *self) {
  self->plugin.extension = acme_extension;
  self->plugin.op_caps = acme_caps;
  self->plugin.op_query = acme_query;
}
