// NVML and the checkpoint calls of CUDA for tests, over the folder that INFER_FAKE_CARD names (see engines/accelerator.py):
//   card    bytes of memory, milliseconds until freed memory shows
//   faults  words that make it behave badly
//   held/X  "0 BYTES", locked by the process that holds the memory; X.freed, X.locked, X.parked are marks beside it
// Built as libnvidia-ml.so.1 and libcuda.so.1. Signatures: nvml.h and cuda.h of CUDA 13.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *folder(void) {
  const char *path = getenv("INFER_FAKE_CARD");
  return path ? path : "";
}

static void path_of(char *out, size_t size, const char *name, const char *mark) {
  snprintf(out, size, "%s/%s%s", folder(), name, mark);
}

static int exists(const char *path) { return access(path, F_OK) == 0; }

static int fault(const char *word) {
  char path[512], found[64];
  path_of(path, sizeof path, "faults", "");
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  int is = 0;
  while (fscanf(file, "%63s", found) == 1) is |= !strcmp(found, word);
  fclose(file);
  return is;
}

static void card(unsigned long long *total, long *delay) {
  char path[512];
  path_of(path, sizeof path, "card", "");
  *total = 0, *delay = 0;
  FILE *file = fopen(path, "r");
  if (!file) return;
  if (fscanf(file, "%llu %ld", total, delay) < 1) *total = 0;
  fclose(file);
}

struct held { char name[300]; unsigned long long bytes; int pid; };

static long age_ms(const char *path) {
  struct stat found;
  struct timespec now;
  if (stat(path, &found)) return 0;
  clock_gettime(CLOCK_REALTIME, &now);
  return (now.tv_sec - found.st_mtim.tv_sec) * 1000 + (now.tv_nsec - found.st_mtim.tv_nsec) / 1000000;
}

// What is on the card now; memory of dead processes stays for the delay of the card, with pid 0.
static int all_held(struct held *out, int most) {
  char directory[512], path[900], mark[920];
  unsigned long long total;
  long delay;
  int count = 0;
  card(&total, &delay);
  path_of(directory, sizeof directory, "held", "");
  DIR *names = opendir(directory);
  if (!names) return 0;
  for (struct dirent *entry; (entry = readdir(names)) && count < most;) {
    if (strchr(entry->d_name, '.')) continue;
    snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
    int file = open(path, O_RDWR);
    if (file < 0) continue;
    char text[64] = "";
    ssize_t length = read(file, text, sizeof text - 1);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    fcntl(file, F_GETLK, &lock);
    close(file);
    struct held *one = &out[count];
    int device;
    if (length <= 0 || sscanf(text, "%d %llu", &device, &one->bytes) != 2) continue;
    snprintf(one->name, sizeof one->name, "%s", entry->d_name);
    one->pid = lock.l_type == F_UNLCK ? 0 : lock.l_pid;
    if (one->pid == 0) {
      snprintf(mark, sizeof mark, "%s.freed", path);
      if (!exists(mark)) close(open(mark, O_CREAT | O_WRONLY, 0600));
      if (!fault("never-frees") && age_ms(mark) >= delay) {
        unlink(mark), unlink(path);
        snprintf(mark, sizeof mark, "%s.restored", path);
        unlink(mark);
        continue;
      }
    } else {
      snprintf(mark, sizeof mark, "%s.parked", path);
      if (exists(mark)) one->bytes = 0;
    }
    count++;
  }
  closedir(names);
  return count;
}

static unsigned long long used(void) {
  struct held found[256];
  unsigned long long sum = 100ull << 20, total;
  long delay;
  card(&total, &delay);
  if (fault("others")) sum += total / 2;
  for (int at = all_held(found, 256); at-- > 0;) sum += found[at].bytes;
  return sum;
}

// NVML
int nvmlInit_v2(void) { return fault("no-nvml") ? 9 : 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { return *count = fault("no-card") ? 0 : 1, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { return *handle = (void *)(long)(index + 1), 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { return snprintf(text, size, "580.159.03"), 0; }
int nvmlDeviceGetName(void *handle, char *text, unsigned size) { return snprintf(text, size, "NVIDIA Fake"), 0; }
int nvmlDeviceGetUUID(void *handle, char *text, unsigned size) {
  return snprintf(text, size, "GPU-00000000-0000-0000-0000-000000000001"), 0;
}
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *memory) {
  long delay;
  card(&memory[0], &delay);
  memory[2] = used(), memory[1] = memory[0] - memory[2];
  return 0;
}
struct memory2 { unsigned version; unsigned long long total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory2 *memory) {
  long delay;
  if (memory->version != (sizeof *memory | 2 << 24)) return 25;
  card(&memory->total, &delay);
  memory->reserved = 0, memory->used = used(), memory->free = memory->total - memory->used;
  return 0;
}
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *degrees) { return *degrees = 41, 0; }
int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) { return *milliwatts = 76500, 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *milliwatts) { return *milliwatts = 700000, 0; }
int nvmlDeviceGetUtilizationRates(void *handle, unsigned *rates) { return rates[0] = 3, rates[1] = 1, 0; }
int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) { return 3; }
struct process { unsigned pid; unsigned long long used; unsigned instance, compute; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, struct process *out) {
  struct held found[256];
  int all = all_held(found, 256), filled = 0;
  for (int at = 0; at < all && filled < (int)*count; at++)
    if (found[at].pid) out[filled++] = (struct process){found[at].pid, found[at].bytes, -1, -1};
  *count = filled;
  return 0;
}

// CUDA: checkpoint calls
static int marked(int pid, const char *from, const char *to, int milliseconds) {
  struct held found[256];
  char path[900], before[920], after[920];
  int touched = 0;
  for (int at = all_held(found, 256); at-- > 0;) {
    if (found[at].pid != pid) continue;
    snprintf(path, sizeof path, "%s/held/%s", folder(), found[at].name);
    snprintf(before, sizeof before, "%s%s", path, from);
    snprintf(after, sizeof after, "%s%s", path, to);
    if (*from && !exists(before)) return 401;
    if (*from) unlink(before);
    if (*to) close(open(after, O_CREAT | O_WRONLY, 0600));
    touched++;
  }
  usleep(1000 * milliseconds);
  return touched ? 0 : 1;
}
int cuInit(unsigned flags) { return fault("no-cuda") ? 100 : 0; }
int cuCheckpointProcessGetState(int pid, int *state) {
  struct held found[256];
  char path[900];
  *state = 0;
  for (int at = all_held(found, 256); at-- > 0;) {
    if (found[at].pid != pid) continue;
    snprintf(path, sizeof path, "%s/held/%s.locked", folder(), found[at].name);
    if (exists(path)) *state = 1;
    snprintf(path, sizeof path, "%s/held/%s.parked", folder(), found[at].name);
    if (exists(path)) *state = 2;
    return 0;
  }
  return 1;
}
int cuCheckpointProcessLock(int pid, unsigned *arguments) {
  return fault("refuses-lock") ? 801 : marked(pid, "", ".locked", 1);
}
int cuCheckpointProcessCheckpoint(int pid, void *arguments) {
  return fault("refuses-checkpoint") ? 801 : marked(pid, ".locked", ".parked", fault("slow-parking") ? 2100 : 5);
}
int cuCheckpointProcessRestore(int pid, void *arguments) {
  return fault("refuses-restore") ? 999 : marked(pid, ".parked", ".restored", 5);
}
int cuCheckpointProcessUnlock(int pid, void *arguments) { return marked(pid, "", "", 1); }
