/* Extension "graft.capture" of the asynchronous plugin: what a stream is given is kept as a list, copies of which are
 * given to streams again. */

struct graft_captured {
  command *first;
};

static void list_free(command *c) {
  while (c) {
    command *next = c->next;
    free(c);
    c = next;
  }
}

static graft_status capture_begin(graft_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  stream->kept = NULL;
  stream->kept_end = &stream->kept;
  pthread_mutex_unlock(&stream->lock);
  return GRAFT_OK;
}

static graft_status capture_end(graft_stream *stream, graft_captured **captured) {
  pthread_mutex_lock(&stream->lock);
  command *first = stream->kept;
  stream->kept = NULL;
  stream->kept_end = NULL;
  pthread_mutex_unlock(&stream->lock);
  graft_captured *made = captured ? calloc(1, sizeof *made) : NULL;
  if (!made) {
    list_free(first);
    return captured ? GRAFT_OUT_OF_MEMORY : GRAFT_OK;
  }
  made->first = first;
  *captured = made;
  return GRAFT_OK;
}

static graft_status capture_launch(graft_captured *captured, graft_stream *stream) {
  for (const command *c = captured->first; c; c = c->next) {
    command *again = command_new(c->run);
    *again = *c;
    again->next = NULL;
    again->timed = NULL;
    submit(stream, again);
  }
  return GRAFT_OK;
}

static graft_status capture_destroy(graft_captured *captured) {
  list_free(captured->first);
  free(captured);
  return GRAFT_OK;
}

static graft_capture_api capture_api = {sizeof capture_api, capture_begin, capture_end, capture_launch,
                                        capture_destroy};
