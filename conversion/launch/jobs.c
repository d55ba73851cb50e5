/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/launch/jobs.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/processors.h"

/* The sum of SLURM_TASKS_PER_NODE, such as "2(x3),1"; 0 if it is not set or not understood. */
static unsigned tasks_per_node(void)
{
	const char *at = getenv("SLURM_TASKS_PER_NODE");
	unsigned sum = 0;

	if (!at)
		return 0;
	while (*at) {
		unsigned tasks, nodes = 1;
		int length = 0;

		if (sscanf(at, "%4u%n", &tasks, &length) != 1)
			return 0;
		at += length;
		if (sscanf(at, "(x%5u)%n", &nodes, &length) == 1)
			at += length;
		sum += tasks * nodes;
		if (*at && *at++ != ',')
			return 0;
	}
	return sum;
}

static unsigned whole_number(const char *variable)
{
	const char *text = getenv(variable);
	unsigned number;
	int length = 0;

	return text && sscanf(text, "%7u%n", &number, &length) == 1 && !text[length] ? number : 0;
}

/* Whether the jobserver named in MAKEFLAGS is reachable: make closes it for recipes without +. */
static bool jobserver_reaches(const char *word)
{
	const char *value = strchr(word, '=');
	int in, out;

	if (!value)
		return false;
	if (!strncmp(value, "=fifo:", 6))
		return !access(value + 6, R_OK | W_OK);
	return sscanf(value, "=%d,%d", &in, &out) == 2 && fcntl(in, F_GETFD) >= 0 && fcntl(out, F_GETFD) >= 0;
}

unsigned xfp_parent_jobs(char inherited[XFP_JOBSERVER])
{
	const char *flags = getenv("MAKEFLAGS");
	char *copy = strdup(flags ? flags : ""), *rest = copy, *word;
	unsigned jobs = 0;

	*inherited = '\0';
	while (copy && (word = strsep(&rest, " ")) && strcmp(word, "--")) {
		if (!strncmp(word, "-j", 2))
			jobs = (unsigned)strtoul(word + 2, NULL, 10);
		if (!strncmp(word, "--jobserver", 11) && strlen(word) < XFP_JOBSERVER - 16 && jobserver_reaches(word))
			snprintf(inherited, XFP_JOBSERVER, " -j%.0u %s", jobs, word);
	}
	free(copy);
	return !*inherited ? 0 : jobs ? jobs : xfp_processors();
}

unsigned xfp_jobs(const struct xfp_request *request)
{
	unsigned jobs = request->jobs;
	char inherited[XFP_JOBSERVER];

	if (!jobs)
		jobs = xfp_parent_jobs(inherited);
	if (!jobs && request->launcher && !(jobs = whole_number("SLURM_NTASKS")))
		jobs = tasks_per_node();
	return jobs ? jobs : xfp_processors();
}

static unsigned least(unsigned a, unsigned b)
{
	return b && b < a ? b : a;
}

unsigned xfp_step_processors(void)
{
	unsigned tasks = whole_number("SLURM_STEP_TASKS_PER_NODE"), node = whole_number("SLURM_CPUS_ON_NODE");

	if (node && tasks)
		node = node > tasks ? node / tasks : 1;
	return least(least(xfp_processors(), whole_number("SLURM_CPUS_PER_TASK")), node);
}

unsigned xfp_step_processors_expected(void)
{
	unsigned task = whole_number("SLURM_CPUS_PER_TASK");

	return task ? task : xfp_processors();
}
