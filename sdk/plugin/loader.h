/* What the files of plugin/ share among themselves: manifests, opening. */
#ifndef GRAFT_SDK_LOADER_H
#define GRAFT_SDK_LOADER_H

#include <sys/stat.h>

#include "base/str.h"
#include "plugin/backend.h"

#define PLG_NAME_MAX 63

/* What stands above plugin/ and is needed here; wiring.c fills it in. */
typedef struct plg_hooks_table {
  graft_plugin_open_v1_fn builtin;           /* the entry of the built-in backend "reference" */
  void (*opened)(graft_rt_backend *backend); /* a new one, one at a time, before anybody else sees it */
  /* The functions of graft_host that belong to the call of an op; their types are those of the fields there. */
  graft_status (*workspace)(const graft_exec *exec, uint64_t bytes, uint64_t alignment, graft_buffer **buffer,
                            uint64_t *byte_offset);
  graft_status (*output_shape)(const graft_exec *exec, graft_output *output, int32_t ndim, const int64_t *shape,
                               const graft_tensor_desc **desc);
  graft_status (*memo_publish)(const graft_exec *exec, void *value, void (*destroy)(void *value), void **winner);
} plg_hooks_table;
extern const plg_hooks_table plg_hooks;

/* Where a manifest came from. What discovery found must not be open to other users; what it found in libgraft's own
 * folder, not more than libgraft itself is; what the user typed is taken as it is. */
typedef enum plg_origin { PLG_TYPED, PLG_DISCOVERED, PLG_OWN } plg_origin;

/* A manifest as read. Strings are owned; `problem` NULL means usable. A refused one still has a name to show. */
typedef struct plg_manifest {
  char *name, *vendor, *version, *licence;
  char *path;    /* of the manifest */
  char *library; /* absolute and resolved */
  char *problem;
  double abi_minor; /* as it stands there; PLG_NO_MINOR where it is left out */
} plg_manifest;
#define PLG_NO_MINOR (-1.0)

/* Reads and checks the manifest at `path`; every refusal ends up in ->problem. */
void plg_manifest_read(const char *path, plg_origin origin, plg_manifest *manifest);
void plg_manifest_free(plg_manifest *manifest);

/* Parses and checks the text of a manifest, `bytes` long and NUL-terminated after that; no file is touched. `library`
 * becomes the text's own, relative path. */
void plg_manifest_parse(const char *text, size_t bytes, plg_manifest *manifest);

/* Whether a name can be part of "name:0", of a path and of a list with commas. */
bool plg_name_is_valid(const char *name);

/* How discovery would come to the manifest at `path`: as one of libgraft's own folder, or of another. */
plg_origin plg_origin_of(const char *path);

/* Whether others might have put code into some files and folders: check each, then end. */
typedef struct plg_trust {
  plg_origin origin;
  char *problem; /* the first that is not to be mended by chmod */
  char *open;    /* what others may write to */
} plg_trust;
/* `info` is what is known of the file, or NULL: it is asked for. */
void plg_trust_check(plg_trust *trust, const char *path, const struct stat *info);
/* The problem, malloc'ed, with the way to mend it; NULL: all is trusted. */
char *plg_trust_end(plg_trust *trust);

/* The file that this code was loaded from, libgraft or a program it is linked into: absolute, resolved and malloc'ed;
 * NULL: not known. */
char *plg_own_file(void);

/* dlopen, entry, negotiation. `name` is the manifest's, or NULL for a bare library. */
graft_status plg_load(const char *path, const char *name, const char *const *options, graft_rt_backend **backend);

/* Calls an entry and checks and copies what it gives. */
graft_status plg_negotiate(graft_plugin_open_v1_fn entry, const char *path, const char *name,
                           const char *const *options, graft_rt_backend **backend);

/* Fills the table that a plugin receives. */
void plg_host_init(graft_rt_backend *backend);

#endif
