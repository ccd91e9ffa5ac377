/* Stands between Oclgrind 21.10 and LLVM 14, for what Oclgrind does not know of LLVM's instructions:
 *   - a lane of a shuffle that is undefined, as those beyond the halves are in `v.even = half`: --uninitialized looks 4
 * GiB away for it, and crashes;
 *   - the marks that inlining leaves where a function has returned a struct (llvm.experimental.noalias.scope.decl): a
 *     kernel that has them is refused.
 * An undefined lane becomes one of an undefined vector, and the marks are not made. No access and no value is hidden.
 * Loaded in front of Oclgrind's own library. */
#define _GNU_SOURCE              /* RTLD_NEXT */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

enum { LANES_MOST = 64 };

typedef struct mask { /* llvm::ArrayRef<int> */
  const int *lanes;   /* -1: undefined */
  size_t count;
} mask;

/* Of LLVM's interface for C; this library is linked to nothing of it. */
extern int LLVMIsUndef(const void *value);
extern const void *LLVMTypeOf(const void *value);
extern unsigned LLVMGetVectorSize(const void *type);
extern void LLVMParseCommandLineOptions(int count, const char *const *options, const char *overview);

#define SHUFFLE "_ZN4llvm17ShuffleVectorInstC1EPNS_5ValueES2_NS_8ArrayRefIiEERKNS_5TwineEPNS_11InstructionE"

/* llvm::ShuffleVectorInst::ShuffleVectorInst(first, second, mask, name, before) */
void shuffle(void *self, const void *first, const void *second, mask mask, const void *name,
             const void *before) __asm__(SHUFFLE);

/* What an undefined lane may be is free. Where clang combines two vectors, the first is undefined there, too. */
void shuffle(void *self, const void *first, const void *second, mask mask, const void *name, const void *before) {
  static void (*next)(void *, const void *, const void *, struct mask, const void *, const void *);
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, SHUFFLE);
  int lanes[LANES_MOST];
  const int wide = (int)LLVMGetVectorSize(LLVMTypeOf(first));
  if (mask.count <= LANES_MOST) {
    for (int i = 0; i < (int)mask.count; i++) {
      const int free = LLVMIsUndef(second) ? wide : i < wide ? i : 0;
      lanes[i] = mask.lanes[i] < 0 ? free : mask.lanes[i];
    }
    mask.lanes = lanes;
  }
  next(self, first, second, mask, name, before);
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                      void(CL_CALLBACK *tell)(cl_program, void *), void *with) {
  static cl_int (*next)(cl_program, cl_uint, const cl_device_id *, const char *,
                        void(CL_CALLBACK *)(cl_program, void *), void *);
  if (!next) {
    const char *const to_llvm[] = {"oclgrind", "-enable-noalias-to-md-conversion=false"};
    LLVMParseCommandLineOptions(2, to_llvm, NULL);
    *(void **)&next = dlsym(RTLD_NEXT, "clBuildProgram");
  }
  return next(program, count, devices, options, tell, with);
}
