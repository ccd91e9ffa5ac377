/* Tensors between red zones, poisoned outputs, inputs that must not change. */
#ifndef GRAFT_CF_GUARD_H
#define GRAFT_CF_GUARD_H

#include "conformance/judge/call.h"

enum { CF_ZONE_BYTES = 512 }; /* of each red zone, at least */

/* How wide the red zones on a device are. None where each tensor has its own buffer: then a tool watches the accesses,
 * and a zone would be a place to hide. */
uint64_t cf_zone_bytes(const graft_rt_device *device);

typedef struct cf_guarded {
  graft_tensor *base, *view; /* the view lies inside the base, red zones around it and in its gaps */
  unsigned char *image;      /* what the base held before the call */
  uint64_t bytes;
} cf_guarded;

/* What zones and gaps of inputs hold, byte by byte: NaN to a float, -1 to an index, so that a kernel which reads too
 * far shows it, too. */
enum { CF_ZONE = 0xFF };
graft_status cf_guard_input(graft_rt_device *device, const txt_tensor *spec, const cf_array *values, unsigned char zone,
                            cf_guarded *g);
/* What outputs, and workspaces, hold before a run, byte by byte: all ones, and in every second run a number to a float,
 * too, since of NaN there are kernels that make something else. */
unsigned char cf_poison_of(int run);
graft_status cf_guard_output(graft_rt_device *device, const graft_meta *meta, bool gaps, int poison, cf_guarded *g);
/* Reads the base back: the elements' bytes into *after (malloc'd, whole base). True: intact; else `problem` says what
 * is wrong. */
bool cf_guard_check(const cf_guarded *g, bool may_write, unsigned char **after, char *problem, size_t capacity);
/* The elements of the view in an image of the base. False: no memory. */
bool cf_guard_values(const cf_guarded *g, const unsigned char *image, cf_array *a);
/* An element whose bytes are the poison in both images; -1: none. */
int64_t cf_guard_unwritten(const cf_guarded *a, const unsigned char *after_a, const cf_guarded *b,
                           const unsigned char *after_b);
void cf_guard_free(cf_guarded *g);

#endif
