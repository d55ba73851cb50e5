/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/settings/goal_settings.h"

#include <stdio.h>
#include <string.h>

#include "base/text/size.h"

#define GOALS (XFP_SETTING_BIT(TARGET_SIZE) | XFP_SETTING_BIT(TARGET_BPW) | XFP_SETTING_BIT(ENVELOPE))

/* Two goals in one layer contradict each other; the goal of a later layer replaces an earlier one. */
static enum xfp_status set_goal(struct xfp_settings *s, enum xfp_goal_kind kind, const char *where, const char *text,
				struct xfp_error *err)
{
	if ((s->layer & GOALS) && s->goal.kind != kind)
		return xfp_fail(err, XFP_USAGE, "%s '%s': contradicts %s; give only one of them", where, text,
				s->goal.option);
	s->goal.kind = kind;
	s->goal.bare = kind != XFP_GOAL_BPW && xfp_size_is_bare(text, s->goal.bytes);
	snprintf(s->goal.option, sizeof s->goal.option, "%.30s %.30s", where, text);
	return XFP_OK;
}

enum xfp_status xfp_set_target_size(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err)
{
	if (!xfp_goal_parse_size(text, &s->goal.bytes))
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected a size of the bundle above 0, as in 14GiB or 3.5G",
				where, text);
	return set_goal(s, XFP_GOAL_SIZE, where, text, err);
}

enum xfp_status xfp_set_target_bpw(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err)
{
	if (!xfp_goal_parse_bpw(text, &s->goal.micro))
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected bits per weight above 0, as in 4.25, and 64 at most",
				where, text);
	return set_goal(s, XFP_GOAL_BPW, where, text, err);
}

enum xfp_status xfp_set_envelope(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err)
{
	if (!xfp_goal_parse_envelope(text, &s->goal.gpus, &s->goal.bytes))
		return xfp_fail(err, XFP_USAGE,
				"%s '%s': expected the memory of a GPU, or of several, as in 24GiB or 2x96GiB", where,
				text);
	return set_goal(s, XFP_GOAL_ENVELOPE, where, text, err);
}

/* Reserves of one layer are added up; those of a later layer, or an option after the environment, replace them. */
enum xfp_status xfp_set_reserve(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err)
{
	bool environment = !strncmp(where, "XFP_", 4),
	     more = (s->layer & XFP_SETTING_BIT(RESERVE)) && s->reserve_by_environment == environment;
	uint64_t bytes, before = more ? s->goal.reserve : 0;
	bool bare;

	if (!xfp_goal_parse_reserve(text, &bytes, &bare) || before + bytes < bytes)
		return xfp_fail(err, XFP_USAGE,
				"%s '%s': expected the other memory that each GPU needs, as in kv=8GiB,act=10GiB",
				where, text);
	s->reserve_by_environment = environment;
	s->goal.reserve = before + bytes;
	s->goal.bare_reserve = bare || (more && s->goal.bare_reserve);
	s->goal.binary_reserve = xfp_size_is_binary(text);
	return XFP_OK;
}

enum xfp_status xfp_set_weight(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err)
{
	enum xfp_status status = xfp_goal_add_weights(&s->goal, text, err);

	return status == XFP_USAGE ? xfp_context(err, status, "%s '%s'", where, text) : status;
}

enum xfp_status xfp_finish_goal(struct xfp_settings *s, struct xfp_error *err)
{
	const struct xfp_goal *goal = &s->goal;
	char taken[32], there[32];

	if (goal->kind != XFP_GOAL_ENVELOPE) {
		s->goal.reserve = 0;
		return s->layer & XFP_SETTING_BIT(RESERVE) ? xfp_fail(err, XFP_USAGE, "--reserve requires --envelope")
							   : XFP_OK;
	}
	if (goal->reserve >= goal->bytes)
		return xfp_fail(err, XFP_USAGE,
				"%s: --reserve takes %s of each GPU, which has %s; reserve less, or name larger GPUs%s",
				goal->option, xfp_size_text(goal->reserve, goal->binary_reserve, taken),
				xfp_size_text(goal->bytes, xfp_size_is_binary(goal->option), there),
				goal->bare ? "; a number without a unit is bytes: " XFP_SIZE_UNITS : "");
	return XFP_OK;
}
