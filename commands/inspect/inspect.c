/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.c - `xfp inspect` and xfp-inspect: the contents of a checkpoint, and what a conversion does with each tensor.
 *
 * input    the headers of the checkpoint, config.json and one rule file; weights only with --stats
 * output   a summary, lists, JSON or CSV; with --work ledger.h5 and units.mk
 * status   3 when a conversion would refuse it; the parts that can be read are still printed
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/command_line.h"
#include "base/text/text.h"
#include "commands/inspect/measure.h"
#include "commands/inspect/report.h"
#include "commands/inspect/synthesized.h"
#include "commands/ui/commands.h"
#include "stages/settings/settings.h"
#include "stages/work/work.h"

#define UNITS_A_LINE 8
#define LARGEST_UNITS_FILE ((size_t)1 << 30)

struct inspect_request {
	const char *program, *work;
	struct xfp_inspection_request inspection;
	struct xfp_list_request list;
	struct xfp_settings policy;
	bool header, tensors, stats, json, csv, verbose;
};

/* ---- the command line -------------------------------------------------------------------------- */

/* Check options that exclude each other. Returns NULL if there is no conflict. */
static const char *contradiction(const struct inspect_request *request)
{
	bool lists = request->tensors || request->stats || request->list.pattern_count;

	if (request->json && request->csv)
		return "--json or --csv, not both";
	if (request->csv && request->header && lists)
		return "--csv is one table: --header, or --tensors and --stats";
	if (request->work && (lists || request->header || request->csv))
		return "--work is for conversions, and lists nothing";
	if (request->list.order >= XFP_LIST_BY_SIGMA && !request->stats)
		return "--sort by this key needs --stats";
	for (uint32_t i = 0; i < request->list.pattern_count; i++)
		if (!*request->list.patterns[i])
			return "TENSOR is empty";
	return NULL;
}

/* Returns true to continue. Otherwise the caller exits with *status. */
static bool read_line(int argc, char **argv, struct inspect_request *request, int *status)
{
	const struct xfp_option table[] = {
		{ .name = "header", .text = "list files and their metadata", .set = &request->header },
		{ .name = "tensors",
		  .text = "list tensors: dtype, shape, bits per weight, class, fate",
		  .set = &request->tensors },
		{ .name = "stats",
		  .text = "print statistics of weights, by tensor and by role: range,\n"
			  "sigma, kurtosis, shares beyond 3 and 4 sigma, largest in\n"
			  "sigma; reads all weights",
		  .set = &request->stats },
		{ .name = "sort",
		  .value = "KEY",
		  .text = "sort by name (the default), file, size, bits; statistics by sigma,\n"
			  "kurtosis, beyond3, beyond4, largest",
		  .choices = xfp_list_orders,
		  .choice = &request->list.order },
		{ .name = "reverse", .text = "reverse the order", .set = &request->list.reverse },
		{ .name = "json", .text = "print one JSON object with every tensor and unit", .set = &request->json },
		{ .name = "csv", .text = "print lists as CSV; default: --tensors", .set = &request->csv },
		{ .name = "verbose",
		  .letter = 'v',
		  .text = "also print tensors by name, matches of each rule,\n"
			  "and every unit; list experts one by one",
		  .set = &request->verbose },
		{ .name = "family",
		  .value = "NAME",
		  .complete = "FAMILY",
		  .text = "use this family's rules, regardless of config.json;\n"
			  "with a slash or ending in .family, a rule file",
		  .into = &request->inspection.family },
		{ .name = "families",
		  .value = "DIR",
		  .text = "use only this folder of rule files",
		  .into = &request->inspection.families },
		xfp_setting_option(XFP_SETTING_LM_HEAD, "POLICY",
				   "quantize the output head (quant, the default),\n"
				   "store it as 8-bit floats (fp8) or keep it (keep)",
				   &request->policy),
		xfp_setting_option(XFP_SETTING_FORMAT, "C=FORMAT",
				   "keep a class (keep) or store it as 8-bit floats (fp8)", &request->policy),
		xfp_setting_option(XFP_SETTING_OVERRIDE, "P=FORM",
				   "the same for units by name, role:ROLE or class:CLASS", &request->policy),
		{ .name = "keep-embeddings",
		  .text = "keep word embeddings, as in bundles made before they were\n"
			  "units",
		  .set = &request->policy.parameters.keep_embeddings },
		{ .name = "work",
		  .value = "DIR",
		  .text = "write ledger.h5 and units.mk to this folder",
		  .into = &request->work },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp inspect [--header] [--tensors] [--stats] [--sort KEY] [--reverse]\n"
			 "                   [--json | --csv] [-v] [--family NAME|FILE] [--families DIR]\n"
			 "                   [--lm-head quant|fp8|keep] [--format CLASS=FORMAT]\n"
			 "                   [--override PATTERN=FORMAT] [--keep-embeddings] [--work DIR]\n"
			 "                   MODEL [TENSOR ...]\n"
			 "   or: xfp-inspect [OPTION ...] MODEL [TENSOR ...]",
		.operand = "MODEL",
		.summary =
			"Lists the contents of the checkpoint MODEL, a folder or a file, and the fate of each tensor,\n"
			"from its headers alone. TENSOR is a name or a glob, role:ROLE or class:CLASS, and limits\n"
			"the lists.",
		.options = table,
	};
	const char *wrong;

	if (!xfp_command_line_read(&line, argc, argv, status))
		return false;
	if (line.argument_count) {
		request->inspection.model = line.arguments[0];
		request->list.patterns = line.arguments + 1;
		request->list.pattern_count = (uint32_t)line.argument_count - 1;
	}
	wrong = request->inspection.model ? contradiction(request) : "MODEL is missing";
	if (wrong)
		*status = xfp_command_line_refuse(&line, "%s", wrong);
	if (!request->header && !request->stats)
		request->tensors |= request->csv || request->list.pattern_count;
	return !wrong;
}

/* ---- for a conversion -------------------------------------------------------------------------- */

/* Write units.mk unless it is unchanged, so that a makefile which includes it is not read again. */
static enum xfp_status write_units(const char *path, uint32_t count, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);
	size_t old_size = 0;
	char *old = NULL;

	if (!out)
		return xfp_no_memory(err);
	fputs("# The units of ledger.h5, written by xfp-inspect.\nUNITS :=\n", out);
	for (uint32_t i = 0; i < count; i++) {
		char name[16];

		xfp_unit_format(i, name);
		fprintf(out, "%s %s%s", i % UNITS_A_LINE ? "" : "UNITS +=", name,
			(i + 1) % UNITS_A_LINE && i + 1 < count ? "" : "\n");
	}
	if (!xfp_text_end(&text))
		status = xfp_no_memory(err);
	else if (xfp_slurp(path, LARGEST_UNITS_FILE, &old, &old_size, NULL) || old_size != text.size ||
		 memcmp(old, text.bytes, text.size))
		status = xfp_write_file(path, text.bytes, text.size, false, err);
	free(text.bytes);
	free(old);
	return status;
}

static enum xfp_status write_work(const char *work, const struct xfp_inspection *inspection, struct xfp_error *err)
{
	char *ledger_path = xfp_path(work, XFP_LEDGER_FILE), *units_path = xfp_path(work, XFP_UNITS_FILE);
	enum xfp_status status;

	if (!ledger_path || !units_path)
		status = xfp_no_memory(err);
	else if (!(status = xfp_mkdirs(work, err)) &&
		 !(status = xfp_inspection_write_synthesized(work, inspection->checkpoint, inspection->ledger, err)) &&
		 !(status = xfp_ledger_write(ledger_path, inspection->ledger, err)))
		status = write_units(units_path, inspection->ledger->unit_count, err);
	free(ledger_path);
	free(units_path);
	return status;
}

/* ---- for users --------------------------------------------------------------------------------- */

static enum xfp_status measure(const struct xfp_list *list, struct xfp_distribution *moments, struct xfp_error *err)
{
	const struct xfp_inspection *inspection = list->inspection;
	uint32_t *order = malloc((list->count + (size_t)1) * sizeof *order), count = 0;
	struct xfp_signals signals = { 0 };
	enum xfp_status status;

	if (!order)
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < list->count; i++)
		if (!inspection->checkpoint->tensors[list->chosen[i]].unread &&
		    xfp_distribution_passes(inspection->checkpoint->tensors[list->chosen[i]].dtype))
			order[count++] = list->chosen[i];
	xfp_signals_block(&signals);
	status = xfp_measure(inspection->checkpoint, order, count, &signals, moments, err);
	/* No file is open or half written, so a signal may end the process here. */
	xfp_signals_release(&signals);
	free(order);
	/* If files changed during the run, the figures would mix two models. */
	return status || !inspection->ledger ? status : xfp_ledger_check_files(inspection->ledger, err);
}

static enum xfp_status print_csv(const struct inspect_request *request, const struct xfp_list *list,
				 const struct xfp_header *header, struct xfp_error *err)
{
	uint32_t count = 0, role_count = 0;
	struct xfp_listed *lines;
	struct xfp_listed_role *roles;
	enum xfp_status status;

	if (header)
		return xfp_inspection_csv_header(list->inspection, header, err);
	lines = xfp_list_lines(list, &request->list, true, &count);
	roles = list->moments ? xfp_list_roles(list, &role_count) : NULL;
	if (lines && (roles || !list->moments))
		status = xfp_inspection_csv(list, lines, count, roles, role_count, err);
	else
		status = xfp_no_memory(err);
	free(roles);
	free(lines);
	return status;
}

static enum xfp_status print_json(const struct inspect_request *request, const struct xfp_list *list,
				  const struct xfp_header *header, struct xfp_error *err)
{
	uint32_t count = 0;
	struct xfp_listed *lines = xfp_list_lines(list, &request->list, true, &count);
	enum xfp_status status = lines ? xfp_inspection_json(list, lines, count, header, err) : xfp_no_memory(err);

	free(lines);
	return status;
}

static enum xfp_status print_text(const struct inspect_request *request, const struct xfp_list *list,
				  const struct xfp_header *header, struct xfp_error *err)
{
	const struct xfp_inspection *inspection = list->inspection;
	uint32_t count = 0, role_count = 0;
	struct xfp_listed *lines;
	struct xfp_listed_role *roles;
	enum xfp_status status = XFP_OK;

	if (!header && !request->tensors && !request->stats)
		return xfp_inspection_print(inspection, request->verbose, err);
	xfp_inspection_title(inspection);
	if (header)
		xfp_inspection_print_header(inspection, header);
	lines = xfp_list_lines(list, &request->list, request->verbose, &count);
	roles = list->moments ? xfp_list_roles(list, &role_count) : NULL;
	if (!lines || (!roles && list->moments))
		status = xfp_no_memory(err);
	else if (request->tensors)
		status = xfp_inspection_print_tensors(list, lines, count, err);
	if (!status && roles && !(status = xfp_inspection_print_moments(inspection, lines, count, err)))
		status = xfp_inspection_print_roles(roles, role_count, err);
	free(roles);
	free(lines);
	return status;
}

static enum xfp_status show(const struct inspect_request *request, const struct xfp_inspection *inspection,
			    struct xfp_error *err)
{
	bool lists = request->header || request->tensors || request->stats;
	enum xfp_inspection_detail detail = lists && !request->json ? XFP_DETAIL_WARNINGS
					    : request->verbose      ? XFP_DETAIL_ALL
								    : XFP_DETAIL_NEWS;
	struct xfp_distribution *moments = NULL;
	struct xfp_header header = { 0 };
	struct xfp_list list = { 0 };
	enum xfp_status status;

	if ((status = xfp_list_choose(inspection, &request->list, &list, err)) ||
	    (status = xfp_inspection_notes(request->program, inspection, detail, err)))
		goto done;
	if (request->header && (status = xfp_header_read(inspection->checkpoint, &header, err)))
		goto done;
	if (request->stats) {
		if (!(moments = calloc(inspection->checkpoint->tensor_count + (size_t)1, sizeof *moments))) {
			status = xfp_no_memory(err);
			goto done;
		}
		if ((status = measure(&list, moments, err)))
			goto done;
		list.moments = moments;
	}
	status = (request->json  ? print_json
		  : request->csv ? print_csv
				 : print_text)(request, &list, request->header ? &header : NULL, err);
done:
	xfp_list_free(&list);
	xfp_header_free(&header);
	free(moments);
	return status;
}

static enum xfp_status inspect(const struct inspect_request *request, struct xfp_error *err)
{
	struct xfp_inspection inspection;
	enum xfp_status status = xfp_inspection_open(&request->inspection, &inspection, err);

	/* A conversion needs the reason and nothing else. */
	if (!status && request->work && !inspection.refused.status)
		status = write_work(request->work, &inspection, err);
	err->status = status;
	if (!status && (!request->work || !inspection.refused.status))
		status = show(request, &inspection, err);
	if (!status && inspection.refused.status) {
		*err = inspection.refused;
		status = inspection.refused.status;
	}
	xfp_inspection_free(&inspection);
	return status;
}

int xfp_main_inspect(int argc, char **argv)
{
	struct inspect_request request = { .program = argv[0], .policy = { .parameters = xfp_parameters_default() } };
	struct xfp_error err = { .status = XFP_OK };
	int status;

	request.inspection.policy = &request.policy.parameters;
	if (read_line(argc, argv, &request, &status) && (status = (int)inspect(&request, &err)) && *err.text)
		xfp_inspection_message(request.program, "", err.text);
	xfp_parameters_free(&request.policy.parameters);
	return status;
}
