/* The conformance suite, as the program `graft` calls it. */
#ifndef GRAFT_CONFORMANCE_H
#define GRAFT_CONFORMANCE_H

/* `graft conformance ...` and `graft case ...`; argv[0] is the command's name. Return the exit status: 0 all passed,
 * 1 something failed, 2 usage, no such plugin, one that cannot be loaded or has no device, 3 a device opened and no
 * case was run on it. The suite starts itself again as a worker (/proc/self/exe conformance --worker ...), so the
 * program that calls these must route "conformance" back to cf_main_conformance. */
int cf_main_conformance(int argc, char **argv);
int cf_main_case(int argc, char **argv);
/* `graft report diff A B`: 0 nothing is worse, 1 something is, 2 usage or a file that can't be read. */
int cf_main_report(int argc, char **argv);

#endif
