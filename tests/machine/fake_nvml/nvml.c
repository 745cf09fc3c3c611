/* A stand-in for libnvidia-ml.so.1 that plays recorded devices.
 *
 * LAB_FAKE_NVML names the scenario. Every reading of a card's power is one step of its
 * life, so that a change comes after a number of samples and not after a time. The energy
 * counter grows with the monotonic clock at the power the card shows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, SMALL = 7, NO_DRIVER = 9, LOST = 15 };

#define NS -1 /* the driver answers NotSupported */

typedef unsigned int u32;
typedef unsigned long long u64;

typedef struct {
    const char *name, *uuid, *bus;
    int memory_mhz, memory_max_mhz, bus_bit, sm_mhz, sm_max_mhz;
    int power_mw, limit_mw, energy, temperature;
    int gen, gen_max, width, width_max, pstate, mig, persistence, utilisation;
    u64 memory_total, memory_used;
    int pid;
    int power_reads;
} card;

#define RTX5060TI(uuid, bus, width)                                                             \
    {"NVIDIA GeForce RTX 5060 Ti", uuid, bus, 13801, 14001, 128, 2572, 3090, 110000, 180000, 1, \
     61, 5, 5, width, 8, 2, NS, 1, 96, 17179869184ULL, 512000000ULL, 0, 0}

static card two_5060ti[] = {RTX5060TI("GPU-5060aaaa-0001", "00000000:01:00.0", 8),
                            RTX5060TI("GPU-5060bbbb-0002", "00000000:05:00.0", 4)};
static card h200[] = {{"NVIDIA H200", "GPU-h200cccc-0003", "00000000:19:00.0", 3201, 3201, 6144, 1980,
                       1980, 410000, 700000, 1, 48, 5, 5, 16, 16, 0, 0, 1, 99, 150754820096ULL,
                       600000000ULL, 0, 0}};
static card gb10[] = {{"NVIDIA GB10", "GPU-gb10dddd-0004", "0000000F:01:00.0", NS, NS, 0, 2418, 3003,
                       38000, NS, NS, 55, 1, 5, 1, 16, 0, NS, 1, 95, 0, 0, 0, 0}};
static card throttles[] = {RTX5060TI("GPU-5060aaaa-0001", "00000000:01:00.0", 8)};
static card vanishes[] = {RTX5060TI("GPU-5060aaaa-0001", "00000000:01:00.0", 8)};
static card mig[] = {{"NVIDIA H200", "GPU-h200cccc-0003", "00000000:19:00.0", 3201, 3201, 6144, 1980,
                      1980, 410000, 700000, 1, 48, 5, 5, 16, 16, 0, 1, 1, NS, 150754820096ULL,
                      600000000ULL, 0, 0}};
static card mixed[] = {
    {"NVIDIA GeForce RTX 3060", "GPU-3060eeee-0005", "00000000:02:00.0", 7301, 7501, 192, 1777, 2100,
     120000, 170000, 1, 66, 3, 4, 8, 16, 2, NS, 0, 90, 12884901888ULL, 400000000ULL, 0, 0},
    RTX5060TI("GPU-5060aaaa-0001", "00000000:01:00.0", 8)};
static card shared[] = {{"NVIDIA GeForce RTX 5060 Ti", "GPU-5060aaaa-0001", "00000000:01:00.0", 13801,
                         14001, 128, 2572, 3090, 110000, 180000, 1, 61, 5, 5, 8, 8, 2, NS, 1, 96,
                         17179869184ULL, 9000000000ULL, 1, 0}};

static struct {
    const char *scenario;
    card *cards;
    int count;
} plays[] = {
    {"two-5060ti", two_5060ti, 2}, {"h200", h200, 1},         {"gb10", gb10, 1},
    {"throttles", throttles, 1},   {"vanishes", vanishes, 1}, {"mig", mig, 1},
    {"mixed", mixed, 2},           {"shared", shared, 1},     {"no-driver", NULL, 0},
    {"empty", NULL, 0},
};
static int playing = -1;

#define STEPS 5 /* power readings before a scenario takes its turn */

static int is(const char *scenario) {
    return playing >= 0 && strcmp(plays[playing].scenario, scenario) == 0;
}

static int turned(const card *c) { return c->power_reads > STEPS; }

static int state(const card *c) { return is("vanishes") && turned(c) ? LOST : OK; }

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int give(const card *c, int value, u32 *out) {
    if (state(c) != OK) return state(c);
    if (value == NS) return NOT_SUPPORTED;
    *out = (u32)value;
    return OK;
}

int nvmlInitWithFlags(u32 flags) {
    (void)flags;
    const char *wanted = getenv("LAB_FAKE_NVML");
    for (size_t i = 0; wanted && i < sizeof plays / sizeof *plays; i++)
        if (strcmp(plays[i].scenario, wanted) == 0) playing = (int)i;
    return playing < 0 || is("no-driver") ? NO_DRIVER : OK;
}

int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int code) {
    switch (code) {
        case NOT_SUPPORTED: return "Not Supported";
        case NO_DRIVER: return "Driver Not Loaded";
        case LOST: return "GPU is lost";
        default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *out, u32 size) {
    snprintf(out, size, "590.44.01");
    return OK;
}

int nvmlDeviceGetCount_v2(u32 *count) {
    *count = (u32)plays[playing].count;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(u32 index, card **out) {
    if (index >= (u32)plays[playing].count) return INVALID;
    *out = &plays[playing].cards[index];
    return OK;
}

int nvmlDeviceGetName(card *c, char *out, u32 size) {
    snprintf(out, size, "%s", c->name);
    return state(c);
}

int nvmlDeviceGetUUID(card *c, char *out, u32 size) {
    snprintf(out, size, "%s", c->uuid);
    return state(c);
}

typedef struct {
    char legacy[16];
    u32 domain, bus, device, id, subsystem;
    char bus_id[32];
} pci;

int nvmlDeviceGetPciInfo_v3(card *c, pci *out) {
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "%s", c->bus);
    return state(c);
}

int nvmlDeviceGetMemoryInfo(card *c, u64 out[3]) {
    if (c->memory_total == 0) return NOT_SUPPORTED;
    out[0] = c->memory_total, out[2] = c->memory_used, out[1] = out[0] - out[2];
    return state(c);
}

int nvmlDeviceGetClockInfo(card *c, u32 kind, u32 *out) {
    if (kind == 2) return give(c, c->memory_mhz, out);
    return give(c, is("throttles") && turned(c) ? c->sm_mhz * 8 / 10 : c->sm_mhz, out);
}

int nvmlDeviceGetMaxClockInfo(card *c, u32 kind, u32 *out) {
    return give(c, kind == 2 ? c->memory_max_mhz : c->sm_max_mhz, out);
}

int nvmlDeviceGetMemoryBusWidth(card *c, u32 *out) { return give(c, c->bus_bit, out); }

int nvmlDeviceGetPowerUsage(card *c, u32 *out) {
    c->power_reads++;
    return give(c, c->power_mw, out);
}

int nvmlDeviceGetEnforcedPowerLimit(card *c, u32 *out) { return give(c, c->limit_mw, out); }

int nvmlDeviceGetTotalEnergyConsumption(card *c, u64 *out) {
    if (c->energy == NS) return NOT_SUPPORTED;
    *out = (u64)(now_s() * c->power_mw);
    return state(c);
}

int nvmlDeviceGetTemperature(card *c, u32 sensor, u32 *out) {
    (void)sensor;
    return give(c, c->temperature, out);
}

int nvmlDeviceGetCurrentClocksEventReasons(card *c, u64 *out) {
    /* software power cap, hardware thermal slowdown and a bit no list has */
    *out = is("throttles") && turned(c) ? 0x4 | 0x40 | 0x20000 : 0;
    return state(c);
}

int nvmlDeviceGetUtilizationRates(card *c, u32 out[2]) { return give(c, c->utilisation, out); }
int nvmlDeviceGetCurrPcieLinkGeneration(card *c, u32 *out) { return give(c, c->gen, out); }
int nvmlDeviceGetMaxPcieLinkGeneration(card *c, u32 *out) { return give(c, c->gen_max, out); }
int nvmlDeviceGetCurrPcieLinkWidth(card *c, u32 *out) { return give(c, c->width, out); }
int nvmlDeviceGetMaxPcieLinkWidth(card *c, u32 *out) { return give(c, c->width_max, out); }
int nvmlDeviceGetPerformanceState(card *c, u32 *out) { return give(c, c->pstate, out); }
int nvmlDeviceGetPersistenceMode(card *c, u32 *out) { return give(c, c->persistence, out); }

int nvmlDeviceGetMigMode(card *c, u32 *now, u32 *pending) {
    *pending = c->mig == 1;
    return give(c, c->mig, now);
}

typedef struct {
    u32 pid;
    u64 used;
    u32 gpu_instance, compute_instance;
} process;

int nvmlDeviceGetComputeRunningProcesses_v3(card *c, u32 *count, process *out) {
    if (state(c) != OK) return state(c);
    if (c->pid == 0) {
        *count = 0;
        return OK;
    }
    if (out == NULL || *count < 1) {
        *count = 1;
        return SMALL;
    }
    *count = 1;
    out[0] = (process){(u32)c->pid, c->memory_used, 0, 0};
    return OK;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(card *c, u32 *count, process *out) {
    (void)out;
    *count = 0;
    return state(c);
}
