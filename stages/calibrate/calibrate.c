/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calibrate.c - xfp-calibrate: the inputs of each layer's matrices for calibration tokens.
 *
 * input    the checkpoint's tensors of the layer, calibration.h5, the inputs of the layer before
 * output   an inputs artifact (schemas/inputs.h); with --begin, calibration.h5 (schemas/calibration.h)
 * key      of the layer before, or token ids; model description, layer, digests of all its tensors
 */
#include <stdlib.h>

#include "runtime/xfp.h"
#include "stages/calibrate/begin.h"
#include "stages/calibrate/layer.h"
#include "stages/stage.h"

static enum xfp_status begin(void *own, const char *work, const char *model, struct xfp_error *err)
{
	return xfp_calibrate_begin(own, work, model, err);
}

int main(int argc, char **argv)
{
	const char *instructions = getenv("XFP_INSTRUCTIONS");
	struct xfp_calibrate_options o = { .begin = false };
	const struct xfp_option options[] = {
		{ .name = "begin", .text = "choose the calibration tokens for a model", .set = &o.begin },
		{ .name = "text",
		  .value = "FILE",
		  .text = "UTF-8 text to calibrate with (default: xfp's own)",
		  .into = &o.text },
		{ .name = "tokens",
		  .value = "FILE",
		  .text = "token ids, a .npy file of integers [windows, tokens]",
		  .complete = "FILE",
		  .into = &o.tokens },
		{ .name = "self", .text = "text that the model itself generates", .set = &o.self },
		{ .name = "self-length",
		  .text = "with zeros, as many as --self has tokens, for estimates",
		  .set = &o.self_length },
		{ .name = "pace", .text = "with --begin, predict times, for estimates", .set = &o.pace },
		{ .name = "token-count",
		  .value = "N",
		  .text = "number of tokens (default: 32768, or more with many experts)",
		  .into_64 = &o.token_count,
		  .range = { "a number of tokens", 2, (uint64_t)1 << 40 } },
		{ .name = "memory",
		  .value = "SIZE",
		  .text = "limit for windows computed together (default: 2GiB; with --self, half of the "
			  "available memory)",
		  .into_size = &o.memory,
		  .range = { "a size such as 2GiB", 1, UINT64_MAX } },
		{ .name = "threads",
		  .value = "N",
		  .text = "number of threads (default: one for each processor)",
		  .into_32 = &o.threads,
		  .range = { "a number of threads", 1, 1024 } },
		{ .name = NULL },
	};
	const struct xfp_stage stage = {
		.step = XFP_STAMP_INPUTS,
		.summary = "Computes the inputs of a layer's matrices for the calibration tokens, from the residual\n"
			   "stream after the layer before.",
		.run = xfp_calibrate_layer,
		.options = options,
		.usage = "[--memory SIZE] [--threads N]",
		.apart = { .chosen = &o.begin,
			   .usage = "--begin [--text FILE | --tokens FILE | --self] [--token-count N] "
				    "[--memory SIZE] [--threads N]",
			   .operand = "MODEL",
			   .run = begin },
		.own = &o,
	};

	/* The model's instruction set; xfp_stage_main refuses unknown names. */
	if (instructions && *instructions)
		xfp_use_instructions(instructions);
	return xfp_stage_main(argc, argv, &stage);
}
