/*
 * A simulated libnvidia-ml.so.1: the NVML entry points that pynvml and monitoring code use to ask what the
 * driver and its GPUs are. Error codes, texts and structures: NVML API 13, nvml.h.
 *
 * -DLIBRARY_DRIVER=s  a library of driver s that lies in the image, where the kernel's may be another
 */
#include "simulated_driver.h"

typedef int nvmlReturn_t;
typedef struct device *nvmlDevice_t;

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    LIB_RM_VERSION_MISMATCH = 18,
    UNKNOWN = 999,
};

static const struct {
    nvmlReturn_t code;
    const char *text;
} errors[] = {
    {0, "Success"},
    {1, "Uninitialized"},
    {2, "Invalid Argument"},
    {3, "Not Supported"},
    {4, "Insufficient Permissions"},
    {6, "Not Found"},
    {7, "Insufficient Size"},
    {9, "Driver Not Loaded"},
    {15, "GPU is lost"},
    {18, "Driver/library version mismatch"},
    {999, "Unknown Error"},
};

static int initialised, gpu_count;
static struct device gpus[MAX_GPUS];
static struct device mig_devices[MAX_GPUS][MAX_MIG_DEVICES];

EXPORT const char *nvmlErrorString(nvmlReturn_t result) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == result) return errors[i].text;
    return "Unknown Error";
}

static nvmlReturn_t refusal(int error) {
    switch (error) {
    case 0: return SUCCESS;
    case ENOENT: return DRIVER_NOT_LOADED;
    case EACCES: return NO_PERMISSION;
    default: return UNKNOWN; /* EPERM: the device cgroup is closed to the node */
    }
}

EXPORT nvmlReturn_t nvmlInit_v2(void) {
    read_host();
    if (!host.found) return DRIVER_NOT_LOADED;
    nvmlReturn_t result = refusal(probe("/dev/nvidiactl", O_RDWR));
    if (result) return result;
    result = (nvmlReturn_t)number("nvml-init", 0);
    if (result) return result;
#ifdef LIBRARY_DRIVER
    if (strcmp(setting("driver", "0"), LIBRARY_DRIVER)) return LIB_RM_VERSION_MISMATCH;
#endif
    int visible[MAX_GPUS], refused;
    gpu_count = visible_gpus(visible, &refused);
    if (refused) return refusal(refused);
    for (int i = 0; i < gpu_count; i++) gpus[i] = (struct device){visible[i], -1};
    initialised = 1;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlInit(void) { return nvmlInit_v2(); }

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    return nvmlInit_v2();
}

EXPORT nvmlReturn_t nvmlShutdown(void) {
    if (!initialised) return UNINITIALIZED;
    initialised = 0;
    return SUCCESS;
}

static nvmlReturn_t text(char *buffer, unsigned int length, const char *value) {
    if (!initialised) return UNINITIALIZED;
    if (strlen(value) + 1 > length) return INSUFFICIENT_SIZE;
    strcpy(buffer, value);
    return SUCCESS;
}

static nvmlReturn_t whole(unsigned int *target, long long value) {
    if (!initialised) return UNINITIALIZED;
    if (value < 0) return NOT_SUPPORTED;
    *target = (unsigned int)value;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    return text(version, length, setting("driver", ""));
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    char value[180];
    snprintf(value, sizeof value, "%lld.%s", number("cuda", 0) / 1000, setting("driver", ""));
    return text(version, length, value);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    return whole((unsigned int *)version, number("cuda", 0));
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) { return whole(count, gpu_count); }

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) { return nvmlDeviceGetCount_v2(count); }

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    if (!initialised) return UNINITIALIZED;
    if (index >= (unsigned int)gpu_count) return INVALID_ARGUMENT;
    *device = &gpus[index];
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static struct device *mig_device(struct device *gpu, unsigned int index) {
    struct device *device = &mig_devices[gpu->gpu][index];
    *device = (struct device){gpu->gpu, (int)index};
    return device;
}

static int mig_device_visible(const struct device *gpu, unsigned int index) {
    return index < MAX_MIG_DEVICES && index < (unsigned int)number_of(gpu, "mig-devices", 0) &&
           !probe_mig(gpu->gpu, (int)index);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    if (!initialised) return UNINITIALIZED;
    for (int i = 0; i < gpu_count; i++) {
        if (!strcmp(uuid, of_device(&gpus[i], "uuid", ""))) {
            *device = &gpus[i];
            return SUCCESS;
        }
        for (unsigned int index = 0; index < MAX_MIG_DEVICES; index++) {
            if (!mig_device_visible(&gpus[i], index)) continue;
            *device = mig_device(&gpus[i], index);
            if (!strcmp(uuid, of_device(*device, "uuid", ""))) return SUCCESS;
        }
    }
    return NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    return text(name, length, of_device(device, "name", ""));
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
    return text(uuid, length, of_device(device, "uuid", ""));
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    for (int i = 0; i < gpu_count; i++)
        if (gpus[i].gpu == device->gpu) return whole(index, device->mig < 0 ? i : device->mig);
    return NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
    return whole(minor, device->gpu);
}

EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned int *brand) {
    return whole(brand, number_of(device, "brand-code", 0));
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    if (!initialised) return UNINITIALIZED;
    *major = *minor = 0;
    sscanf(of_device(device, "compute-capability", "0.0"), "%d.%d", major, minor);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *cores) {
    return whole(cores, number_of(device, "multiprocessors", 0) * 128);
}

struct memory {
    unsigned long long total, free, used;
};

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct memory *memory) {
    if (!initialised) return UNINITIALIZED;
    memory->total = (unsigned long long)number_of(device, "memory", 0);
    memory->used = (unsigned long long)number_of(device, "memory-used", 0);
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

struct memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct memory_v2 *memory) {
    if (!initialised) return UNINITIALIZED;
    if (memory->version != (sizeof *memory | 2u << 24)) return 25; /* ARGUMENT_VERSION_MISMATCH */
    struct memory first;
    nvmlDeviceGetMemoryInfo(device, &first);
    memory->total = first.total;
    memory->free = first.free;
    memory->used = first.used;
    memory->reserved = 0;
    return SUCCESS;
}

struct pci {
    char legacy_bus_id[16];
    unsigned int domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct pci *pci) {
    if (!initialised) return UNINITIALIZED;
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%s", of_device(device, "pci", ""));
    sscanf(pci->bus_id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    snprintf(pci->legacy_bus_id, sizeof pci->legacy_bus_id, "%04X:%02X:%02X.0", pci->domain & 0xffff,
             pci->bus & 0xff, pci->device & 0xff);
    return SUCCESS;
}

/* Modes */

static nvmlReturn_t mode(nvmlDevice_t device, const char *key, unsigned int *now, unsigned int *pending) {
    nvmlReturn_t result = whole(now, number_of(device, key, -1));
    if (!result) *pending = *now;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *now, unsigned int *pending) {
    return mode(device, "ecc", now, pending);
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int kind, int counter, unsigned long long *count) {
    unsigned int enabled;
    (void)kind, (void)counter;
    nvmlReturn_t result = whole(&enabled, number_of(device, "ecc", -1));
    if (!result) *count = 0;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned int *enabled) {
    (void)device;
    return whole(enabled, 1);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int *value) {
    (void)device;
    return whole(value, 0);
}

EXPORT nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, unsigned int *state) {
    (void)device;
    return whole(state, 0);
}

/* Power, clocks, temperature, load */

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts) {
    return whole(milliwatts, number_of(device, "power", 0));
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *milliwatts) {
    return whole(milliwatts, number_of(device, "power-limit", 0));
}

EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts) {
    return whole(milliwatts, number_of(device, "power-limit", 0));
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *milliwatts) {
    return whole(milliwatts, number_of(device, "power-limit-max", 0));
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *low,
                                                                  unsigned int *high) {
    nvmlReturn_t result = whole(high, number_of(device, "power-limit-max", 0));
    if (!result) *low = *high / 2;
    return result;
}

static const char *clock_key(int kind, int highest) {
    return kind == 2 ? "clock-memory" : highest ? "clock-max" : "clock";
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int kind, unsigned int *mhz) {
    return whole(mhz, number_of(device, clock_key(kind, 0), 0));
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int kind, unsigned int *mhz) {
    return whole(mhz, number_of(device, clock_key(kind, 1), 0));
}

EXPORT nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, int kind, unsigned int *mhz) {
    return nvmlDeviceGetMaxClockInfo(device, kind, mhz);
}

EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons) {
    if (!initialised) return UNINITIALIZED;
    *reasons = (unsigned long long)number_of(device, "throttle-reasons", 0);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *celsius) {
    (void)sensor;
    return whole(celsius, number_of(device, "temperature", 0));
}

struct utilization {
    unsigned int gpu, memory;
};

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct utilization *utilization) {
    if (!initialised) return UNINITIALIZED;
    if (number_of(device, "mig-mode", 0) == 1) return NOT_SUPPORTED;
    utilization->gpu = (unsigned int)number_of(device, "utilization", 0);
    utilization->memory = 0;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, void *processes) {
    (void)device, (void)processes;
    return whole(count, 0);
}

/* MIG */

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *now, unsigned int *pending) {
    return mode(device, "mig-mode", now, pending);
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    return whole(count, number_of(device, "mig-mode", -1) < 0 ? 0 : 7);
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig) {
    if (!initialised) return UNINITIALIZED;
    if (!mig_device_visible(device, index)) return NOT_FOUND;
    *mig = mig_device(device, index);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig) {
    return whole(is_mig, device->mig >= 0);
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device) {
    if (!initialised) return UNINITIALIZED;
    for (int i = 0; i < gpu_count; i++)
        if (gpus[i].gpu == mig->gpu) {
            *device = &gpus[i];
            return SUCCESS;
        }
    return NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id) {
    return device->mig < 0 ? NOT_SUPPORTED : whole(id, number_of(device, "gpu-instance", 0));
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id) {
    return device->mig < 0 ? NOT_SUPPORTED : whole(id, 0);
}

struct attributes {
    unsigned int multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
    unsigned long long memory_mib;
};

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, struct attributes *attributes) {
    if (!initialised) return UNINITIALIZED;
    if (device->mig < 0) return NOT_SUPPORTED;
    memset(attributes, 0, sizeof *attributes);
    attributes->multiprocessors = (unsigned int)number_of(device, "multiprocessors", 0);
    attributes->gpu_slices = attributes->compute_slices = (unsigned int)number_of(device, "slices", 1);
    attributes->memory_mib = (unsigned long long)number_of(device, "memory", 0) >> 20;
    return SUCCESS;
}
