/* What the tests on the null plugin share: its devices, what it counts, blocks of its memory; what an error says, and
 * what a tensor holds. */
#ifndef GRAFT_TESTS_NULL_DEVICE_H
#define GRAFT_TESTS_NULL_DEVICE_H

#include <string.h>

#include "base/error.h"
#include "graft/graft.h"
#include "marks.h"
#include "memory/memory.h"
#include "plugin_path.h"
#include "plugins/null.h"

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

#define OK(call) ck_assert_msg(!(call), "%s: %s", #call, graft_last_error())

static inline void assert_text(const char *expected) {
  ck_assert_msg(strstr(graft_last_error(), expected) != NULL, "\"%s\" does not say \"%s\"", graft_last_error(),
                expected);
}

static inline graft_rt_device *null_device(const char *const *options) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  ck_assert_msg(graft_backend_open(test_plugin("null"), options, &backend) == GRAFT_OK, "%s", graft_last_error());
  ck_assert_msg(graft_backend_device(backend, 0, &device) == GRAFT_OK, "%s", graft_last_error());
  return device;
}

static inline const null_test_api *test_api(graft_rt_device *device) {
  const void *table;
  const graft_plugin *plugin = &device->backend->plugin;
  ck_assert_int_eq(plugin->extension(plugin->self, NULL_EXTENSION, 1, &table), GRAFT_OK);
  return table;
}

static inline null_counters counters_of(graft_rt_device *device) {
  null_counters counters;
  test_api(device)->counters(device->backend->plugin.self, &counters);
  return counters;
}

static inline mem_block *take(graft_rt_device *device, graft_rt_stream *stream, uint64_t bytes) {
  mem_block *block;
  ck_assert_msg(mem_allocate(device, stream, bytes, &block) == GRAFT_OK, "%s", graft_last_error());
  ck_assert_uint_ge(block->bytes, bytes);
  return block;
}

static inline void expect(graft_tensor *t, int64_t n, const float *values) {
  float got[64];
  ck_assert_int_eq(graft_tensor_numel(t), n);
  OK(graft_tensor_to_host(t, got));
  for (int64_t i = 0; i < n; i++)
    ck_assert_msg(got[i] == values[i], "element %d is %g, not %g", (int)i, got[i], values[i]);
}

#endif
