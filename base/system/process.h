/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - whether a process that left its number somewhere is still there.
 */
#ifndef XFP_PROCESS_H
#define XFP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Names the space in which a process id means something: this boot of this host and this PID namespace
 * (containers that share a folder have their own). 0 when that cannot be found out. */
uint32_t xfp_process_space(void);

/* No such process in our own space, or one that has ended and only waits to be reaped. */
bool xfp_process_gone(pid_t pid);

#endif
