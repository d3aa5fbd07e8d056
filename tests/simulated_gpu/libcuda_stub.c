/*
 * The libcuda that a toolkit ships for linking (lib64/stubs): it has the names of the driver API and every call
 * gives CUDA_ERROR_STUB_LIBRARY.
 */
#define STUB(name)                                                                                                     \
    __attribute__((visibility("default"))) int name(void) { return 34; }

STUB(cuInit)
STUB(cuDriverGetVersion)
STUB(cuDeviceGetCount)
STUB(cuDeviceGet)
STUB(cuDeviceGetName)
STUB(cuDeviceGetUuid)
STUB(cuDeviceGetUuid_v2)
STUB(cuDeviceComputeCapability)
STUB(cuDeviceGetAttribute)
STUB(cuDeviceTotalMem)
STUB(cuDeviceTotalMem_v2)
STUB(cuDevicePrimaryCtxRetain)
STUB(cuDevicePrimaryCtxRelease)
STUB(cuDevicePrimaryCtxRelease_v2)
STUB(cuCtxSetCurrent)
STUB(cuCtxGetCurrent)
STUB(cuMemGetInfo)
STUB(cuMemGetInfo_v2)
STUB(cuGetErrorString)
STUB(cuGetErrorName)
