/* Who could have put code into a file: the rule for what discovery finds.
 *
 * A file or folder is trusted when it belongs to root or to this user and nobody else may write to it. Two exceptions
 * keep the rule usable where umask 002 is the default: the user's private group (it has his name and no other member)
 * counts as the user, and what lies in libgraft's own folder is trusted as far as libgraft itself is, since who can
 * replace libgraft needs no plugin. */
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <link.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/loader.h"

enum { ACCOUNT_BYTES = 16 * 1024 };

char *plg_own_file(void) {
  static const char here = 0;
  Dl_info info;
  struct link_map *map = NULL;
  if (!dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) return NULL;
  /* For the program itself the loader knows no path but argv[0], which whoever started it could choose. */
  return realpath(map->l_name && *map->l_name ? map->l_name : "/proc/self/exe", NULL);
}

/* Whether another account of this machine has the group as its first one; getgrgid does not name those. */
static bool is_first_group_of_others(gid_t gid) {
  char buffer[ACCOUNT_BYTES];
  struct passwd row, *found;
  bool others = false;
  FILE *accounts = fopen("/etc/passwd", "re");
  while (accounts && !others && !fgetpwent_r(accounts, &row, buffer, sizeof buffer, &found)) {
    others = row.pw_gid == gid && row.pw_uid != geteuid();
  }
  if (accounts) fclose(accounts);
  return others;
}

static bool is_private_group(gid_t gid) {
  char user_buffer[ACCOUNT_BYTES], group_buffer[ACCOUNT_BYTES];
  struct passwd user_row, *user;
  struct group group_row, *group;
  if (getpwuid_r(geteuid(), &user_row, user_buffer, sizeof user_buffer, &user) || !user) return false;
  if (getgrgid_r(gid, &group_row, group_buffer, sizeof group_buffer, &group) || !group) return false;
  if (strcmp(user->pw_name, group->gr_name) != 0) return false;
  for (char **member = group->gr_mem; *member; member++) {
    if (strcmp(*member, user->pw_name) != 0) return false;
  }
  return !is_first_group_of_others(gid);
}

/* Whether who may write to `it` by the bits of `info` may write to libgraft, or exchange it in its folder. */
static bool as_open_as_libgraft(const struct stat *info) {
  char *file = plg_own_file();
  if (!file) return false;
  struct stat own[2];
  bool known = stat(file, &own[0]) == 0 && stat(dirname(file), &own[1]) == 0;
  free(file);
  if (!known) return false;
  bool owner = info->st_uid == 0 || info->st_uid == geteuid(), group = !(info->st_mode & S_IWGRP);
  bool all = !(info->st_mode & S_IWOTH);
  for (int i = 0; i < 2; i++) {
    if (own[i].st_mode & S_ISVTX) continue; /* there, one may add files but not exchange them */
    bool open = own[i].st_mode & S_IWOTH;
    owner |= own[i].st_uid == info->st_uid;
    group |= open || ((own[i].st_mode & S_IWGRP) && own[i].st_gid == info->st_gid);
    all |= open;
  }
  return owner && (group || is_private_group(info->st_gid)) && all;
}

/* Appends to a list of names; what memory can't be had for is left out of the list. */
static void add_name(char **list, const char *name) {
  char *longer = *list ? str_new("%s %s", *list, name) : str_new("%s", name);
  if (!longer) return;
  free(*list);
  *list = longer;
}

void plg_trust_check(plg_trust *trust, const char *path, const struct stat *info) {
  struct stat asked;
  if (trust->problem || trust->origin == PLG_TYPED) return;
  if (!info && stat(path, &asked) != 0) {
    trust->problem = str_new("%s: %s", path, strerror(errno));
    return;
  }
  if (!info) info = &asked;
  if (trust->origin == PLG_OWN && as_open_as_libgraft(info)) return;
  if (info->st_uid != 0 && info->st_uid != geteuid()) {
    trust->problem = str_new("%s belongs to user %u; it must belong to root or to you", path, (unsigned)info->st_uid);
  } else if ((info->st_mode & S_IWOTH) || ((info->st_mode & S_IWGRP) && !is_private_group(info->st_gid))) {
    add_name(&trust->open, path);
  }
}

char *plg_trust_end(plg_trust *trust) {
  char *problem = trust->problem;
  if (!problem && trust->open) {
    problem = str_new("others may write to what it loads; run: chmod go-w %s", trust->open);
  }
  free(trust->open);
  *trust = (plg_trust){.origin = trust->origin};
  return problem;
}
