/* Lies about ops of the plugin's own. */

static graft_status infer_beyond(void *self, const graft_args *args, graft_custom_result *const *results,
                                 uint32_t count) {
  graft_status status = infer_cube(self, args, results, count);
  results[0]->shape[results[0]->capacity] = 1;
  return status;
}

static graft_status infer_values(void *self, const graft_args *args, graft_custom_result *const *results,
                                 uint32_t count) {
  const cube_args *a = (const cube_args *)(const void *)args;
  graft_status status = infer_cube(self, args, results, count);
  results[0]->shape[0] = (int64_t)a->x->dl.data->memory[0];
  return status;
}

static graft_status infer_changes(void *self, const graft_args *args, graft_custom_result *const *results,
                                  uint32_t count) {
  static int64_t calls;
  graft_status status = infer_cube(self, args, results, count);
  results[0]->shape[0] += calls++;
  return status;
}

static graft_status infer_dtype(void *self, const graft_args *args, graft_custom_result *const *results,
                                uint32_t count) {
  graft_status status = infer_cube(self, args, results, count);
  results[0]->dtype = 0x7777;
  return status;
}

static graft_status infer_dims(void *self, const graft_args *args, graft_custom_result *const *results,
                               uint32_t count) {
  graft_status status = infer_cube(self, args, results, count);
  results[0]->ndim = results[0]->capacity + 1;
  return status;
}

static graft_status infer_size(void *self, const graft_args *args, graft_custom_result *const *results,
                               uint32_t count) {
  graft_status status = infer_cube(self, args, results, count);
  results[0]->shape[0] = -3;
  return status;
}

static graft_status infer_huge(void *self, const graft_args *args, graft_custom_result *const *results,
                               uint32_t count) {
  graft_status status = infer_cube(self, args, results, count);
  results[0]->ndim = 2;
  results[0]->shape[0] = results[0]->shape[1] = INT64_C(1) << 40;
  return status;
}

/* A gradient that is no gradient of x. */
static graft_status infer_other_shape(void *self, const graft_args *args, graft_custom_result *const *results,
                                      uint32_t count) {
  graft_status status = infer_cube_backward(self, args, results, count);
  results[0]->shape[0]++;
  return status;
}

static graft_status infer_status(void *self, const graft_args *args, graft_custom_result *const *results,
                                 uint32_t count) {
  infer_cube(self, args, results, count);
  return (graft_status)1234;
}

/* A schema whose name alone has more characters than one may have. */
static const char *long_schema(void) {
  static char text[3000];
  size_t length = (size_t)snprintf(text, sizeof text, "acme::");
  memset(text + length, 'x', 2000);
  strcpy(text + length + 2000, "(Tensor x) -> Tensor");
  return text;
}

/* More ops than a process has room for, of which the later half are gradients of the others. */
enum { MANY = 1022 };
static const graft_custom_op *many_pointers[MANY];

static void have_many(void) {
  static graft_custom_op rows[MANY];
  static char schemas[MANY][64];
  for (uint32_t i = 0; i < MANY; i++) {
    uint32_t half = MANY / 2, gradient = i < half ? ACME_SCALE_ADD + i + half : 0;
    if (gradient)
      snprintf(schemas[i], sizeof *schemas, "many::op%u(Tensor x) -> Tensor", i);
    else
      snprintf(schemas[i], sizeof *schemas, "many::of%u(Tensor grad, Tensor x) -> Tensor", i - half);
    rows[i] = gradient ? acme_rows[2] : acme_rows[3];
    rows[i].op_id = ACME_SCALE_ADD + i;
    rows[i].gradient_id = gradient;
    rows[i].schema = schemas[i];
    many_pointers[i] = &rows[i];
  }
  acme_api.ops = many_pointers;
  acme_api.count = MANY;
}

static graft_status caps_of_any(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  return acme_caps(device, op_id >= GRAFT_OP_VENDOR_IDS ? ACME_CUBE : op_id, caps);
}

static graft_status caps_of_none(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  return op_caps(device, op_id, caps);
}

static graft_status infer_nothing(void *self, const graft_args *args, graft_custom_result *const *results,
                                  uint32_t count) {
  (void)self, (void)args, (void)results, (void)count;
  return GRAFT_OK;
}

/* cube and its gradient, which then has none of its own */
static void cube_is(const char *schema, const char *gradient) {
  acme_rows[2].schema = schema;
  acme_rows[3].schema = gradient;
  acme_rows[3].gradient_id = 0;
}

static void custom_lie(async_instance *self) {
  graft_custom_op *row = &acme_rows[2]; /* cube */
  if (tells("custom_part")) acme_api.struct_size = offsetof(graft_custom_ops_api, ops);
  if (tells("custom_schema")) row->schema = "acme::cube(Tensor(a!) x) -> Tensor(a!)";
  if (tells("custom_name")) row->schema = "acme::opaque(Tensor x) -> Tensor";
  if (tells("custom_id")) row->op_id = ACME_SCALE_ADD;
  if (tells("custom_low_id")) row->op_id = GRAFT_OP_ABS;
  if (tells("custom_gradient")) row->gradient_id = ACME_WEIGH_BACKWARD + 1;
  if (tells("custom_other_gradient")) row->gradient_id = ACME_SCALE_ADD_BACKWARD;
  if (tells("custom_keyword"))
    cube_is("acme::cube(Tensor x, *, int k=3) -> Tensor",
            "acme::cube_backward(Tensor grad, Tensor x, *, int kk=3) -> Tensor");
  if (tells("custom_twice"))
    cube_is(row->schema, "acme::cube_backward(Tensor grad, Tensor x) -> (Tensor grad_x, Tensor grad_x)");
  if (tells("custom_half_named"))
    cube_is(row->schema, "acme::cube_backward(Tensor grad, Tensor x) -> (Tensor dx, Tensor grad_x)");
  if (tells("custom_nothing")) row->infer = infer_nothing;
  if (tells("custom_no_infer")) row->infer = NULL;
  if (tells("custom_no_slot")) row->slot = NULL;
  if (tells("custom_no_schema")) row->schema = NULL;
  if (tells("custom_no_row")) acme_left_out = 2;
  if (tells("custom_taken")) row->schema = "aten::cube(Tensor x) -> Tensor";
  if (tells("custom_long_name")) row->schema = long_schema();
  if (tells("custom_dtype")) row->infer = infer_dtype;
  if (tells("custom_dims")) row->infer = infer_dims;
  if (tells("custom_size")) row->infer = infer_size;
  if (tells("custom_huge")) row->infer = infer_huge;
  if (tells("custom_status")) row->infer = infer_status;
  if (tells("custom_gradient_shape")) acme_rows[3].infer = infer_other_shape;
  if (tells("custom_many")) have_many();
  if (tells("custom_beyond")) row->infer = infer_beyond;
  if (tells("custom_values")) row->infer = infer_values;
  if (tells("custom_changes")) row->infer = infer_changes;
  if (tells("custom_caps_any")) self->plugin.op_caps = caps_of_any;
  if (tells("custom_caps_none")) self->plugin.op_caps = caps_of_none;
}
