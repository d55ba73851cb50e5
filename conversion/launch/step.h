/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - the part of a launched step that runs on a node: xfp-launch --here.
 *
 * It makes its targets with as many jobs and threads as it has processors, and reports in the step file, which the
 * launching side has created:
 *
 *   node NAME
 *   error TEXT      if make could not be started
 *   status N        make's exit status
 *
 * It ends with all its stages when it gets a signal, or when the step file was removed. When the step file becomes
 * executable, stages that run continue, but no other unit is started.
 */
#ifndef XFP_STEP_H
#define XFP_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/signals.h"
#include "base/xfp_error.h"

struct xfp_step_call {
	const char *step; /* path of the step file */
	const char *work, *cache;
	const char *version, *host; /* of xfp on the launching side, and the tag of that host */
	bool keep_going;
	uint32_t heaviest;          /* batches.h; 0: targets are alike */
	const char *const *targets; /* ended by NULL */
};

/* Make the targets here. XFP_FAILED: a stage failed and has reported that; the message is then empty. */
enum xfp_status xfp_step_run(const struct xfp_step_call *call, struct xfp_signals *signals, struct xfp_error *err);

struct xfp_step_report {
	char node[256]; /* "": the step has not started */
	char error[1024];
	bool ended;
	int status; /* of make, if it has ended */
};

enum xfp_status xfp_step_report_read(const char *step, struct xfp_step_report *report, struct xfp_error *err);

#endif
