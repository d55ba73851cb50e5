/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/make_log.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/filesystem.h"
#include "conversion/launch/child.h"
#include "conversion/place.h"

#define FULL_BYTES 65536 /* with less free space, even one line may fail to write */

struct death {
	bool layer; /* the stage of a layer, whose number is in */
	uint32_t unit;
	enum xfp_stamp step;
	int signal; /* 0: unknown signal */
	char text[64];
};

/* The step with this make target name. */
static enum xfp_stamp step_of(const char *target)
{
	int s = 0;

	while (s < XFP_STAMPS && (!xfp_steps[s].target || strcmp(target, xfp_steps[s].target)))
		s++;
	return (enum xfp_stamp)s;
}

static int signal_of(const char *text)
{
	for (int number = 1; number < NSIG; number++) {
		const char *name = strsignal(number);

		if (name && !strncmp(text, name, strlen(name)))
			return number;
	}
	return 0;
}

/* Parse "make[1]: *** [FILE:LINE: u000012-fit] Killed" (l000003-inputs for a layer), or "Error 137" if a shell reported
 * the signal. */
static bool parse(const char *line, struct death *death)
{
	const char *stars = strstr(line, "*** ["), *unit = stars ? strstr(stars, ": u") : NULL,
		   *target = unit || !stars ? unit : strstr(stars, ": l"), *end;
	char name[32];
	int code;

	death->layer = !unit;
	if (!target || sscanf(target, ": %*1[ul]%" SCNu32 "-%31[^]]", &death->unit, name) != 2 ||
	    (death->layer ? strcmp(name, "inputs") != 0 : (death->step = step_of(name)) == XFP_STAMPS) ||
	    !(end = strstr(target, "] ")))
		return false;
	end += 2;
	if (sscanf(end, "Error %d", &code) == 1) {
		if (code <= 128 || code > 128 + 64)
			return false;
		death->signal = code - 128;
		snprintf(death->text, sizeof death->text, "%s", strsignal(death->signal));
	} else {
		death->signal = signal_of(end);
		snprintf(death->text, sizeof death->text, "%s", end);
	}
	return true;
}

/* The log after `offset`; NULL: it cannot be read. The caller frees it. */
static char *read_log(const struct xfp_conversion *c, off_t offset)
{
	off_t size = xfp_log_size(&c->place) - offset;
	char *text = size > 0 ? calloc(1, (size_t)size + 1) : NULL;

	if (text && pread(c->place.log, text, (size_t)size, offset) < 0)
		*text = '\0';
	return text;
}

static bool find_death(const struct xfp_conversion *c, const char *text, struct death *death)
{
	char *copy = strdup(text), *rest = copy, *line;
	bool found = false;

	while (!found && (line = strsep(&rest, "\n")))
		found = parse(line, death) &&
			death->unit < (death->layer ? c->layers.count : c->units.ledger->unit_count);
	free(copy);
	return found;
}

static enum xfp_status explain(const struct xfp_conversion *c, const char *text, struct xfp_error *err)
{
	struct death death;
	uint64_t disk_space;
	char failure[1024], where[XFP_LAUNCH_NODE];

	/* A launcher that ends takes stages with it. */
	if (c->request->launcher && xfp_launch_find_failure(text, failure))
		return xfp_fail(err, XFP_FAILED, "%s; see %s/%s", failure, c->request->work, XFP_LOG_FILE);
	if (find_death(c, text, &death) && death.layer)
		return xfp_fail(err, XFP_FAILED, "layer %" PRIu32 ": %s was killed by a signal (%s): %s; see %s/%s",
				death.unit, XFP_CALIBRATE_PROGRAM, death.text, xfp_signal_remedy(death.signal),
				c->request->work, XFP_LOG_FILE);
	if (find_death(c, text, &death)) {
		xfp_launch_find_node(text, death.unit, where);
		return xfp_fail(err, XFP_FAILED,
				"unit u%06" PRIu32 " (%s): %s%s was killed by a signal (%s)%s: %s; see %s/%s",
				death.unit, xfp_printable(c->units.ledger->units[death.unit].name).text,
				xfp_steps[death.step].program,
				death.step == XFP_STAMP_CHOICE ? ", or the fit that it requested," : "", death.text,
				where, xfp_signal_remedy(death.signal), c->request->work, XFP_LOG_FILE);
	}
	if (xfp_free_bytes(c->request->work, &disk_space) && disk_space < FULL_BYTES)
		return xfp_fail(err, XFP_FAILED,
				"%s: disk full, so no stage could report its error; free some space and run again",
				c->request->work);
	return xfp_fail(err, XFP_FAILED, "make failed, and no stage reported an error; see %s/%s", c->request->work,
			XFP_LOG_FILE);
}

/* The shell's own messages have the same prefix, so messages of xfp are preferred. */
bool xfp_make_log_launched(const struct xfp_conversion *c, off_t offset, char message[XFP_LAUNCH_MESSAGE])
{
	static const char *const beginnings[] = { "node ", "launcher '", "" };
	char *text = read_log(c, offset);
	bool found = false;

	for (size_t i = 0; text && !found && i < sizeof beginnings / sizeof beginnings[0]; i++)
		found = xfp_launch_find_messages(text, beginnings[i], message);
	free(text);
	return found;
}

enum xfp_status xfp_make_log_explain(const struct xfp_conversion *c, off_t offset, struct xfp_error *err)
{
	char *text = read_log(c, offset);
	enum xfp_status status = explain(c, text ? text : "", err);

	free(text);
	return status;
}

void xfp_make_log_show_launcher(const struct xfp_conversion *c, off_t offset)
{
	char *text = c->request->launcher ? read_log(c, offset) : NULL, failure[1024];

	if (text && xfp_launch_find_failure(text, failure))
		XFP_NOTIFY(c, .kind = XFP_NOTICE_MESSAGE, .text = failure);
	free(text);
}
