/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - code that benches share: time, medians, and exiting on errors.
 */
#ifndef XFP_BENCH_H
#define XFP_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "tests/program.h"

/* Print "WHAT: WHY" and exit with status 1. */
_Noreturn void bench_die(const char *what, const char *why);
/* Returns `block`, an allocation; exits if it is NULL. */
void *bench_need(void *block);

double bench_seconds(clockid_t clock);
/* Sorts `seconds`; returns the median. */
double bench_median(double *seconds, size_t count);

/* splitmix64 */
uint64_t bench_random(uint64_t *state);

#endif
