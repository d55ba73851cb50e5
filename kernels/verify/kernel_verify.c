/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_verify.c - xfp-kernel-verify: every kernel against plain C or the reference in double, and its speed.
 *
 * input    none; with --bundle, a bundle
 * output   a line a group, and the sum of all
 * exit     4 where a kernel is wrong
 *
 * It links the kernels and libxfp, and no other library.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/system/mapped.h"
#include "base/system/next_option.h"
#include "base/system/output.h"
#include "base/system/standard_files.h"
#include "kernels/verify/kernel_verify.h"

static const char program[] = "xfp-kernel-verify";

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: %s [--seed N] [--cpu-mask SET,...] [--filter GLOB] [--list] [--golden]\n"
		"       [--bundle BUNDLE] [--rows N] [--bench] [--mib N] [--threads N]\n"
		"       [--processor-time] [--json]\n",
		program);
}

static void help(void)
{
	usage(stdout);
	printf("\nProves the kernels of every instruction set right, and measures them.\n\n"
	       "  --seed N           of the random inputs [of the clock; printed]\n"
	       "  --cpu-mask SET,... the instruction sets that may be used, of:");
	for (unsigned set = 0; set < XFP_KERNEL_SETS; set++)
		printf("%s %s", set ? "," : "", xfp_kernel_set_name(set));
	printf("\n"
	       "  --filter GLOB      only ops such as 'matvec v2c *', or groups such as '* avx2'\n"
	       "  --list             name the ops and their sets, run nothing\n"
	       "  --golden           SHA-256 of what exact ops give, by op and set\n"
	       "  --bundle BUNDLE    multiply by every unit of BUNDLE instead, with every set\n"
	       "  --rows N           so many rows of each matrix of BUNDLE [all]\n"
	       "  --bench            measure those that are right\n"
	       "  --mib N            matrices of the bench [256]\n"
	       "  --threads N        of the bench of products, and of --bundle [one a processor]\n"
	       "  --processor-time   in the bench of products: of the threads, not the clock\n"
	       "  --json             one object instead of lines\n"
	       "  -h, --help         this text\n"
	       "  --version          the version\n");
}

static bool parse_number(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *value <= most;
}

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
	xfp_kernel_ops_matvec(ops);
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
	printf(request->json ? "],\n  \"groups\": [" : "\n");
	xfp_output_flush(); /* whoever waits sees that it began */
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
	if (report->strange && !request->json)
		printf("not run: no kernel takes f64: %u matrices\n", report->strange);
	if (request->json)
		printf("},\n  \"total\": {\"groups\": %u, \"trials\": %u, \"failed_groups\": %u, \"failed\": %u}",
		       report->groups, report->trials, report->failed_groups, report->failed);
	else if (report->failed)
		printf("total: %u of %u groups are wrong, in %u of %u trials\n", report->failed_groups, report->groups,
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
	} else {
		xfp_kernel_verify_ops(ops, &report);
	}
	total(&report);
	if (request->bench && !status && !report.failed) {
		report.any = false;
		xfp_kernel_bench(ops, &report);
	}
	if (request->json)
		printf("\n}\n");
	if (!status && !report.groups && !not_run(&report))
		status = xfp_fail(err, XFP_USAGE,
				  request->bundle
					  ? "no kernel of a name like 'bundle v2c k=3', and of an instruction set "
					    "that is here, is meant and has a matrix"
					  : "no kernel is of that name and of an instruction set that is here; "
					    "--list names them");
	if (!status && report.failed)
		status = xfp_fail(err, XFP_UNMET, "%u groups of kernels are wrong", report.failed_groups);
	return status;
}

enum { SEED = 256, MASK, FILTER, LIST, GOLDEN, BUNDLE, ROWS, BENCH, MIB, THREADS, PROCESSOR_TIME, JSON, HELP, VERSION };

static bool take(int option, struct xfp_kernel_request *request)
{
	uint64_t number;

	switch (option) {
	case SEED:
		return parse_number(optarg, UINT64_MAX, &request->seed);
	case MASK:
		if (!xfp_kernel_sets_parse(optarg, &request->masked))
			return false;
		request->masked = ~request->masked;
		return true;
	case FILTER:
		request->filter = optarg;
		return true;
	case BUNDLE:
		request->bundle = optarg;
		return true;
	case ROWS:
		return parse_number(optarg, UINT64_MAX, &request->bundle_rows);
	case MIB:
		if (!parse_number(optarg, 1 << 20, &number) || !number)
			return false;
		request->mib = number;
		return true;
	case THREADS:
		if (!parse_number(optarg, 1024, &number) || !number)
			return false;
		request->threads = (unsigned)number;
		return true;
	case LIST:
		return request->list = true;
	case GOLDEN:
		return request->golden = true;
	case BENCH:
		return request->bench = true;
	case PROCESSOR_TIME:
		return request->processor_time = true;
	default:
		return request->json = true;
	}
}

/* Options that would decide nothing are a misunderstanding. */
static bool sensible(const struct xfp_kernel_request *request)
{
	const char *wrong = NULL;

	if (request->list + request->golden + request->bench + (request->bundle != NULL) > 1)
		wrong = "--list, --golden, --bench and --bundle are one at a time";
	else if (request->json && (request->list || request->golden))
		wrong = "--list and --golden print no JSON";
	else if (request->bundle_rows && !request->bundle)
		wrong = "--rows goes with --bundle";
	else if (request->processor_time && !request->bench)
		wrong = "--processor-time goes with --bench";
	if (wrong)
		fprintf(stderr, "%s: %s\n", program, wrong);
	return !wrong;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, SEED },
		{ "cpu-mask", required_argument, NULL, MASK },
		{ "filter", required_argument, NULL, FILTER },
		{ "list", no_argument, NULL, LIST },
		{ "golden", no_argument, NULL, GOLDEN },
		{ "bundle", required_argument, NULL, BUNDLE },
		{ "rows", required_argument, NULL, ROWS },
		{ "bench", no_argument, NULL, BENCH },
		{ "mib", required_argument, NULL, MIB },
		{ "threads", required_argument, NULL, THREADS },
		{ "json", no_argument, NULL, JSON },
		{ "help", no_argument, NULL, HELP },
		{ "processor-time", no_argument, NULL, PROCESSOR_TIME },
		{ "version", no_argument, NULL, VERSION },
		{ 0 },
	};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct xfp_kernel_request request = { .seed = (uint64_t)time(NULL),
					      .mib = 256,
					      .threads = processors > 0 ? (unsigned)processors : 1 };
	struct xfp_error err = { .status = XFP_OK };
	struct xfp_kernel_ops *ops;
	enum xfp_status status = XFP_OK;
	int option;

	argv[0] = (char *)program; /* as messages begin */
	while ((option = xfp_next_option_said(argc, argv, "", options)) >= 0) {
		if (option == HELP) {
			help();
			return XFP_OK;
		}
		if (option == VERSION) {
			printf("%s (xfp) %s\n", program, PACKAGE_VERSION);
			return XFP_OK;
		}
		if (option == '?') {
			usage(stderr);
			return XFP_USAGE;
		}
		if (!take(option, &request)) {
			fprintf(stderr, "%s: '%s' is nothing that the option takes; see --help\n", program, optarg);
			return XFP_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "%s: '%s' belongs to no option\n", program, argv[optind]);
		usage(stderr);
		return XFP_USAGE;
	}
	if (!sensible(&request)) {
		usage(stderr);
		return XFP_USAGE;
	}
	request.sets = xfp_kernel_sets_here() & ~request.masked;
	ops = all_ops();
	if (request.list)
		list(ops, &request);
	else if (request.golden)
		xfp_kernel_golden(ops, &request);
	else if ((status = verify(ops, &request, &err))) {
		xfp_output_flush(); /* the verdict comes last, wherever both streams go */
		fprintf(stderr, "%s: %s\n", program, err.text);
	}
	free(ops);
	return status;
}

int main(int argc, char **argv)
{
	xfp_standard_files();
	return xfp_output_finish("xfp-kernel-verify", run(argc, argv));
}
