/* Preloaded into a benchmark: every flush takes SLOWSYNC_US microseconds longer than the disk needs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int slowly(const char *name, int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int result = real(fd);
    const char *text = getenv("SLOWSYNC_US");
    long micros = text ? atol(text) : 0;
    struct timespec span = {.tv_sec = micros / 1000000, .tv_nsec = micros % 1000000 * 1000};
    nanosleep(&span, NULL);
    return result;
}

int fsync(int fd) { return slowly("fsync", fd); }
int fdatasync(int fd) { return slowly("fdatasync", fd); }
