/* Instructions that NVIDIA's OpenCL compiler does not know, in programs that it compiled: to PTX, its binaries. */
#ifndef OCL_PTX_H
#define OCL_PTX_H

/* Stands before each line of inline PTX that only the target sm_90a has. To the driver's OpenCL compiler, whose target
 * is sm_90, it begins a comment. */
#define OCL_PTX_MARK "//@"

/* The text of `ptx` without the marks, for the target that has what they hid; to be freed. NULL: out of memory. */
char *ocl_ptx_uncover(const char *ptx);

#endif
