/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfp-inspect: from a checkpoint's headers and a family's rules to the ledger and the list of units.
 *
 * Reads the headers of the checkpoint, config.json and one rule file; writes ledger.h5 and units.mk in
 * the work folder, or nothing without one. Exit status: see xfp_error.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/command_line.h"
#include "base/system/output.h"
#include "base/system/standard_files.h"
#include "base/text/text.h"
#include "checkpoints/hub.h"
#include "stages/inspect/classify.h"
#include "stages/inspect/family_choose.h"
#include "stages/inspect/refuse.h"
#include "stages/inspect/report.h"
#include "stages/settings/settings.h"
#include "stages/work/work.h"

#define UNITS_A_LINE 8
#define LARGEST_UNITS_FILE ((size_t)1 << 30)

struct options {
	const char *model, *work;
	const char *family;   /* a name or a file, NULL: by config.json */
	const char *families; /* folder, NULL: the default */
	struct xfp_settings policy;
	bool json, verbose;
};

static enum xfp_status take_setting(const struct xfp_option *option, const char *where, const char *value,
				    struct xfp_error *err)
{
	return xfp_setting_set(option->context, xfp_setting_find(option->name), where, value, err);
}

/* True to go on; otherwise *status is what to end with. */
static bool read_line(int argc, char **argv, struct options *options, int *status)
{
	const struct xfp_option table[] = {
		{ .name = "work",
		  .value = "DIR",
		  .text = "write ledger.h5 and units.mk there",
		  .into = &options->work },
		{ .name = "family",
		  .value = "NAME",
		  .text = "use this family's rules, whatever config.json says;\n"
			  "with a slash or ending in .family, a rule file",
		  .into = &options->family },
		{ .name = "families",
		  .value = "DIR",
		  .text = "folder of rule files, the only one looked into",
		  .into = &options->families },
		{ .name = "lm-head",
		  .value = "POLICY",
		  .text = "the output head is quantized (quant, the default),\n"
			  "becomes 8-bit floats (fp8) or is kept (keep)",
		  .take = take_setting,
		  .context = &options->policy },
		{ .name = "format",
		  .value = "C=FORMAT",
		  .text = "a class is kept (keep) or becomes 8-bit floats (fp8)",
		  .take = take_setting,
		  .context = &options->policy },
		{ .name = "override",
		  .value = "P=FORM",
		  .text = "likewise, units by name, role:ROLE or class:CLASS",
		  .take = take_setting,
		  .context = &options->policy },
		{ .name = "keep-embeddings",
		  .text = "word embeddings are kept like others that rules keep, as\n"
			  "bundles had them before they were units",
		  .set = &options->policy.parameters.keep_embeddings },
		{ .name = "json", .text = "print one JSON object with every tensor and unit", .set = &options->json },
		{ .name = "verbose",
		  .letter = 'v',
		  .text = "print also the tensors by name, what each rule took,\n"
			  "and every unit",
		  .set = &options->verbose },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp-inspect [--work DIR] [--family NAME|FILE] [--families DIR]\n"
			 "                   [--lm-head quant|fp8|keep] [--format CLASS=FORMAT]\n"
			 "                   [--override PATTERN=FORMAT] [--keep-embeddings] [--json] [-v]\n"
			 "                   MODEL",
		.summary = "Say what becomes of each tensor of the checkpoint MODEL, a folder or a file,\n"
			   "from its headers alone; with --work, write the ledger and the list of units.",
		.options = table,
	};
	struct xfp_error err = { .status = XFP_OK };

	if ((*status = (int)xfp_command_line_parse(&line, argc, argv, &err)))
		xfp_inspection_say("", err.text);
	else if (line.told)
		return false;
	else if (line.argument_count != 1) {
		xfp_inspection_say("", line.argument_count ? "more than one MODEL" : "MODEL is missing");
		*status = XFP_USAGE;
	}
	if (*status == XFP_USAGE)
		xfp_command_line_refuse(&line, NULL);
	if (*status)
		return false;
	options->model = line.arguments[0];
	return true;
}

/* Stages run in the work folder, so the ledger's paths must not depend on the current one. Links
 * stay: beside the file that a link names, its config.json is not. */
static char *absolute(const char *path)
{
	char *here, *result;

	if (*path == '/')
		return strdup(path);
	if (!(here = getcwd(NULL, 0)))
		return NULL;
	while (!strncmp(path, "./", 2))
		path += 1 + strspn(path + 1, "/");
	result = !*path || !strcmp(path, ".") ? strdup(here) : xfp_path(here, path);
	free(here);
	return result;
}

/* What was guessed about a model that no family claims. */
static enum xfp_status note_guess(const struct xfp_model_config *config, const struct xfp_family *family,
				  struct xfp_findings *findings, struct xfp_error *err)
{
	const char *type = xfp_model_config_type(config, 0);

	if (!xfp_model_config_present(config))
		return xfp_notes_add(&findings->notes, true, err,
				     "there is no config.json; the names were read by the "
				     "rules of family %s: check the classes",
				     family->name);
	return xfp_notes_add(&findings->notes, true, err,
			     "no family claims model_type %s; the names were read by the "
			     "rules of family %s: check the classes",
			     type ? type : "(missing)", family->name);
}

/* units.mk, left untouched when it is the same already: a makefile that includes it is then not read again. */
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

static enum xfp_status write_work(const char *work, const struct xfp_ledger *ledger, struct xfp_error *err)
{
	char *ledger_path = xfp_path(work, XFP_LEDGER_FILE), *units_path = xfp_path(work, XFP_UNITS_FILE);
	enum xfp_status status;

	if (!ledger_path || !units_path)
		status = xfp_no_memory(err);
	else if (!(status = xfp_mkdirs(work, err)) && !(status = xfp_ledger_write(ledger_path, ledger, err)))
		status = write_units(units_path, ledger->unit_count, err);
	free(ledger_path);
	free(units_path);
	return status;
}

static enum xfp_status inspect(const struct options *options, struct xfp_error *err)
{
	struct xfp_checkpoint *checkpoint = NULL;
	struct xfp_model_config *config = NULL;
	struct xfp_family_wish wish = { .family = options->family, .folder = options->families };
	struct xfp_family_choice choice = { 0 };
	struct xfp_ledger *ledger = NULL;
	struct xfp_findings findings = { 0 };
	char *found = NULL, *model = NULL, *where = NULL;
	enum xfp_status status = xfp_model_find(options->model, &found, err);

	if (status)
		goto done;
	if (!(model = absolute(found))) {
		status = xfp_fail_errno(err, errno, "%s: cannot tell the full path", options->model);
		goto done;
	}
	if ((status = xfp_checkpoint_open(model, &checkpoint, err)))
		goto done;
	if (!(where = xfp_path(checkpoint->folder, "config.json"))) {
		status = xfp_no_memory(err);
		goto done;
	}
	if ((status = xfp_model_config_parse(checkpoint->config, where, &config, err)) ||
	    (status = xfp_refuse_quantized(checkpoint, config, err)) ||
	    (status = xfp_family_find(&wish, config, &choice, err)) ||
	    (status = xfp_classify(checkpoint, config, choice.family, &options->policy.parameters, &ledger, &findings,
				   err)))
		goto done;
	if (!choice.why && (status = note_guess(config, choice.family, &findings, err)))
		goto done;
	if (options->work && (status = write_work(options->work, ledger, err)))
		goto done;

	struct xfp_inspection inspection = { checkpoint, &choice, ledger, &findings };

	if ((status = xfp_inspection_notes(&inspection, options->verbose, err)))
		goto done;
	status = options->json ? xfp_inspection_json(&inspection, err)
			       : xfp_inspection_print(&inspection, options->verbose, err);
done:
	xfp_findings_free(&findings);
	xfp_ledger_free(ledger);
	xfp_family_choice_free(&choice);
	xfp_model_config_free(config);
	xfp_checkpoint_close(checkpoint);
	free(found);
	free(model);
	free(where);
	return status;
}

int main(int argc, char **argv)
{
	struct options options = { .policy = { .parameters = xfp_parameters_default() } };
	static char program[] = "xfp-inspect";
	struct xfp_error err = { 0 };
	int status;

	xfp_standard_files();
	if (argc > 0)
		argv[0] = program; /* as messages begin */
	if (read_line(argc, argv, &options, &status) && (status = (int)inspect(&options, &err)))
		xfp_inspection_say("", err.text);
	xfp_parameters_free(&options.policy.parameters);
	return xfp_output_finish(program, status);
}
