/*
 * The state of a simulated NVIDIA driver, as libcuda.so.1 and libnvidia-ml.so.1 of this folder see it.
 *
 * The host is described by one file of key=value lines that the injection mounts at HOST_FILE (host.py writes
 * it). Which GPUs a container has is decided as on a real host: by the device nodes that can be opened.
 */
#ifndef SIMULATED_DRIVER_H
#define SIMULATED_DRIVER_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOST_FILE "/run/simulated-gpu/host.conf"
#define EXPORT __attribute__((visibility("default")))
#define MAX_GPUS 16
#define MAX_MIG_DEVICES 8

struct setting {
    char key[48];
    char value[160];
};

/* One GPU, or one MIG device: then `mig` is its number on the GPU, else -1. */
struct device {
    int gpu;
    int mig;
};

static struct {
    int read; /* 1: read; 0: not yet */
    int found;
    int count;
    struct setting settings[1024];
} host;

static inline void read_host(void) {
    if (host.read) return;
    host.read = 1;
    FILE *file = fopen(HOST_FILE, "r");
    if (!file) return;
    host.found = 1;
    while (host.count < 1024 &&
           fscanf(file, " %47[^=]=%159[^\n]", host.settings[host.count].key, host.settings[host.count].value) == 2)
        host.count++;
    fclose(file);
}

static inline const char *setting(const char *key, const char *otherwise) {
    for (int i = 0; i < host.count; i++)
        if (!strcmp(host.settings[i].key, key)) return host.settings[i].value;
    return otherwise;
}

static inline long long number(const char *key, long long otherwise) {
    const char *value = setting(key, NULL);
    return value ? strtoll(value, NULL, 10) : otherwise;
}

/* A setting of a device: of the MIG device itself where it has one, else of its GPU. */
static inline const char *of_device(const struct device *device, const char *key, const char *otherwise) {
    char name[64];
    if (device->mig >= 0) {
        snprintf(name, sizeof name, "gpu.%d.mig.%d.%s", device->gpu, device->mig, key);
        const char *value = setting(name, NULL);
        if (value) return value;
    }
    snprintf(name, sizeof name, "gpu.%d.%s", device->gpu, key);
    return setting(name, otherwise);
}

static inline long long number_of(const struct device *device, const char *key, long long otherwise) {
    const char *value = of_device(device, key, NULL);
    return value ? strtoll(value, NULL, 10) : otherwise;
}

/* 0 when the node may be opened, else errno. No driver is behind it, so ENXIO means that all checks passed. */
static inline int probe(const char *path, int access) {
    int descriptor = open(path, access | O_CLOEXEC);
    if (descriptor >= 0) {
        close(descriptor);
        return 0;
    }
    if (errno == ENXIO || errno == ENODEV) return 0;
    return errno;
}

static inline int probe_gpu(int gpu) {
    char path[64];
    snprintf(path, sizeof path, "/dev/nvidia%d", gpu);
    return probe(path, O_RDWR);
}

static inline int probe_mig(int gpu, int mig) {
    char path[64];
    struct device device = {gpu, mig};
    snprintf(path, sizeof path, "/dev/nvidia-caps/nvidia-cap%lld", number_of(&device, "capability", -1));
    return probe(path, O_RDONLY);
}

/* The GPUs of this container, in the host's order; *refused gets the errno of one that may not be opened. */
static inline int visible_gpus(int gpus[MAX_GPUS], int *refused) {
    int count = 0, total = (int)number("gpus", 0);
    *refused = 0;
    for (int gpu = 0; gpu < total && gpu < MAX_GPUS; gpu++) {
        int error = probe_gpu(gpu);
        if (!error) gpus[count++] = gpu;
        else if (error != ENOENT) *refused = error;
    }
    return count;
}

#endif
