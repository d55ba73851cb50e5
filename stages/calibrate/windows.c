/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/calibrate/windows.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define TOKENS 32768u
#define TOKENS_OF_EXPERT 1024u
#define WINDOW 512u
#define ENCODER_WINDOW 64u

uint64_t xfp_window_length(const struct xfp_description *d)
{
	uint64_t length = d->encoder ? ENCODER_WINDOW : WINDOW;

	return d->context < length ? d->context : length;
}

uint64_t xfp_default_tokens(const struct xfp_description *d)
{
	uint64_t tokens = d->experts ? xfp_divide_up((uint64_t)TOKENS_OF_EXPERT * d->experts, d->experts_per_token) : 0;

	return tokens > TOKENS ? tokens : TOKENS;
}

/* The number of item `i` of `count`, spread evenly over the numbers from 0 to `last`. */
static uint64_t spread(uint64_t i, uint64_t count, uint64_t last)
{
	return count > 1 ? i * last / (count - 1) : 0;
}

enum xfp_status xfp_windows_of_text(const struct xfp_text_ids *text, uint64_t length, uint64_t wanted,
				    struct xfp_tokens *windows, struct xfp_error *err)
{
	const struct xfp_token_ids *prefix = &text->prefix, *suffix = &text->suffix;
	uint64_t own = length - prefix->count - suffix->count, count = xfp_divide_up(wanted, length);
	uint32_t *to;

	if (count > text->ids.count / own)
		count = text->ids.count / own;
	*windows =
		(struct xfp_tokens){ .sequences = count, .length = length, .left_out = text->ids.count - count * own };
	if (!(windows->ids = to = calloc(count * length + 1, sizeof *to)))
		return xfp_no_memory(err);
	for (uint64_t w = 0; w < count; w++, to += length) {
		const uint32_t *from = text->ids.id + spread(w, count, text->ids.count - own);

		if (prefix->count)
			memcpy(to, prefix->id, prefix->count * sizeof *to);
		memcpy(to + prefix->count, from, own * sizeof *to);
		if (suffix->count)
			memcpy(to + prefix->count + own, suffix->id, suffix->count * sizeof *to);
	}
	return XFP_OK;
}

void xfp_windows_select(struct xfp_tokens *windows, uint64_t wanted)
{
	uint64_t count = xfp_divide_up(wanted, windows->length), length = windows->length;

	if (count >= windows->sequences)
		return;
	for (uint64_t w = 1; w < count; w++)
		memmove(windows->ids + w * length, windows->ids + spread(w, count, windows->sequences - 1) * length,
			length * sizeof *windows->ids);
	windows->left_out = (windows->sequences - count) * length;
	windows->sequences = count;
}
