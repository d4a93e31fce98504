/* Call the one compiled function of a network, without TVM's runtime.
 *
 * Linked with the network's object file to a static program for its processor, which an emulator
 * runs: ./program ARGUMENTS RESULTS. ARGUMENTS is 64-bit integers and bytes, see emulator.py.
 * Parallel loops run in one thread.
 */
#include <dlpack/dlpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>
#include <tvm/runtime/c_backend_api.h>

#define ALIGNMENT 64

int __tvm_ffi_costlib_body(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

static void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void* allocate(size_t bytes) {
  void* memory = aligned_alloc(ALIGNMENT, (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  if (memory == NULL) fail("out of memory");
  return memory;
}

static void* alloc_workspace(int device, int number, uint64_t bytes, int code, int bits) {
  return allocate(bytes);
}

static int free_workspace(int device, int number, void* memory) {
  free(memory);
  return 0;
}

static int launch(FTVMParallelLambda body, void* data, int tasks) {
  TVMParallelGroupEnv alone = {NULL, 1};
  return body(0, &alone, data);
}

static int barrier(int task, TVMParallelGroupEnv* group) { return 0; }

/* What TVM's runtime would fill in when it loads the code; there they are weak. */
void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = alloc_workspace;
int (*__TVMBackendFreeWorkspace)(int, int, void*) = free_workspace;
int (*__TVMBackendParallelLaunch)(FTVMParallelLambda, void*, int) = launch;
int (*__TVMBackendParallelBarrier)(int, TVMParallelGroupEnv*) = barrier;

void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) { fail(message); }

void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count) {
  for (int32_t i = 0; i < count; ++i) fprintf(stderr, "%s", parts[i] ? parts[i] : "");
  fail("");
}

static int64_t number(FILE* file) {
  int64_t value;
  if (fread(&value, sizeof value, 1, file) != 1) fail("the arguments are cut off");
  return value;
}

int main(int argc, char** argv) {
  FILE* file = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (file == NULL) fail("cannot read the arguments");
  int64_t count = number(file);
  DLTensor* tensors = calloc(count, sizeof(DLTensor));
  TVMFFIAny* arguments = calloc(count + 1, sizeof(TVMFFIAny));
  int64_t* sizes = calloc(count, sizeof(int64_t));
  int64_t* is_result = calloc(count, sizeof(int64_t));
  for (int64_t i = 0; i < count; ++i) {
    DLTensor* tensor = &tensors[i];
    tensor->device.device_type = kDLCPU;
    tensor->dtype.code = number(file);
    tensor->dtype.bits = number(file);
    tensor->dtype.lanes = 1;
    tensor->ndim = number(file);
    tensor->shape = calloc(tensor->ndim + 1, sizeof(int64_t));
    for (int d = 0; d < tensor->ndim; ++d) tensor->shape[d] = number(file);
    is_result[i] = number(file);
    int64_t given = number(file);
    sizes[i] = number(file);
    tensor->data = allocate(sizes[i]);
    memset(tensor->data, 0, sizes[i]);
    if (given && fread(tensor->data, 1, sizes[i], file) != (size_t)sizes[i])
      fail("the arguments are cut off");
    arguments[i].type_index = kTVMFFIDLTensorPtr;
    arguments[i].v_ptr = tensor;
  }
  fclose(file);
  arguments[count].type_index = kTVMFFIInt; /* Not traced. */
  TVMFFIAny returned = {0};
  if (__tvm_ffi_costlib_body(NULL, arguments, count + 1, &returned)) fail("it failed");
  file = fopen(argv[2], "wb");
  if (file == NULL) fail("cannot write the results");
  for (int64_t i = 0; i < count; ++i)
    if (is_result[i] && fwrite(tensors[i].data, 1, sizes[i], file) != (size_t)sizes[i])
      fail("cannot write the results");
  return fclose(file) ? 1 : 0;
}
