/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - runs commands on the nodes of a cluster by a launcher: a shell command line such as
 * "srun -Q --exact -N1 -n1", which runs the command that is appended to it.
 *
 * xfp-launch, started by make (pipelines/graph.mk), creates a step file in the work folder and launches itself with
 * --here (step.h). Everything that the node needs is in the arguments, since not all launchers pass the environment on.
 * The node reports in the step file which one it is and how make ended there, so that a failure of the launcher is
 * distinguished from one of a stage. Removing the step file cancels the step; making it executable says that another
 * one failed, so that only the units in work are finished.
 */
#ifndef XFP_LAUNCH_H
#define XFP_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/signals.h"
#include "base/xfp_error.h"

#define XFP_LAUNCH_PROGRAM "xfp-launch"
#define XFP_STEP_PREFIX "step-" /* of the names of step files */

/* Run a command by a launcher and wait for it. Its output goes to `log` (-1: to ours). `tick` (NULL: none) is called
 * about twice a second. *ended is as waitpid(2) has it. XFP_FAILED: it was not started. */
enum xfp_status xfp_launch_command(const char *launcher, const char *const *argv, int log, struct xfp_signals *signals,
				   void (*tick)(void *context), void *context, int *ended, struct xfp_error *err);

/* Describe how a launcher ended, such as "ended with status 1". */
void xfp_launch_outcome(int ended, char text[80]);

struct xfp_launch {
	const char *launcher, *work, *cache;
	bool keep_going;
	bool nice;                  /* at a lower priority */
	uint32_t heaviest;          /* batches.h; 0: targets are alike */
	const char *const *targets; /* of graph.mk, such as u000012-packed, ended by NULL */
};

/* Make the targets on a node. XFP_FAILED: a stage failed there, which has reported it, or the launcher failed. */
enum xfp_status xfp_launch_targets(const struct xfp_launch *launch, struct xfp_signals *signals, struct xfp_error *err);

#define XFP_LAUNCH_MESSAGE 960
/* The number of messages in the output of xfp-launch that begin with `beginning`, and the first of them. */
unsigned xfp_launch_find_messages(const char *log, const char *beginning, char first[XFP_LAUNCH_MESSAGE]);
/* The first failure of a launcher in the output of xfp-launch, with the number of others. */
bool xfp_launch_find_failure(const char *log, char failure[1024]);
/* " on node NAME" if a stage of a unit failed there; otherwise "". */
#define XFP_LAUNCH_NODE 128
void xfp_launch_find_node(const char *log, uint32_t unit, char where[XFP_LAUNCH_NODE]);

/* Whether a step has waited for a node for XFP_LAUNCH_PATIENCE_S: its launcher hangs, or waits for resources. Call it
 * repeatedly, with the time in seconds; zero `wait` before the first call. */
#define XFP_LAUNCH_PATIENCE_S 30
struct xfp_launch_wait {
	char step[256];        /* name of the file of a step that waits; "": none */
	double since, checked; /* 0: never */
};
bool xfp_launch_waits(const char *work, double now, struct xfp_launch_wait *wait);

/* Remove the step files of a work folder, which ends steps that still run somewhere. */
void xfp_launch_sweep(const char *work);

#endif
