/* What stands between the OpenCL backend and the C library, and between it and OpenCL, in a program that between.c is
 * linked into: it counts what the backend takes and gives back, and lets a call fail where that is asked for. */
#ifndef GRAFT_TESTS_BETWEEN_H
#define GRAFT_TESTS_BETWEEN_H

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- what is held ---- */

enum {
  BETWEEN_CONTEXTS,
  BETWEEN_QUEUES,
  BETWEEN_BUFFERS,
  BETWEEN_PROGRAMS,
  BETWEEN_KERNELS,
  BETWEEN_EVENTS,
  BETWEEN_BLOCKS, /* of memory, that the backend's own code asked for */
  BETWEEN_FILES,
  BETWEEN_COUNTS
};
enum { BETWEEN_OBJECTS = BETWEEN_BLOCKS }; /* those before it are of the driver */
extern const char *const between_kinds[BETWEEN_COUNTS];

/* Finds the backend's code; once it is loaded, each time that it is. */
void between_begin(void);
void between_count(long held[BETWEEN_COUNTS]);

/* How often the backend has taken a lock that it held already, or given back one that it did not hold. */
long between_misuses(void);

/* How often a queue was told to wait for a command of another one that was not flushed behind it. */
long between_waits_for_ever(void);

/* ---- calls that fail ---- */

/* A place in the backend from which it calls OpenCL or the C library: the function called and the functions of the
 * backend that lead there, the innermost few. */
typedef struct between_place {
  uint64_t key;
  const char *name; /* of the function called */
  bool quiet;       /* nobody need be told of its failure, as long as the results are right */
} between_place;

enum { BETWEEN_PLACES = 8192 };
typedef struct between_places {
  uint32_t count;
  between_place items[BETWEEN_PLACES];
} between_places;

/* From now on places that are new to `places` are added to it; NULL: no longer. */
void between_watch(between_places *places);
/* From now on the next call from that place fails, once: memory is not there, OpenCL answers `error`. NULL: none. */
void between_fail(const between_place *place, cl_int error);
/* Whether it came to that. */
bool between_failed(void);

/* ---- what the driver says ---- */

/* The next `count` questions for a command's state are answered so, one after the other. */
void between_say_states(const cl_int *states, int count);
/* How many of them were asked for. */
int between_states_said(void);
/* From now on that is what devices say to one question; the value stays the caller's. NULL: no longer. */
void between_pretend(cl_device_info question, const void *value, size_t bytes);
/* And to this one. */
void between_pretend_too(cl_device_info question, const void *value, size_t bytes);
/* From now on there are so many platforms, the first one again and again; 0: those that there are. */
void between_say_platforms(cl_uint count);
/* How many of the backend's questions to devices the driver has refused. */
long between_refusals(void);
/* How many markers the backend has put into queues, how often it has read a buffer by one, and how many arguments it
 * has given to kernels. */
long between_markers(void);
long between_reads(void);
long between_arguments(void);

#endif
