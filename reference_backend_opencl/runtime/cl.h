/* OpenCL 1.2 is the floor. */
#ifndef OCL_CL_H
#define OCL_CL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#endif
