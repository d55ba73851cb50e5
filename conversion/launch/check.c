/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/launch/check.h"

#include <stdlib.h>

#include "base/system/file.h"
#include "stages/settings/data.h"
#include "stages/work/host_check.h"

static enum xfp_status ask(const struct xfp_launch *launch, const struct xfp_host_check *check,
			   struct xfp_signals *signals, struct xfp_error *err)
{
	char *folder = xfp_tool_folder(), *program = folder ? xfp_path(folder, XFP_LAUNCH_PROGRAM) : NULL;
	const char *argv[] = { program,         "--here",        "--check",    "--step", check->name,
			       "--run-version", PACKAGE_VERSION, "--run-host", "-",      "--work",
			       check->work,     "--cache",       check->cache, NULL };
	enum xfp_status status = program ? XFP_OK : xfp_no_memory(err);
	char outcome[80];
	int ended = 0;

	if (!status)
		status = xfp_launch_command(launch->launcher, argv, -1, signals, NULL, NULL, &ended, err);
	free(program);
	free(folder);
	xfp_launch_outcome(ended, outcome);
	if (!status && signals->interrupted)
		return xfp_fail(err, XFP_FAILED, "%s", "");
	if (!status && ended)
		return xfp_fail(
			err, XFP_FAILED,
			"launcher '%s': %s before a node was checked; correct --launcher, or see its messages in "
			"the log",
			launch->launcher, outcome);
	if (!status && (status = xfp_host_check_conclude(check, err)))
		xfp_context(err, status, "launcher '%s': %s", launch->launcher, outcome);
	return status;
}

enum xfp_status xfp_launch_check(const struct xfp_launch *launch, struct xfp_signals *signals, struct xfp_error *err)
{
	struct xfp_host_check check = { .work = launch->work, .cache = launch->cache };
	enum xfp_status status = xfp_host_check_ask(&check, err);

	if (!status)
		status = ask(launch, &check, signals, err);
	xfp_host_check_remove(&check);
	return status;
}
