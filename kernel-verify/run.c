/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - run every group's trials, and compute digests of the results of exact ops.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "kernel-verify/cuda/device.h"
#include "kernel-verify/kernel_verify.h"
#include "kernel-verify/trial/matrix.h"

#define GOLDEN_SEED 1
#define GOLDEN_TRIALS 48
/* The first trial if not all are run; the selection has wide and narrow matrices, with and without outliers, and any
 * number of vectors. The step is coprime to the number of trials. */
#define FIRST_OF_FEW 43
#define STEP_OF_FEW 29

/* ---- trials --------------------------------------------------------------------------------------------- */

/* Run plain C on the same inputs, in buffers laid out in the opposite direction. A plain C kernel is compared with
 * itself, which finds dependence on surrounding bytes. */
static void attempt(const struct xfp_kernel_op *op, enum xfp_kernel_set set, uint64_t seed, unsigned number,
		    struct xfp_trial *trial, struct xfp_trial *plain)
{
	trial->from_start = number % 2;
	trial->fresh = 0xff;
	xfp_trial_run(trial, op, set, seed, number);
	if (!op->exact || trial->failed)
		return;
	plain->from_start = !trial->from_start;
	plain->fresh = 0xfe;
	xfp_trial_run(plain, op, XFP_SET_PLAIN, seed, number);
	xfp_trial_compare(trial, plain);
}

static void run_group(const struct xfp_kernel_op *op, enum xfp_kernel_set set, struct xfp_kernel_report *report)
{
	unsigned failed = 0, done, trials = report->request->trials;
	struct xfp_device *device = report->request->device;
	struct xfp_trial trial = { .device = device }, plain = { 0 };
	char failures[XFP_KEPT_FAILURES][640];

	trials = trials > op->trials && set == XFP_SET_CUDA ? op->trials + op->large
		 : trials < op->trials                      ? trials
							    : op->trials;
	for (done = 0; done < trials && !(device && device->lost); done++) {
		unsigned number = trials >= op->trials ? done : (FIRST_OF_FEW + done * STEP_OF_FEW) % op->trials;

		if (done >= op->trials)
			number = XFP_LARGE_FIRST + (done - op->trials) * XFP_LARGE_STEP;
		attempt(op, set, report->request->seed, number, &trial, &plain);
		if (!trial.failed)
			continue;
		if (failed < XFP_KEPT_FAILURES)
			snprintf(failures[failed], sizeof *failures, "seed %llu, trial %u, %s: %s",
				 (unsigned long long)report->request->seed, number, trial.shape, trial.failure);
		failed++;
	}
	xfp_trial_free(&trial);
	xfp_trial_free(&plain);
	xfp_report_group(report, op->name, set, done, failed, (const char(*)[640])failures,
			 failed < XFP_KEPT_FAILURES ? failed : XFP_KEPT_FAILURES);
}

void xfp_kernel_verify_ops(const struct xfp_kernel_ops *ops, struct xfp_kernel_report *report)
{
	const struct xfp_kernel_request *request = report->request;
	unsigned built = xfp_kernel_sets_built();

	for (unsigned i = 0; i < ops->count; i++)
		for (unsigned set = 0; set < XFP_KERNEL_SETS; set++) {
			const struct xfp_kernel_op *op = &ops->op[i];

			if (!((op->sets & built & ~request->masked) >> set & 1) ||
			    !xfp_kernel_wanted(request, op->name, set))
				continue;
			if (request->device && request->device->lost)
				report->lost++;
			else if (request->sets >> set & 1)
				run_group(op, set, report);
			else
				report->not_run[set]++;
		}
}

/* ---- digests --------------------------------------------------------------------------------------------- */

/* The sign and payload of a NaN depend on the processor. */
static void add_record(struct xfp_sha256 *sha, const struct xfp_trial_record *record, const uint8_t *from)
{
	size_t size = record->type == 'b'                          ? 1
		      : record->type == 'h'                        ? 2
		      : record->type == 'i' || record->type == 'f' ? 4
								   : 8;

	xfp_sha256_update(sha, record->name, strlen(record->name));
	for (size_t i = 0; i < record->count; i++, from += size) {
		uint32_t bits;

		memcpy(&bits, from, size < sizeof bits ? size : sizeof bits);
		if (record->type == 'f' && (bits & 0x7fffffff) > 0x7f800000) {
			bits = 0x7fc00000;
			xfp_sha256_update(sha, &bits, sizeof bits);
		} else {
			xfp_sha256_update(sha, from, size);
		}
	}
}

static void digest_of(const struct xfp_kernel_op *op, enum xfp_kernel_set set)
{
	struct xfp_trial trial = { 0 };
	struct xfp_sha256 sha;
	uint8_t digest[32];
	char hex[65];

	xfp_sha256_init(&sha);
	for (unsigned number = 0; number < GOLDEN_TRIALS; number++) {
		trial.fresh = 0xff;
		xfp_trial_run(&trial, op, set, GOLDEN_SEED, number);
		for (unsigned i = 0; i < trial.record_count; i++)
			add_record(&sha, &trial.records[i], trial.recorded + trial.records[i].at);
		if (trial.failed)
			xfp_sha256_update(&sha, trial.failure, strlen(trial.failure));
	}
	xfp_trial_free(&trial);
	xfp_sha256_final(&sha, digest);
	xfp_hex(digest, sizeof digest, hex);
	printf("%s  %s  %s\n", hex, op->name, xfp_kernel_set_name(set));
}

void xfp_kernel_golden(const struct xfp_kernel_ops *ops, const struct xfp_kernel_request *request)
{
	for (unsigned i = 0; i < ops->count; i++)
		for (unsigned set = 0; set < XFP_KERNEL_SETS; set++)
			if (ops->op[i].exact && (ops->op[i].sets & request->sets) >> set & 1 &&
			    xfp_kernel_wanted(request, ops->op[i].name, set))
				digest_of(&ops->op[i], set);
}
