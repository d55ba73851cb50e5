/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - whether a process that left its id in a file is still running.
 */
#ifndef XFP_PROCESS_H
#define XFP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A tag of the space in which a process id is valid: this boot of this host and this PID namespace (containers that
 * share a folder have their own). 0 if unknown. */
uint32_t xfp_process_space(void);

/* Whether the process does not exist in our own space, or is a zombie. */
bool xfp_process_is_dead(pid_t pid);

#endif
