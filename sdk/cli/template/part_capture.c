/* Extension "graft.capture" (graft/abi/extension.h): between begin and end a stream keeps what it is given, and a
 * launch gives it to a stream again, as a whole. Where your driver records work, its record takes the place of this
 * list. */

typedef struct kept {
  struct kept *next;
  work_run *run;
  size_t bytes;
  max_align_t work[]; /* that many bytes of it */
} kept;

struct graft_captured {
  kept *first, **end;
};

static graft_status keep(graft_captured *captured, work_run *run, const void *work, size_t bytes) {
  kept *made = malloc(sizeof *made + bytes);
  if (!made) return GRAFT_OUT_OF_MEMORY;
  *made = (kept){.run = run, .bytes = bytes};
  memcpy(made->work, work, bytes);
  *captured->end = made;
  captured->end = &made->next;
  return GRAFT_OK;
}

static graft_status submit(graft_stream *stream, work_run *run, const void *work, size_t bytes);

static graft_status capture_begin(graft_stream *stream) {
  stream->recording = calloc(1, sizeof *stream->recording);
  if (!stream->recording) return GRAFT_OUT_OF_MEMORY;
  stream->recording->end = &stream->recording->first;
  return GRAFT_OK;
}

static graft_status capture_destroy(graft_captured *captured) {
  for (kept *k = captured->first, *next; k; k = next) {
    next = k->next;
    free(k);
  }
  free(captured);
  return GRAFT_OK;
}

/* Without `captured` what was recorded is dropped. */
static graft_status capture_end(graft_stream *stream, graft_captured **captured) {
  graft_captured *made = stream->recording;
  stream->recording = NULL;
  if (!captured) return capture_destroy(made);
  *captured = made;
  return GRAFT_OK;
}

static graft_status capture_launch(graft_captured *captured, graft_stream *stream) {
  graft_status status = GRAFT_OK;
  for (const kept *k = captured->first; k && !status; k = k->next) status = submit(stream, k->run, k->work, k->bytes);
  return status;
}

static const graft_capture_api capture_api = {
    .struct_size = sizeof capture_api,
    .begin = capture_begin,
    .end = capture_end,
    .launch = capture_launch,
    .destroy = capture_destroy,
};
