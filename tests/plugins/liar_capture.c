/* Lies about what is recorded. */

static graft_status end_and_lie(graft_stream *stream, graft_captured **captured) {
  graft_captured *made = NULL;
  if (tells("capture_stays")) { /* and the stream goes on recording */
    graft_status status = captured ? capture_end(stream, captured) : GRAFT_OK;
    return status ? status : capture_begin(stream);
  }
  graft_status status = capture_end(stream, &made);
  if (status) return status;
  if (tells("capture_runs")) capture_launch(made, stream);
  if (tells("capture_short") && made->first) {
    list_free(made->first->next);
    made->first->next = NULL;
  }
  if (captured && !tells("capture_nothing")) {
    *captured = made;
    return GRAFT_OK;
  }
  return capture_destroy(made);
}

/* A copy reads what was there when it was recorded. */
static graft_status launch_and_lie(graft_captured *captured, graft_stream *stream) {
  static int launches;
  if (tells("capture_once") && launches++) return GRAFT_OK;
  if (tells("capture_late")) return captured ? GRAFT_NOT_READY : GRAFT_OK;
  if (!tells("capture_turned")) return capture_launch(captured, stream);
  graft_captured rest = {captured->first ? captured->first->next : NULL}, first = {captured->first};
  capture_launch(&rest, stream);
  return capture_launch(&first, stream);
}

static graft_status keep_captured(graft_captured *captured) {
  (void)captured;
  return GRAFT_INTERNAL;
}

static void capture_lie(async_instance *self) {
  (void)self;
  capture_api.end = end_and_lie;
  capture_api.launch = launch_and_lie;
  if (tells("capture_part")) capture_api.struct_size = GRAFT_SIZE_TO(graft_capture_api, launch);
  if (tells("capture_no_launch")) capture_api.launch = NULL;
  if (tells("capture_kept")) capture_api.destroy = keep_captured;
}
