/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_make.h - runs make, and programs of xfp whose messages are for the user.
 */
#ifndef XFP_RUN_MAKE_H
#define XFP_RUN_MAKE_H

#include "conversion/launch/child.h"
#include "conversion/state/conversion.h"

/* Run a program whose options come from the user, such as xfp-inspect; show its messages. XFP_USAGE is kept. */
int xfp_run_program(struct xfp_conversion *c, const char *const *argv, struct xfp_error *err);

/* With a launcher: check once that a host that it chooses has the same version of xfp, sees the same work folder and
 * cache, and the locks on them (stages/work/host_check.h). XFP_FAILED: no stage may be launched. */
enum xfp_status xfp_check_hosts(struct xfp_conversion *c, struct xfp_error *err);

/* Run make for the units of todo.mk. */
int xfp_run_make(struct xfp_conversion *c, void (*tick)(void *context), void *context, struct xfp_error *err);

#endif
