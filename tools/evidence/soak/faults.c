/* Preloaded into what is soaked: from a moment on, its clock is shifted, or its disk is slow. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static double setting(const char *name) {
  const char *text = getenv(name);
  return text ? atof(text) : 0;
}

/* A setting once its moment has come: SOAK_AT, in seconds of the monotonic clock. */
static double by_now(const char *name) {
  struct timespec now;
  REAL(clock_gettime)(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec < setting("SOAK_AT") ? 0 : setting(name);
}

static void dawdle(void) { usleep((useconds_t)(1e6 * by_now("SOAK_SLOW"))); }

int clock_gettime(clockid_t clock, struct timespec *now) {
  int status = REAL(clock_gettime)(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += (time_t)by_now("SOAK_SHIFT");
  return status;
}

int gettimeofday(struct timeval *now, void *zone) {
  struct timespec exact;
  int status = clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return status;
}

time_t time(time_t *where) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (where) *where = now.tv_sec;
  return now.tv_sec;
}

int fsync(int file) {
  dawdle();
  return REAL(fsync)(file);
}

int rename(const char *from, const char *to) {
  dawdle();
  return REAL(rename)(from, to);
}
