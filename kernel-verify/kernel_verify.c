/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_verify.c - xfp-kernel-verify: test every kernel against plain C or the reference in double, and measure its
 * speed.
 *
 * input    none; with --bundle, a bundle
 * output   a line per group, and the sum of all
 * exit     4 where a kernel is wrong
 *
 * It links the kernels and libxfp, and no other library.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/system/command_line.h"
#include "base/system/mapped.h"
#include "base/system/output.h"
#include "base/system/standard_files.h"
#include "base/text/screen.h"
#include "kernel-verify/cuda/device.h"
#include "kernel-verify/kernel_verify.h"

static const char program[] = "xfp-kernel-verify";

static struct xfp_kernel_ops *all_ops(void)
{
	struct xfp_kernel_ops *ops = calloc(1, sizeof *ops);

	if (!ops) {
		perror(program);
		exit(XFP_FAILED);
	}
	xfp_kernel_ops_index(ops);
	xfp_kernel_ops_rows(ops);
	xfp_kernel_ops_cells(ops);
	xfp_kernel_ops_compact(ops);
	xfp_kernel_ops_scaled(ops);
	xfp_kernel_ops_feedback(ops);
	xfp_kernel_ops_matvec(ops);
	xfp_kernel_ops_panel(ops);
	xfp_kernel_ops_device(ops);
	return ops;
}

static void list(const struct xfp_kernel_ops *ops, const struct xfp_kernel_request *request)
{
	for (unsigned i = 0; i < ops->count; i++) {
		const struct xfp_kernel_op *op = &ops->op[i];
		unsigned shown = 0;

		for (unsigned set = 0; set < XFP_KERNEL_SETS; set++) {
			if (!((op->sets & xfp_kernel_sets_built() & ~request->masked) >> set & 1) ||
			    !xfp_kernel_wanted(request, op->name, set))
				continue;
			printf("%s%s%s", shown ? "" : op->name, shown ? " " : ": ", xfp_kernel_set_name(set));
			shown++;
		}
		if (shown)
			putchar('\n');
	}
}

static void print_device(const struct xfp_kernel_request *request)
{
	const struct xfp_cuda_info *info = &request->device->info;

	printf(request->json
		       ? "\n  \"device\": {\"name\": \"%s\", \"compute_capability\": \"%d.%d\", \"processors\": %d, "
			 "\"driver\": \"%d.%d\", \"toolkit\": \"%d.%d\"},"
		       : "device: %s, compute capability %d.%d, %d multiprocessors; driver for CUDA %d.%d, kernels "
			 "of nvcc %d.%d\n",
	       info->device, info->major, info->minor, info->processors, info->driver / 1000, info->driver % 1000 / 10,
	       info->toolkit / 1000, info->toolkit % 1000 / 10);
}

static void begin(const struct xfp_kernel_request *request)
{
	const char *between = "";

	if (request->json)
		printf("{\n  \"seed\": %llu,\n  \"sets\": [", (unsigned long long)request->seed);
	else
		printf("%s: seed %llu, sets", program, (unsigned long long)request->seed);
	for (unsigned set = 0; set < XFP_KERNEL_SETS; set++)
		if (request->sets >> set & 1) {
			printf(request->json ? "%s\"%s\"" : "%s %s", between, xfp_kernel_set_name(set));
			between = request->json ? ", " : "";
		}
	printf(request->json ? "]," : "\n");
	if (request->device)
		print_device(request);
	if (request->json)
		printf("\n  \"groups\": [");
	xfp_output_flush(); /* show at once that the run has begun */
}

static unsigned not_run(const struct xfp_kernel_report *report)
{
	unsigned sum = 0;

	for (unsigned set = 0; set < XFP_KERNEL_SETS; set++)
		sum += report->not_run[set];
	return sum;
}

static void total(const struct xfp_kernel_report *report)
{
	const struct xfp_kernel_request *request = report->request;
	const char *between = "";

	if (request->json)
		printf("\n  ],\n  \"not_run\": {");
	for (unsigned set = 0; set < XFP_KERNEL_SETS; set++) {
		if (!report->not_run[set])
			continue;
		if (request->json)
			printf("%s\"%s\": %u", between, xfp_kernel_set_name(set), report->not_run[set]);
		else
			printf("not run: no %s here: %u groups\n", xfp_kernel_set_title(set), report->not_run[set]);
		between = ", ";
	}
	if (report->lost && !request->json)
		printf("not run: the device no longer responds: %u groups\n", report->lost);
	if (report->unsupported && !request->json)
		printf("not run: no kernel supports f64: %u matrices\n", report->unsupported);
	if (report->lost && request->json)
		printf("},\n  \"lost\": %u", report->lost);
	else if (request->json)
		printf("}");
	if (request->json)
		printf(",\n  \"total\": {\"groups\": %u, \"trials\": %u, \"failed_groups\": %u, \"failed\": %u}",
		       report->groups, report->trials, report->failed_groups, report->failed);
	else if (report->failed)
		printf("total: %u of %u groups failed, in %u of %u trials\n", report->failed_groups, report->groups,
		       report->failed, report->trials);
	else
		printf("total: %u groups, %u trials, all ok\n", report->groups, report->trials);
}

static enum xfp_status verify(const struct xfp_kernel_ops *ops, const struct xfp_kernel_request *request,
			      struct xfp_error *err)
{
	struct xfp_kernel_report report = { .request = request };
	enum xfp_status status = XFP_OK;

	begin(request);
	if (request->bundle) {
		xfp_mapped_begin(program, request->bundle, NULL);
		status = xfp_kernel_verify_bundle(&report, err);
		xfp_mapped_end();
	} else if (request->trials) {
		xfp_kernel_verify_ops(ops, &report);
	}
	total(&report);
	if (request->bench && !status && !report.failed) {
		report.any = false;
		if (request->device)
			status = xfp_device_bench(request->device, &report, err);
		else
			xfp_kernel_bench(ops, &report);
	}
	if (request->json)
		printf("\n}\n");
	if (!status && !report.groups && !not_run(&report) && request->trials)
		status = xfp_fail(err, XFP_USAGE,
				  request->bundle
					  ? "no matrix for the selected kernels; names are like 'bundle v2c k=3', "
					    "and this machine must support the set"
					  : "no kernel of that name for an instruction set of this machine; see "
					    "--list");
	if (!status && report.failed)
		status = xfp_fail(err, XFP_UNMET, "%u groups of kernels failed", report.failed_groups);
	return status;
}

/* ---- the command line ---------------------------------------------------------------------------- */

static enum xfp_status refuse(const char *value, struct xfp_error *err)
{
	return xfp_fail(err, XFP_USAGE, "invalid value '%s'; see --help", value);
}

static enum xfp_status parse_device(const struct xfp_option *option, const char *where, const char *value,
				    struct xfp_error *err)
{
	struct xfp_kernel_request *request = option->context;
	int number;

	(void)where;
	if (!xfp_device_parse(value, &number))
		return refuse(value, err);
	request->device_name = value;
	return XFP_OK;
}

static enum xfp_status parse_vectors(const struct xfp_option *option, const char *where, const char *value,
				     struct xfp_error *err)
{
	struct xfp_kernel_request *request = option->context;

	(void)where;
	return xfp_bench_counts_parse(value, &request->vectors) ? XFP_OK : refuse(value, err);
}

static enum xfp_status parse_sets(const struct xfp_option *option, const char *where, const char *value,
				  struct xfp_error *err)
{
	unsigned *masked = option->context, sets;

	(void)where;
	if (!xfp_kernel_sets_parse(value, &sets))
		return refuse(value, err);
	*masked = ~sets;
	return XFP_OK;
}

/* The error in options that would have no effect; NULL if none. */
static const char *option_error(const struct xfp_kernel_request *request)
{
	if (request->list + request->golden + request->bench + (request->bundle != NULL) > 1)
		return "use only one of --list, --golden, --bench and --bundle";
	if (request->json && (request->list || request->golden))
		return "--list and --golden do not support --json";
	if (request->bundle_rows && !request->bundle)
		return "--rows needs --bundle";
	if (request->processor_time && (!request->bench || request->device_name))
		return "--processor-time needs --bench, and excludes --device";
	if (request->unchecked && (!request->bench || !request->device_name))
		return "--unchecked needs --bench and --device";
	if (request->vectors && (!request->bench || !request->device_name))
		return "--vectors needs --bench and --device";
	if (request->device_name && request->bundle)
		return "--device does not support --bundle";
	if (request->device_name && request->golden)
		return "--device does not support --golden";
	if (request->device_name && request->masked)
		return "--cpu-mask and --device exclude each other";
	if (request->trials < UINT32_MAX && (request->bundle || request->list || request->golden))
		return "--trials has no effect with --list, --golden and --bundle";
	if (!request->trials && !request->bench)
		return "--trials 0 needs --bench";
	return NULL;
}

/* Returns true to continue. Otherwise the caller exits with *status. */
static bool read_line(int argc, char **argv, struct xfp_kernel_request *request, int *status)
{
	char sets[160] = "the instruction sets that may be used, of:";
	const struct xfp_option options[] = {
		{ .name = "seed",
		  .value = "N",
		  .text = "seed of the random inputs [from the clock; printed]",
		  .into_64 = &request->seed,
		  .range = { "a number", 0, UINT64_MAX } },
		{ .name = "cpu-mask",
		  .value = "SET,...",
		  .complete = "plain|avx2|avx512|vbmi|neon|dotprod",
		  .text = sets,
		  .parse = parse_sets,
		  .context = &request->masked },
		{ .name = "device",
		  .value = "cuda[:N]",
		  .complete = "cuda|cuda:0|cuda:1",
		  .text = "use a GPU instead, with libxfp-cuda",
		  .parse = parse_device,
		  .context = request },
		{ .name = "trials",
		  .value = "N",
		  .text = "trials of each kernel [all]; 0: only the bench",
		  .into_32 = &request->trials,
		  .range = { "a number of trials", 0, UINT32_MAX } },
		{ .name = "filter",
		  .value = "GLOB",
		  .text = "run only ops such as 'matvec v2c *', or groups such as '* avx2'",
		  .into = &request->filter },
		{ .name = "list", .text = "list ops and their sets, run nothing", .set = &request->list },
		{ .name = "golden",
		  .text = "print SHA-256 of results of exact ops, by op and set",
		  .set = &request->golden },
		{ .name = "bundle",
		  .value = "BUNDLE",
		  .text = "multiply by every unit of BUNDLE instead, with every set",
		  .into = &request->bundle },
		{ .name = "rows",
		  .value = "N",
		  .text = "use N rows of each matrix of BUNDLE [all]",
		  .into_64 = &request->bundle_rows,
		  .range = { "a number of rows", 0, UINT64_MAX } },
		{ .name = "bench", .text = "measure kernels that are right", .set = &request->bench },
		{ .name = "mib",
		  .value = "N",
		  .text = "size of the bench's matrices [256; on a GPU 64]",
		  .into_64 = &request->mib,
		  .range = { "a number of MiB", 1, 1 << 20 } },
		{ .name = "vectors",
		  .value = "N,...",
		  .complete = "1|2|4|8|16|32|512",
		  .text = "bench of a GPU: only these numbers of vectors, no upload",
		  .parse = parse_vectors,
		  .context = request },
		{ .name = "threads",
		  .value = "N",
		  .text = "threads of products and of --bundle [one per processor]",
		  .into_32 = &request->threads,
		  .range = { "a number of threads", 1, 1024 } },
		{ .name = "processor-time",
		  .text = "bench of products: measure processor time",
		  .set = &request->processor_time },
		{ .name = "unchecked",
		  .text = "bench of a GPU: measure failed kernels, too",
		  .set = &request->unchecked },
		{ .name = "json", .text = "print one JSON object", .set = &request->json },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp-kernel-verify [--seed N] [--cpu-mask SET,... | --device cuda[:N]] [--filter GLOB]\n"
			 "       [--trials N] [--list] [--golden] [--bundle BUNDLE] [--rows N] [--bench]\n"
			 "       [--mib N] [--vectors N,...] [--threads N] [--processor-time] [--unchecked]\n"
			 "       [--json]",
		.summary = "Verifies and measures the kernels of every instruction set, or of a GPU.",
		.options = options,
	};
	const char *wrong;

	for (unsigned set = 0; set < XFP_SET_CUDA; set++)
		snprintf(sets + strlen(sets), sizeof sets - strlen(sets), "%s %s", set ? "," : "",
			 xfp_kernel_set_name(set));
	argv[0] = (char *)program; /* the name in messages */
	if (!xfp_command_line_read(&line, argc, argv, status))
		return false;
	if (!request->mib)
		request->mib = request->device_name ? 64 : 256;
	if (line.argument_count)
		*status = xfp_command_line_refuse(&line, "unexpected argument '%s'", line.arguments[0]);
	else if ((wrong = option_error(request)))
		*status = xfp_command_line_refuse(&line, "%s", wrong);
	return !*status;
}

static enum xfp_status open_device(struct xfp_kernel_request *request, struct xfp_device *device, struct xfp_error *err)
{
	enum xfp_status status;
	int number;

	xfp_device_parse(request->device_name, &number);
	if (!(status = xfp_device_open(device, number, err)))
		request->device = device;
	return status;
}

static int run(int argc, char **argv)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct xfp_kernel_request request = { .seed = (uint64_t)time(NULL),
					      .trials = UINT32_MAX,
					      .threads = processors > 0 ? (unsigned)processors : 1 };
	struct xfp_error err = { .status = XFP_OK };
	struct xfp_device device;
	struct xfp_kernel_ops *ops;
	int status;

	if (!read_line(argc, argv, &request, &status))
		return status;
	request.masked |= request.device_name ? XFP_PROCESSOR_SETS : 1u << XFP_SET_CUDA;
	if (request.device_name && !request.list && (status = (int)open_device(&request, &device, &err))) {
		xfp_screen_printf(stderr, "%s: --device %s: %s\n", program, request.device_name, err.text);
		return status;
	}
	request.sets = (xfp_kernel_sets_here() | (request.device ? 1u << XFP_SET_CUDA : 0)) & ~request.masked;
	ops = all_ops();
	if (request.list)
		list(ops, &request);
	else if (request.golden)
		xfp_kernel_golden(ops, &request);
	else if ((status = (int)verify(ops, &request, &err))) {
		xfp_output_flush(); /* the verdict comes last, even if both streams are the same file */
		fprintf(stderr, "%s: %s\n", program, err.text);
	}
	if (request.device)
		xfp_device_close(request.device);
	free(ops);
	return status;
}

int main(int argc, char **argv)
{
	xfp_standard_files();
	return xfp_output_finish("xfp-kernel-verify", run(argc, argv));
}
