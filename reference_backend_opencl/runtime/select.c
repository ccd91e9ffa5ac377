/* Which OpenCL devices this instance offers: all of them, or those that the user's choice names. The choice is an index
 * into the list of all devices, a kind (cpu, gpu, accelerator), or part of a device's or platform's name. */
#define _POSIX_C_SOURCE 200809L /* sigaction */
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ocl.h"

typedef struct found {
  ocl_candidate candidate;
  cl_device_type type;
  char name[256], platform[256];
} found;

static bool contains(const char *text, const char *part) {
  size_t length = strlen(part);
  for (; *text; text++) {
    size_t i = 0;
    while (i < length && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i])) i++;
    if (i == length) return true;
  }
  return false;
}

static const char *kind_name(cl_device_type type) {
  if (type & CL_DEVICE_TYPE_CPU) return "cpu";
  if (type & CL_DEVICE_TYPE_GPU) return "gpu";
  return "accelerator";
}

static bool matches(const found *device, size_t index, const char *choice) {
  if (!choice) return true;
  char *end;
  unsigned long number = strtoul(choice, &end, 10);
  if (*end == '\0') return number == index;
  if (strcmp(choice, "cpu") == 0 || strcmp(choice, "gpu") == 0 || strcmp(choice, "accelerator") == 0) {
    return strcmp(choice, kind_name(device->type)) == 0;
  }
  return contains(device->name, choice) || contains(device->platform, choice);
}

enum { SIGNALS = 32 };

/* A driver may take over signals as it starts: LLVM's handlers come with PoCL, for one. They are the process's. */
static void keep_signals(struct sigaction *kept) {
  for (int number = 1; number < SIGNALS; number++) sigaction(number, NULL, &kept[number]);
}

static void restore_signals(const struct sigaction *kept) {
  for (int number = 1; number < SIGNALS; number++) {
    if (number != SIGKILL && number != SIGSTOP) sigaction(number, &kept[number], NULL);
  }
}

/* Lists all devices of all platforms. A platform without devices is nothing to report. */
static cl_int list_devices(found **list, size_t *count) {
  cl_platform_id platforms[64];
  cl_device_id ids[64];
  cl_uint platform_count = 0;
  cl_int error = clGetPlatformIDs(64, platforms, &platform_count);
  if (error != CL_SUCCESS) return error;
  if (platform_count > 64) platform_count = 64;
  *list = calloc(platform_count ? 64 * platform_count : 1, sizeof **list);
  if (!*list) return CL_OUT_OF_HOST_MEMORY;
  for (cl_uint p = 0; p < platform_count; p++) {
    cl_uint device_count = 0;
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 64, ids, &device_count) != CL_SUCCESS) continue;
    for (cl_uint d = 0; d < device_count && d < 64; d++) {
      found *entry = &(*list)[(*count)++];
      entry->candidate = (ocl_candidate){platforms[p], ids[d]};
      clGetDeviceInfo(ids[d], CL_DEVICE_TYPE, sizeof entry->type, &entry->type, NULL);
      clGetDeviceInfo(ids[d], CL_DEVICE_NAME, sizeof entry->name - 1, entry->name, NULL);
      clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof entry->platform - 1, entry->platform, NULL);
    }
  }
  return CL_SUCCESS;
}

static void explain_no_match(ocl_text *text, const char *choice, const found *list, size_t count) {
  ocl_text_add(text, "no OpenCL device matches \"%s\" (GRAFT_OPENCL_DEVICE or option \"device\"); found:", choice);
  for (size_t i = 0; i < count; i++) {
    ocl_text_add(text, " [%zu] %s, %s, %s%s", i, kind_name(list[i].type), list[i].name, list[i].platform,
                 i + 1 < count ? ";" : "");
  }
}

static const char install_text[] =
    "install an OpenCL driver for the device, or pocl-opencl-icd for the CPU; `clinfo -l` lists what the ICD loader "
    "sees";
static const char pocl_name[] = "Portable Computing Language"; /* its CPU is always there */
static const char pocl_text[] =
    "PoCL offers none where it can't make its folder of compiled programs: " OCL_POCL_FOLDER;

/* None of the platforms has a device. */
static void explain_no_device(ocl_text *text, cl_int error) {
  cl_platform_id platforms[64];
  cl_uint count = 0;
  bool has_pocl = false;
  if (error == CL_SUCCESS) error = clGetPlatformIDs(64, platforms, &count);
  ocl_text_add(text, "no OpenCL device found (%s", error == CL_SUCCESS ? "of" : ocl_error_name(error));
  for (cl_uint p = 0; p < count && p < 64; p++) {
    char name[256] = "";
    clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    ocl_text_add(text, "%s %s", p ? "," : "", name);
    has_pocl |= strcmp(name, pocl_name) == 0;
  }
  ocl_text_add(text, "): %s", has_pocl ? pocl_text : install_text);
}

static graft_status probe(ocl_plugin *plugin) {
  found *list = NULL;
  size_t count = 0;
  ocl_text error_text = {0};
  graft_status status = GRAFT_OK;
  struct sigaction signals[SIGNALS];
  keep_signals(signals);
  cl_int error = list_devices(&list, &count); /* the driver's first calls */
  restore_signals(signals);
  if (count > 0 && !(plugin->candidates = calloc(count, sizeof *plugin->candidates))) error = CL_OUT_OF_HOST_MEMORY;
  if (error == CL_OUT_OF_HOST_MEMORY) {
    status = GRAFT_OUT_OF_MEMORY;
    ocl_text_add(&error_text, "no memory to list OpenCL devices");
  } else if (count == 0) {
    status = GRAFT_INVALID_ARGUMENT;
    explain_no_device(&error_text, error);
  } else {
    for (size_t i = 0; i < count; i++) {
      if (matches(&list[i], i, plugin->selection)) plugin->candidates[plugin->count++] = list[i].candidate;
    }
    if (plugin->count == 0) {
      status = GRAFT_INVALID_ARGUMENT;
      explain_no_match(&error_text, plugin->selection, list, count);
    }
  }
  plugin->probe_error = error_text.items;
  free(list);
  return status;
}

graft_status ocl_probe(ocl_plugin *plugin) {
  pthread_mutex_lock(&plugin->lock);
  if (!plugin->probed) {
    plugin->probe_status = probe(plugin);
    plugin->probed = true;
  }
  pthread_mutex_unlock(&plugin->lock);
  if (plugin->probe_status == GRAFT_OK) return GRAFT_OK;
  return ocl_fail(plugin, plugin->probe_status, "%s", plugin->probe_error ? plugin->probe_error : "no memory");
}
