/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The activation of an MLP: silu(gate) up, or the same with GELU, or a clamped SwiGLU. An MLP without a gate has no
 * factor `up`.
 */
#include "model/forward/lane_set.h"
#include "model/forward/numbers.h"
#include "model/forward/parts.h"
#include "runtime/team.h"

struct activation_task {
	const struct xfp_description *description;
	float *gate;     /* becomes activation(gate) up */
	const float *up; /* NULL: 1 */
	size_t width;
	size_t count; /* for XFP_FAST: of all tokens */
};

#define ACTIVATED 1024 /* numbers per work item */

static double activate(enum xfp_activation activation, double x)
{
	switch (activation) {
	case XFP_GELU:
		return x * 0.5 * (1 + xfp_erf(x * 0.70710678118654752440));
	case XFP_GELU_TANH:
		return x * 0.5 * (1 + xfp_tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
	default:
		return x / (1 + xfp_exp(-x));
	}
}

/* activation(gate) up */
static double gated(const struct xfp_description *d, double gate, double up)
{
	double limit = d->swiglu_limit;

	if (d->activation != XFP_CLAMPED_SWIGLU)
		return activate(d->activation, gate) * up;
	gate = gate > limit ? limit : gate;
	up = up > limit ? limit : up < -limit ? -limit : up;
	return gate * xfp_sigmoid(d->swiglu_alpha * gate) * (up + 1);
}

static void activate_token(void *context, unsigned thread, size_t token)
{
	const struct activation_task *task = context;
	float *gate = task->gate + token * task->width;
	const float *up = task->up ? task->up + token * task->width : NULL;

	(void)thread;
	for (size_t i = 0; i < task->width; i++)
		gate[i] = (float)gated(task->description, gate[i], up ? up[i] : 1);
}

/* One work item: a run of numbers, which may cross tokens. */
static void activate_fast(void *context, unsigned thread, size_t i)
{
	const struct activation_task *task = context;
	size_t first = i * ACTIVATED, count = task->count - first < ACTIVATED ? task->count - first : ACTIVATED;
	float *gate = task->gate + first;
	const float *up = task->up ? task->up + first : NULL;

	(void)thread;
	if (up && task->description->activation == XFP_SILU) {
		xfp_lane_set()->silu(gate, up, count);
		return;
	}
	for (size_t j = 0; j < count; j++)
		gate[j] = (float)gated(task->description, gate[j], up ? up[j] : 1);
}

enum xfp_status xfp_forward_activate(const struct xfp_forward *forward, float *a, const float *b, size_t width,
				     size_t count, struct xfp_error *err)
{
	struct activation_task task = { forward->description, a, b, width, count * width };
	enum xfp_status status = xfp_team_enter(forward->team, 0, 1, err);

	if (status)
		return status;
	if (forward->arithmetic == XFP_FAST)
		xfp_team_run(forward->team, (task.count + ACTIVATED - 1) / ACTIVATED, activate_fast, &task);
	else
		xfp_team_run(forward->team, count, activate_token, &task);
	xfp_team_leave(forward->team);
	return XFP_OK;
}
