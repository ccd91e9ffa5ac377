/* Events: records, waits across streams, times. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "check.h"

enum { BIG = 4 << 20 };

static void check_flags(ck_session *s) {
  graft_event *event = NULL;
  for (uint32_t flag = 1; flag <= 0x8000; flag <<= 1) {
    graft_status expected = flag & s->event_flags ? GRAFT_OK : GRAFT_INVALID_ARGUMENT;
    CK_CALL(expected, s->stream.event_create(s->device, flag, &event), "event_create with flag 0x%x, %s", flag,
            expected ? "not among GRAFT_DEVICE_EVENT_FLAGS" : "among GRAFT_DEVICE_EVENT_FLAGS");
    if (expected && event) ck_fail("it wrote its output all the same");
    if (!expected) CK_CALL(GRAFT_OK, s->stream.event_destroy(event), "event_destroy");
    event = NULL;
  }
  ck_event(s, CK_HINT_FLAG);
}

static void check_never_recorded(ck_session *s) {
  graft_event *event = ck_event(s, 0);
  graft_stream *stream = ck_stream(s, 0);
  CK_CALL(GRAFT_OK, s->stream.event_query(event), "event_query of an event never recorded");
  CK_CALL(GRAFT_OK, s->stream.event_synchronize(event), "event_synchronize of an event never recorded");
  CK_CALL(GRAFT_OK, s->stream.stream_wait(stream, event), "stream_wait for an event never recorded");
  ck_synchronize(s, stream);
}

/* A stream with a buffer that work is done on. */
typedef struct lane {
  graft_stream *stream;
  graft_buffer *buffer;
} lane;

static lane lane_of(ck_session *s) {
  return (lane){ck_stream(s, 0), ck_buffer(s, BIG)};
}

/* Takes the device a while, and leaves the buffer full of the round's number. Each round takes longer than the one
 * before: a stream that does not wait as it should is seen even where its worker gets a processor late. */
static void fill_slowly(ck_session *s, lane *l, unsigned char round) {
  for (unsigned left = 6u * round; left--;) {
    ck_fill_all(s, l->stream, l->buffer, BIG, left ? (unsigned char)(0xf0 + left % 8) : round);
  }
}

static void check_full_of(const unsigned char *bytes, unsigned char value, const char *after) {
  ck_doing("%s", after);
  for (size_t i = 0; i < BIG; i += 4093) {
    if (bytes[i] != value) ck_fail("byte %zu is 0x%02x, expected 0x%02x", i, bytes[i], value);
  }
}

static void check_record(ck_session *s) {
  lane l = lane_of(s);
  graft_event *event = ck_event(s, 0);
  unsigned char *out = ck_alloc(BIG);
  for (unsigned char round = 1; round <= 10; round++) {
    fill_slowly(s, &l, round);
    CK_CALL(GRAFT_OK, s->memory.copy_to_host(l.stream, out, l.buffer, 0, BIG, 0), "copy_to_host");
    ck_record(s, event, l.stream);
    if (round % 2) {
      CK_CALL(GRAFT_OK, s->stream.event_synchronize(event), "event_synchronize");
      check_full_of(out, round, "copy_to_host before an event that event_synchronize waited for");
    } else {
      graft_status status;
      ck_doing("event_query until the event is done");
      while ((status = s->stream.event_query(event)) == GRAFT_NOT_READY) nanosleep(&(struct timespec){0, 200000}, NULL);
      ck_is(status, GRAFT_OK);
      check_full_of(out, round, "copy_to_host before an event that event_query called done");
    }
    CK_CALL(GRAFT_OK, s->stream.event_query(event), "event_query after the event was done");
  }
}

/* The source of a plain copy_from_host may change once an event recorded after it is done. */
static void check_source_is_free(ck_session *s) {
  lane l = lane_of(s);
  graft_event *event = ck_event(s, 0);
  unsigned char *in = ck_alloc(BIG), *out = ck_alloc(BIG);
  for (unsigned char round = 1; round <= 4; round++) {
    memset(in, round, BIG);
    CK_CALL(GRAFT_OK, s->memory.copy_from_host(l.stream, l.buffer, 0, in, BIG, 0), "copy_from_host");
    ck_record(s, event, l.stream);
    CK_CALL(GRAFT_OK, s->stream.event_synchronize(event), "event_synchronize");
    memset(in, 0xee, BIG);
    ck_read(s, l.stream, l.buffer, 0, out, BIG);
    check_full_of(out, round, "copy_from_host, its source overwritten after the event");
  }
}

/* One stream reads what another writes. */
static void check_wait(ck_session *s) {
  lane writer = lane_of(s);
  graft_stream *reader = ck_stream(s, 0);
  graft_event *written = ck_event(s, 0), *read = ck_event(s, 0);
  unsigned char *out = ck_alloc(BIG);
  for (unsigned char round = 1; round <= 12; round++) {
    CK_CALL(GRAFT_OK, s->stream.stream_wait(writer.stream, read), "stream_wait for the reader");
    fill_slowly(s, &writer, round);
    ck_record(s, written, writer.stream);
    CK_CALL(GRAFT_OK, s->stream.stream_wait(reader, written), "stream_wait for the writer");
    CK_CALL(GRAFT_OK, s->memory.copy_to_host(reader, out, writer.buffer, 0, BIG, 0), "copy_to_host");
    ck_record(s, read, reader);
    if (round % 3) continue; /* several rounds in flight */
    ck_synchronize(s, reader);
    check_full_of(out, round, "copy_to_host on a stream that waited for another's fill");
  }
  ck_synchronize(s, writer.stream);
}

/* One device's stream reads what another device's stream writes. */
static void check_across(ck_session *s) {
  ck_since(s, 2);
  if (!ck_property(s, GRAFT_DEVICE_WAITS_ACROSS, 4, 0)) ck_skip("the device does not say GRAFT_DEVICE_WAITS_ACROSS");
  if (s->device_count < 2) ck_skip("the plugin has one device only");
  int32_t index = s->target->device ? 0 : 1;
  lane writer = lane_of(s);
  graft_device *device = NULL;
  graft_stream *stream = NULL;
  graft_event *done = NULL, *written = ck_event(s, 0);
  unsigned char *out = ck_alloc(BIG);
  CK_CALL(GRAFT_OK, s->plugin.device_open(s->plugin.self, index, &device), "device_open(%d)", index);
  CK_CALL(GRAFT_OK, s->stream.create(device, 0, 0, &stream), "stream.create on device %d", index);
  CK_CALL(GRAFT_OK, s->stream.event_create(device, 0, &done), "event_create on device %d", index);
  for (unsigned char round = 1; round <= 5; round++) {
    fill_slowly(s, &writer, round);
    CK_CALL(GRAFT_OK, s->memory.copy_to_host(writer.stream, out, writer.buffer, 0, BIG, 0), "copy_to_host");
    ck_record(s, written, writer.stream);
    CK_CALL(GRAFT_OK, s->stream.stream_wait(stream, written), "stream_wait for an event of another device");
    CK_CALL(GRAFT_OK, s->stream.event_record(done, stream), "event_record behind the wait");
    CK_CALL(GRAFT_OK, s->stream.event_synchronize(done), "event_synchronize");
    check_full_of(out, round, "an event of a stream that waited for another device's fill");
  }
  CK_CALL(GRAFT_OK, s->stream.event_destroy(done), "event_destroy");
  CK_CALL(GRAFT_OK, s->stream.destroy(stream), "stream.destroy");
  CK_CALL(GRAFT_OK, s->plugin.device_close(device), "device_close(%d)", index);
}

/* An event recorded again, on another stream: the later record counts. */
static void check_again(ck_session *s) {
  lane first = lane_of(s), second = lane_of(s);
  graft_stream *reader = ck_stream(s, 0);
  graft_event *event = ck_event(s, 0);
  unsigned char *out = ck_alloc(BIG);
  for (unsigned char round = 1; round <= 20; round++) { /* on a busy machine a record that is ignored shows in few */
    ck_record(s, event, first.stream);
    fill_slowly(s, &second, round);
    ck_record(s, event, second.stream);
    CK_CALL(GRAFT_OK, s->stream.stream_wait(reader, event), "stream_wait for an event recorded a second time");
    CK_CALL(GRAFT_OK, s->memory.copy_to_host(reader, out, second.buffer, 0, BIG, 0), "copy_to_host");
    ck_synchronize(s, reader);
    check_full_of(out, round, "copy_to_host behind a wait for an event's second record");
  }
}

/* `one` waits for the event's first record; its second is made to come only after `one` has gone on. A wait that looks
 * at the record later than when it is called never ends. */
static void check_captures(ck_session *s) {
  lane one = lane_of(s), other = lane_of(s);
  graft_event *event = ck_event(s, 0), *gone_on = ck_event(s, 0);
  unsigned char *out = ck_alloc(BIG);
  for (unsigned char round = 1; round <= 4; round++) {
    fill_slowly(s, &other, round);
    ck_record(s, event, other.stream);
    CK_CALL(GRAFT_OK, s->stream.stream_wait(one.stream, event), "stream_wait");
    CK_CALL(GRAFT_OK, s->memory.copy_to_host(one.stream, out, other.buffer, 0, BIG, 0), "copy_to_host");
    ck_record(s, gone_on, one.stream);
    CK_CALL(GRAFT_OK, s->stream.stream_wait(other.stream, gone_on), "stream_wait");
    ck_record(s, event, other.stream);
    ck_doing("synchronize a stream that waits for an event's first record, after a second that comes behind it");
    ck_is(s->stream.synchronize(one.stream), GRAFT_OK);
    check_full_of(out, round, "copy_to_host behind a wait for an event's first record");
    ck_synchronize(s, other.stream);
  }
}

/* Events are cheap: a host makes and destroys many. */
static void check_destroyed(ck_session *s) {
  lane l = lane_of(s);
  graft_event *event = NULL;
  ck_read(s, l.stream, l.buffer, 0, ck_alloc(BIG), BIG);
  for (int i = 0; i < 200; i++) {
    CK_CALL(GRAFT_OK, s->stream.event_create(s->device, 0, &event), "event_create for the %d. time", i + 1);
    ck_record(s, event, l.stream);
    CK_CALL(GRAFT_OK, s->stream.event_synchronize(event), "event_synchronize");
    CK_CALL(GRAFT_OK, s->stream.event_destroy(event), "event_destroy");
  }
}

/* --- times --- */

static graft_status elapsed(ck_session *s, graft_event *from, graft_event *to, double *time) {
  *time = -77;
  return s->stream.event_elapsed(from, to, time);
}

static void check_untimed(ck_session *s) {
  if (!s->stream.event_elapsed) ck_skip("the plugin has no event_elapsed");
  double time;
  graft_stream *stream = ck_stream(s, 0);
  graft_event *a = ck_event(s, 0), *b = ck_event(s, 0);
  CK_CALL(GRAFT_UNIMPLEMENTED, elapsed(s, a, b, &time), "event_elapsed between events without TIMING, never recorded");
  ck_record(s, a, stream);
  ck_record(s, b, stream);
  ck_synchronize(s, stream);
  CK_CALL(GRAFT_UNIMPLEMENTED, elapsed(s, a, b, &time), "event_elapsed between events without TIMING");
  if (time != -77) ck_fail("it wrote its output all the same");
}

static bool has_timing(const ck_session *s) {
  return s->stream.event_elapsed && s->event_flags & GRAFT_EVENT_TIMING && s->stream_flags & GRAFT_STREAM_TIMING;
}

static void check_elapsed(ck_session *s) {
  if (!has_timing(s)) ck_skip("the device measures no time");
  double time;
  graft_stream *stream = ck_stream(s, GRAFT_STREAM_TIMING), *plain = ck_stream(s, 0);
  graft_buffer *buffer = ck_buffer(s, BIG);
  graft_event *from = ck_event(s, GRAFT_EVENT_TIMING), *to = ck_event(s, GRAFT_EVENT_TIMING);
  CK_CALL(GRAFT_NOT_READY, elapsed(s, from, to, &time), "event_elapsed between events never recorded");
  ck_record(s, from, stream);
  CK_CALL(GRAFT_NOT_READY, elapsed(s, from, to, &time), "event_elapsed to an event never recorded");
  for (int i = 0; i < 8; i++) ck_fill_all(s, stream, buffer, BIG, 'x');
  ck_record(s, to, stream);
  ck_doing("event_elapsed before anyone waited");
  graft_status status = elapsed(s, from, to, &time);
  if (status != GRAFT_NOT_READY) ck_is(status, GRAFT_OK);
  if (status && time != -77) ck_fail("it said NOT_READY and wrote its output");
  CK_CALL(GRAFT_OK, s->stream.event_synchronize(to), "event_synchronize");
  CK_CALL(GRAFT_OK, elapsed(s, from, to, &time), "event_elapsed");
  if (!isfinite(time) || time < 0 || time > 1e3 * s->target->time_limit_s) ck_fail("it says %g ms", time);
  CK_CALL(GRAFT_OK, elapsed(s, from, from, &time), "event_elapsed from an event to itself");
  if (time != 0) ck_fail("it says %g ms", time);
  ck_record(s, to, plain);
  CK_CALL(GRAFT_OK, s->stream.event_synchronize(to), "event_synchronize");
  ck_doing("event_elapsed to an event recorded on a stream without TIMING");
  status = elapsed(s, from, to, &time);
  if (status != GRAFT_NOT_READY) ck_is(status, GRAFT_UNIMPLEMENTED);
}

static const ck_check checks[] = {
    {"event.flags", "Flags that GRAFT_DEVICE_EVENT_FLAGS names are taken, others are INVALID_ARGUMENT; hints pass.",
     CK_DEVICE, .run = check_flags},
    {"event.never_recorded", "An event never recorded counts as done.", CK_DEVICE, .run = check_never_recorded},
    {"event.record", "An event is done when everything submitted before its record is, and not before.", CK_DEVICE,
     .run = check_record},
    {"event.source", "The source of copy_from_host is free when an event recorded after it is done.", CK_DEVICE,
     .run = check_source_is_free},
    {"event.wait", "stream_wait makes later work wait for the event.", CK_DEVICE, .run = check_wait},
    {"event.across", "With GRAFT_DEVICE_WAITS_ACROSS a stream waits for events of other devices.", CK_DEVICE,
     .run = check_across},
    {"event.again", "A record replaces an earlier one.", CK_DEVICE, .run = check_again},
    {"event.captures", "stream_wait captures the event's latest record at the time of the call.", CK_DEVICE,
     .run = check_captures},
    {"event.many", "Events come and go.", CK_DEVICE, .run = check_destroyed},
    {"event.untimed", "event_elapsed is UNIMPLEMENTED without TIMING.", CK_DEVICE, .run = check_untimed},
    {"event.elapsed", "event_elapsed is NOT_READY until both events are done, and then a time.", CK_DEVICE,
     .run = check_elapsed},
};

const ck_table ck_event_checks = {checks, sizeof checks / sizeof *checks};
