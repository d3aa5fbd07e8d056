/*
 * A simulated libcuda.so.1: the entry points of the CUDA driver API that say what the driver and its GPUs are.
 * Error codes and texts: CUDA driver API 13.0, cuda.h.
 *
 * -DLIBRARY_DRIVER=s  a library of driver s that lies in the image (cuda-compat, or baked in)
 * -DLIBRARY_CUDA=n    its CUDA level, 12090 for 12.9
 */
#include "simulated_driver.h"

typedef int CUresult;
typedef int CUdevice;
typedef void *CUcontext;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    SYSTEM_DRIVER_MISMATCH = 803,
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    UNKNOWN = 999,
};

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility was attempted on non supported HW"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int initialised, device_count;
static struct device devices[MAX_GPUS];
static CUcontext current;

/* CUDA_VISIBLE_DEVICES: numbers and UUIDs (also their beginnings); the first that is unknown ends the list. */
static void restrict_to_visible(void) {
    const char *wanted = getenv("CUDA_VISIBLE_DEVICES");
    if (!wanted) return;
    struct device chosen[MAX_GPUS];
    int count = 0;
    char list[512], *rest = list, *item;
    snprintf(list, sizeof list, "%s", wanted);
    while ((item = strsep(&rest, ",")) && count < MAX_GPUS) {
        int found = -1;
        for (int i = 0; i < device_count; i++) {
            char index[16];
            snprintf(index, sizeof index, "%d", i);
            const char *uuid = of_device(&devices[i], "uuid", "");
            if (!strcmp(item, index) || (strlen(item) > 4 && !strncmp(item, uuid, strlen(item)))) found = i;
        }
        if (found < 0) break;
        chosen[count++] = devices[found];
    }
    memcpy(devices, chosen, sizeof chosen);
    device_count = count;
}

/* The devices CUDA counts: GPUs whose MIG mode is off; with MIG, one MIG device and nothing else. */
static void enumerate_devices(void) {
    int gpus[MAX_GPUS], refused, count = visible_gpus(gpus, &refused);
    device_count = 0;
    for (int i = 0; i < count; i++) {
        struct device gpu = {gpus[i], -1};
        if (number_of(&gpu, "mig-mode", -1) != 1) {
            devices[device_count++] = gpu;
            continue;
        }
        for (int mig = 0; mig < (int)number_of(&gpu, "mig-devices", 0); mig++)
            if (!probe_mig(gpu.gpu, mig)) {
                devices[0] = (struct device){gpu.gpu, mig};
                device_count = 1;
                return;
            }
    }
}

#ifdef LIBRARY_DRIVER
/* A user-mode driver other than the kernel's: newer is forward compatibility, older is a mismatch. */
static CUresult library_fits(void) {
    const char *driver = setting("driver", "0");
    if (!strcmp(driver, LIBRARY_DRIVER)) return SUCCESS;
    if (atoi(LIBRARY_DRIVER) <= atoi(driver)) return SYSTEM_DRIVER_MISMATCH;
    for (int gpu = 0; gpu < (int)number("gpus", 0); gpu++) {
        struct device device = {gpu, -1};
        const char *brand = of_device(&device, "brand", "");
        if (strcmp(brand, "tesla") && strcmp(brand, "nvidia")) return COMPAT_NOT_SUPPORTED_ON_DEVICE;
    }
    return SUCCESS;
}
#endif

EXPORT CUresult cuInit(unsigned int flags) {
    if (flags) return INVALID_VALUE;
    read_host();
    if (!host.found || probe("/dev/nvidiactl", O_RDWR)) return NO_DEVICE;
    CUresult injected = (CUresult)number("cu-init", 0);
    if (injected) return injected;
#ifdef LIBRARY_DRIVER
    CUresult fits = library_fits();
    if (fits) return fits;
#endif
    enumerate_devices();
    restrict_to_visible();
    if (!device_count) return NO_DEVICE;
    if (probe("/dev/nvidia-uvm", O_RDWR)) return UNKNOWN;
    initialised = 1;
    return SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version) {
#ifdef LIBRARY_CUDA
    *version = LIBRARY_CUDA;
    return SUCCESS;
#else
    read_host();
    *version = (int)number("cuda", 0);
    return SUCCESS;
#endif
}

static CUresult checked(CUdevice device) {
    if (!initialised) return NOT_INITIALIZED;
    return device < 0 || device >= device_count ? INVALID_DEVICE : SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
    if (!initialised) return NOT_INITIALIZED;
    *count = device_count;
    return SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    CUresult result = checked(ordinal);
    if (!result) *device = ordinal;
    return result;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    CUresult result = checked(device);
    if (!result) snprintf(name, (size_t)length, "%s", of_device(&devices[device], "name", ""));
    return result;
}

/* The 16 bytes of GPU-xxxxxxxx-xxxx-… or MIG-xxxxxxxx-…; v1 gives a MIG device its GPU's. */
static CUresult uuid_bytes(unsigned char bytes[16], const struct device *device) {
    const char *text = strchr(of_device(device, "uuid", "-"), '-') + 1;
    memset(bytes, 0, 16);
    for (int i = 0; i < 16 && *text; i++) {
        unsigned int byte;
        if (*text == '-') text++;
        if (sscanf(text, "%2x", &byte) != 1) return UNKNOWN;
        bytes[i] = (unsigned char)byte;
        text += 2;
    }
    return SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(unsigned char bytes[16], CUdevice device) {
    CUresult result = checked(device);
    return result ? result : uuid_bytes(bytes, &devices[device]);
}

EXPORT CUresult cuDeviceGetUuid(unsigned char bytes[16], CUdevice device) {
    CUresult result = checked(device);
    if (result) return result;
    struct device gpu = {devices[device].gpu, -1};
    return uuid_bytes(bytes, &gpu);
}

static void compute_capability(CUdevice device, int *major, int *minor) {
    *major = *minor = 0;
    sscanf(of_device(&devices[device], "compute-capability", "0.0"), "%d.%d", major, minor);
}

EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    CUresult result = checked(device);
    if (!result) compute_capability(device, major, minor);
    return result;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    CUresult result = checked(device);
    if (result) return result;
    const struct device *of = &devices[device];
    int major, minor;
    unsigned int domain = 0, bus = 0, slot = 0;
    compute_capability(device, &major, &minor);
    sscanf(of_device(of, "pci", ""), "%x:%x:%x", &domain, &bus, &slot);
    switch (attribute) {
    case 1: /* MAX_THREADS_PER_BLOCK */ *value = 1024; break;
    case 10: /* WARP_SIZE */ *value = 32; break;
    case 13: /* CLOCK_RATE, kHz */ *value = (int)number_of(of, "clock-max", 0) * 1000; break;
    case 16: /* MULTIPROCESSOR_COUNT */ *value = (int)number_of(of, "multiprocessors", 0); break;
    case 32: /* ECC_ENABLED */ *value = number_of(of, "ecc", -1) == 1; break;
    case 33: /* PCI_BUS_ID */ *value = (int)bus; break;
    case 34: /* PCI_DEVICE_ID */ *value = (int)slot; break;
    case 36: /* MEMORY_CLOCK_RATE, kHz */ *value = (int)number_of(of, "clock-memory", 0) * 1000; break;
    case 41: /* UNIFIED_ADDRESSING */ *value = 1; break;
    case 50: /* PCI_DOMAIN_ID */ *value = (int)domain; break;
    case 75: /* COMPUTE_CAPABILITY_MAJOR */ *value = major; break;
    case 76: /* COMPUTE_CAPABILITY_MINOR */ *value = minor; break;
    default: *value = 0;
    }
    return SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    CUresult result = checked(device);
    if (!result) *bytes = (size_t)number_of(&devices[device], "memory", 0);
    return result;
}

EXPORT CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) { return cuDeviceTotalMem_v2(bytes, device); }

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    CUresult result = checked(device);
    if (!result) *context = &devices[device];
    return result;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return checked(device); }

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return checked(device); }

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    if (!initialised) return NOT_INITIALIZED;
    current = context;
    return SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
    if (!initialised) return NOT_INITIALIZED;
    *context = current;
    return SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    if (!initialised) return NOT_INITIALIZED;
    if (!current) return INVALID_CONTEXT;
    *total = (size_t)number_of(current, "memory", 0);
    *free_bytes = *total - (size_t)number_of(current, "memory-used", 0);
    return SUCCESS;
}

EXPORT CUresult cuMemGetInfo(size_t *free_bytes, size_t *total) { return cuMemGetInfo_v2(free_bytes, total); }

EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == error) {
            *text = errors[i].text;
            return SUCCESS;
        }
    *text = NULL;
    return INVALID_VALUE;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == error) {
            *name = errors[i].name;
            return SUCCESS;
        }
    *name = NULL;
    return INVALID_VALUE;
}
