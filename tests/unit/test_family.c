/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rule files: the syntax, the names that a pattern matches, the family of a model.
 */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/file.h"
#include "stages/inspect/family_choose.h"

static struct xfp_family *parse(const char *text)
{
	struct xfp_family *family;
	struct xfp_error err = { 0 };

	if (xfp_family_parse(text, "some/where/test.family", false, &family, &err))
		fail_msg("%s", err.text);
	return family;
}

static const struct xfp_rule *rule_of(const struct xfp_family *f, const char *name, uint64_t layers,
				      struct xfp_rule_match *match)
{
	const struct xfp_rule *rule;
	struct xfp_error err = { 0 };

	if (xfp_family_match(f, name, layers, &rule, match, &err))
		fail_msg("%s: %s", name, err.text);
	return rule;
}

static struct xfp_model_config *config(const char *text)
{
	struct xfp_model_config *c;
	struct xfp_error err = { 0 };

	if (xfp_model_config_parse(text, "config.json", &c, &err))
		fail_msg("%s", err.text);
	return c;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static void test_reads_a_family(void **state)
{
	struct xfp_family *f =
		parse("# a comment\n"
		      "about  Something to test\n"
		      "model_type a b\n"
		      "model_type c\r\n"
		      "architecture AForCausalLM\n"
		      "tied yes\n"
		      "\n"
		      "define L ^layers\\.<layer>\\.\n"
		      "define X <L>experts\\.\n"
		      "  quantize attention q N,K <L>q$\n"
		      "optional quantize routed_expert gate~up E,K=hidden_size,N|E,N,K=2*hidden_size <X>gu$\n"
		      "quantize attention q:a*b,k:7 N,K qk$\n"
		      "keep norm norm with blanks$  \n"
		      "drop other inv_freq$");
	(void)state;

	assert_string_equal(f->name, "test");
	assert_string_equal(f->about, "Something to test");
	assert_int_equal(f->model_type_count, 3);
	assert_string_equal(f->model_types[2], "c");
	assert_string_equal(f->architectures[0], "AForCausalLM");
	assert_true(f->tied);
	assert_int_equal(f->rule_count, 5);
	assert_string_equal(f->rules[0].pattern, "^layers\\.<layer>\\.q$");
	assert_int_equal(f->rules[0].line, 10);
	assert_false(f->rules[0].optional);
	assert_true(f->rules[1].optional);
	assert_true(f->rules[1].interleaved);
	assert_int_equal(f->rules[1].part_count, 2);
	assert_int_equal(f->rules[1].layout_count, 2);
	assert_memory_equal(f->rules[1].layouts[0].dim, "EKN", 3);
	assert_string_equal(f->rules[1].layouts[1].equals[2], "2*hidden_size");
	assert_string_equal(f->rules[1].pattern, "^layers\\.<layer>\\.experts\\.gu$");
	assert_string_equal(f->rules[2].parts[0].rows, "a*b");
	assert_string_equal(f->rules[3].pattern, "norm with blanks$");
	assert_int_equal(f->rules[3].action, XFP_RULE_KEEP);
	assert_int_equal(f->rules[4].action, XFP_RULE_DROP);
	xfp_family_free(f);
}

static void test_errors_name_file_and_line(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{ "quantise attention q N,K x", "unknown statement \"quantise\"" },
		{ "quantize attentoin q N,K x", "no class 'attentoin'; did you mean attention? Classes are " },
		{ "quantize attention q", "invalid rule" },
		{ "quantize attention q N,K", "the pattern is missing" },
		{ "quantize attention q, N,K x", "invalid role" },
		{ "quantize attention q,q N,K x", "occurs twice" },
		{ "quantize attention q:h,k N,K x", "give a number of rows for every role" },
		{ "quantize attention q:h~k:h N,K x", "give a number of rows for every role" },
		{ "quantize attention q:h+1,k:h N,K x", "not a product" },
		{ "quantize attention q N,M x", "invalid or repeated dimension" },
		{ "quantize attention q N,N x", "invalid or repeated dimension" },
		{ "quantize attention q E,N x", "needs N and K" },
		{ "quantize attention q E,N,K,K x", "two or three" },
		{ "quantize attention q N,K= x", "not a product" },
		{ "quantize attention q N,K|E,N,K x", "differ in rank" },
		{ "quantize attention q E,N,K a<expert>b", "not by both" },
		{ "keep norm <layer>.<layer>", "occurs twice" },
		{ "keep norm <lair>", "unknown mark" },
		{ "keep norm a(b", "a(b" },
		{ "keep norm a[b", "[ without ]" },
		{ "keep norm a\\d", "[0-9]" },
		{ "keep norm", "the pattern is missing" },
		{ "tied maybe", "yes or no" },
		{ "define A", "invalid definition" },
		{ "define layer x", "already defined" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_family *f;
		struct xfp_error err = { 0 };
		char text[256];

		snprintf(text, sizeof text, "about x\n\n%s\nkeep norm y\n", cases[i].line);
		assert_int_equal(xfp_family_parse(text, "dir/test.family", false, &f, &err), XFP_BAD_INPUT);
		assert_null(f);
		if (strncmp(err.text, "dir/test.family:3: ", 19) || !strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].line, err.text);
	}
}

static void test_alternatives_must_be_equally_many(void **state)
{
	struct xfp_family *f;
	struct xfp_error err = { 0 };
	(void)state;

	assert_int_equal(xfp_family_parse("quantize attention q N,K|K,N a\n"
					  "quantize attention k N,K|K,N|N,K=x b\n",
					  "t.family", false, &f, &err),
			 XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "t.family:2: "));
}

static void test_header_only_leaves_rules_alone(void **state)
{
	struct xfp_family *f;
	(void)state;

	assert_int_equal(xfp_family_parse("model_type a\nkeep nonsense ((\n", "t.family", true, &f, NULL), XFP_OK);
	assert_int_equal(f->rule_count, 0);
	assert_int_equal(f->model_type_count, 1);
	xfp_family_free(f);
}

/* ---- matching --------------------------------------------------------------------------------- */

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool takes;
		int64_t layer;
		int64_t expert; /* -1: none */
	} cases[] = {
		{ "^l\\.<layer>\\.q$", "l.12.q", true, 12, -1 },
		{ "^l\\.<layer>\\.q$", "l.x.q", false, -1, -1 },
		{ "^l\\.<layer>\\.q$", "al.12.q", false, -1, -1 },
		{ "^(a\\.)?(b|c)\\.<layer>\\.e\\.<expert>\\.w$", "a.c.3.e.40.w", true, 3, 40 },
		{ "^e\\.<expert>\\.l\\.<layer>$", "e.7.l.9", true, 9, 7 },
		{ "^(l\\.<layer>\\.)?norm$", "norm", true, -1, -1 },
		{ "^(l\\.<layer>\\.)?norm$", "l.4.norm", true, 4, -1 },
		{ "^x(\\.<expert>)?$", "x", false, -1, -1 }, /* a stack's expert needs its number */
		{ "abc?d", "abd", true, -1, -1 },
		{ "abc*d", "abccd", true, -1, -1 },
		{ "abc{0,1}d", "abd", true, -1, -1 },
		{ "abc+d", "abccd", true, -1, -1 },
		{ "abc+d", "abd", false, -1, -1 },
		{ "(abc|x)+d", "xd", true, -1, -1 },
		{ "abc|xyz", "xyz", true, -1, -1 },
		{ "a[]x]b", "a]b", true, -1, -1 },
		{ "a[^[:digit:]]b", "axb", true, -1, -1 },
		{ "a[[:digit:]]b", "axb", false, -1, -1 },
		{ "a[<]b", "a<b", true, -1, -1 },
		{ "a.b.c", "axbxc", true, -1, -1 },
		{ "aa.*aa$", "aaa", false, -1, -1 },
		{ "\\$\\(x\\)", "$(x)", true, -1, -1 },
		{ "^l<layer>e<expert>$", "l12e3", true, 12, 3 },
		{ "^e<expert>l<layer>$", "e12l3", true, 3, 12 },
		{ "^<layer><expert>$", "123", true, 12, 3 }, /* from here on, digits matched by more than a single
							      * mark */
		{ "^l<layer>+$", "l12", true, 12, -1 },
		{ "^l<layer>?\\.<expert>$", "l.4", true, -1, 4 },
		{ "^(l<layer>|x)\\.<expert>$", "x.4", true, -1, 4 },
		{ "^w1\\.<layer>$", "w1.2", true, 2, -1 },
		{ "^(w1|v)\\.<layer>$", "v.2", true, 2, -1 },
		{ "^.\\.<layer>$", "1.2", true, 2, -1 },
		{ "^[0-9]\\.<layer>$", "1.2", true, 2, -1 },
		{ "^[^x]\\.<layer>$", "1.2", true, 2, -1 },
		{ "^[[:alnum:]]\\.<layer>$", "1.2", true, 2, -1 },
		{ "^[+-9]\\.<layer>$", "1.2", true, 2, -1 },
		{ "<layer>\\.b$", "1.2.b", true, 2, -1 },
		{ "^b\\.<layer>", "b.1.2", true, 1, -1 },
		{ "^b\\.<layer>\\$", "b.1$2", true, 1, -1 },
		{ "^b\\.<layer>$|c$", "2.c", true, -1, -1 },
		{ "a\\.b$", "a.b", true, -1, -1 },
		{ "a\\.b$", "a.bb", false, -1, -1 },
		{ "a\\.b$", "b", false, -1, -1 },
		{ "abc?$", "ab", true, -1, -1 },
		{ "abc+$", "abcc", true, -1, -1 },
		{ "a(b$|c)", "ac", true, -1, -1 },
		{ "a(b|c)d$", "acd", true, -1, -1 },
		{ "ab$|cd$", "ab", true, -1, -1 },
		{ "a\\$", "a$", true, -1, -1 },
		{ "a\\$", "a$b", true, -1, -1 },
		{ "<layer>", "99999999999999999999", true, 999999999, -1 },
		/* numbers of up to nine digits are exact; longer ones are clamped to the largest */
		{ "<layer>", "99999999", true, 99999999, -1 },
		{ "<layer>", "100000000", true, 100000000, -1 },
		{ "<layer>", "123456789", true, 123456789, -1 },
		{ "<layer>", "999999998", true, 999999998, -1 },
		{ "<layer>", "1000000000", true, 999999999, -1 },
		{ "<layer>", "4294967296", true, 999999999, -1 },
		{ "<layer>", "42949672970", true, 999999999, -1 },
		{ "<layer>", "0000000012", true, 12, -1 },
		{ "l<layer>\\.e<expert>", "l1234567890.e123456789", true, 999999999, 123456789 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_rule_match match = { .layer = -1 };
		struct xfp_family *f;
		char text[256];
		bool takes;

		snprintf(text, sizeof text, "keep norm %s", cases[i].pattern);
		f = parse(text);
		takes = rule_of(f, cases[i].name, UINT64_MAX, &match) != NULL;
		if (takes != cases[i].takes)
			fail_msg("%s on %s: %d", cases[i].pattern, cases[i].name, takes);
		if (takes) {
			assert_int_equal(match.layer, cases[i].layer);
			assert_int_equal(match.expert_end > match.expert_at ? (int64_t)match.expert : -1,
					 cases[i].expert);
		}
		xfp_family_free(f);
	}
}

static void test_first_match_wins(void **state)
{
	struct xfp_family *f = parse("keep norm a\nkeep other a\n");
	struct xfp_rule_match match;
	(void)state;

	assert_ptr_equal(rule_of(f, "a", UINT64_MAX, &match), &f->rules[0]);
	assert_null(rule_of(f, "b", UINT64_MAX, &match));
	xfp_family_free(f);
}

static void test_extra_layers_go_by_number(void **state)
{
	struct xfp_family *f = parse("keep mtp ^l\\.<extra-layer>\\.\nkeep norm ^l\\.<layer>\\.\n");
	struct xfp_rule_match match;
	(void)state;

	assert_int_equal(rule_of(f, "l.47.x", 47, &match)->class_, XFP_CLASS_MTP);
	assert_int_equal(match.layer, 47);
	assert_int_equal(rule_of(f, "l.46.x", 47, &match)->class_, XFP_CLASS_NORM);
	assert_int_equal(rule_of(f, "l.47.x", UINT64_MAX, &match)->class_, XFP_CLASS_NORM);
	xfp_family_free(f);
}

/* Allocate all memory, to the last byte. */
static void take_all_memory(void)
{
	struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_AS, &none))
		_exit(99);
	for (size_t size = 1 << 20; size >= 24; size = size > 2048 ? size / 2 : size - 8)
		while (malloc(size)) /* cppcheck-suppress leakNoVarFunctionCall */
			;
}

/* Without memory, a matching rule must not report a mismatch: the result is an error. */
static void test_no_memory_is_no_answer(void **state)
{
	static const char *const patterns[] = { "^l\\.<layer>\\.x$", "(a|b)+[^c]*d$", "l.*x" };
	static const char *const names[] = { "l.17.x", "ababd", "l.1.2.x" };
	(void)state;

	if (getenv("XFP_TEST_SANITIZERS")) {
		print_message("AddressSanitizer has memory of its own\n");
		skip();
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char text[256];
		struct xfp_family *f;
		pid_t child;
		int ended;

		snprintf(text, sizeof text, "keep norm %s\n", patterns[i]);
		f = parse(text);
		if (!(child = fork())) {
			struct xfp_error err = { 0 };
			const struct xfp_rule *rule;
			struct xfp_rule_match match;
			enum xfp_status status;

			take_all_memory();
			status = xfp_family_match(f, names[i], UINT64_MAX, &rule, &match, &err);
			_exit(status == XFP_FAILED && err.text[0] ? 0 : !status && rule ? 1 : 2);
		}
		assert_int_equal(waitpid(child, &ended, 0), child);
		assert_true(WIFEXITED(ended));
		if (WEXITSTATUS(ended))
			fail_msg("%s: %s", names[i], WEXITSTATUS(ended) == 1 ? "memory was left" : "no match");
		xfp_family_free(f);
	}
}

/* ---- config.json ------------------------------------------------------------------------------ */

static void test_config(void **state)
{
	struct xfp_model_config *c =
		config("{\"model_type\": \"outer\", \"hidden_size\": 1, \"layers\": 5,"
		       " \"limit\": [0.0, Infinity, -Infinity],"
		       " \"eps\": NaN, \"architectures\": [\"A\", \"B\"], \"flag\": true,"
		       " \"text_config\": {\"model_type\": \"inner\", \"hidden_size\": 96,"
		       " \"num_attention_heads\": 4, \"layers\": null, \"s\": \"a \\\"NaN\\\"\"}}");
	uint64_t value;
	(void)state;

	assert_string_equal(xfp_model_config_type(c, 0), "outer");
	assert_string_equal(xfp_model_config_type(c, 1), "inner");
	assert_string_equal(xfp_model_config_architecture(c, 1), "B");
	assert_null(xfp_model_config_architecture(c, 2));
	assert_true(xfp_model_config_number(c, "hidden_size", &value));
	assert_int_equal(value, 96);
	assert_true(xfp_model_config_number(c, "layers", &value));
	assert_int_equal(value, 5);
	assert_true(xfp_model_config_product(c, "num_key_value_heads*head_dim*3", &value)); /* by their defaults */
	assert_int_equal(value, 4 * 24 * 3);
	assert_false(xfp_model_config_product(c, "head_dim*missing", &value));
	assert_true(xfp_model_config_bool(c, "flag", false));
	assert_true(xfp_model_config_bool(c, "missing", true));
	assert_true(xfp_model_config_assume(c, "missing", 5));
	assert_true(xfp_model_config_number(c, "missing", &value));
	assert_int_equal(value, 5);
	assert_null(xfp_model_config_quantized(c));
	assert_true(xfp_model_config_present(c));
	xfp_model_config_free(c);

	c = config("{\"text_config\": {\"quantization_config\": {\"quant_method\": \"awq\"}}}");
	assert_string_equal(xfp_model_config_quantized(c), "awq");
	xfp_model_config_free(c);
	c = config(NULL);
	assert_false(xfp_model_config_present(c));
	assert_null(xfp_model_config_type(c, 0));
	xfp_model_config_free(c);
}

static void test_bad_config(void **state)
{
	static const char *const bad[] = { "", "[1]", "{\"a\": }", "{\"a\": 1", "nonsense" };
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct xfp_model_config *c;
		struct xfp_error err = { 0 };

		assert_int_equal(xfp_model_config_parse(bad[i], "m/config.json", &c, &err), XFP_BAD_INPUT);
		assert_null(c);
		assert_non_null(strstr(err.text, "m/config.json: "));
	}
}

/* ---- choosing --------------------------------------------------------------------------------- */

static const char *const folder_files[][2] = {
	{ "one.family", "model_type m1 m2\narchitecture A1\nkeep nonsense ((\n" },
	{ "two.family", "model_type m3 inner\n" },
	{ "general.family", "about all\n" },
	{ "notes.txt", "not a family\n" },
	{ ".hidden.family", "nonsense\n" },
};

static char *write_folder(void)
{
	const char *parent = getenv("TMPDIR");
	char *folder = xfp_formatted("%s/xfp-family-XXXXXX", parent && *parent ? parent : "/tmp");

	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof folder_files / sizeof *folder_files; i++) {
		char *path = xfp_path(folder, folder_files[i][0]);

		assert_int_equal(xfp_write_file(path, folder_files[i][1], strlen(folder_files[i][1]), false, NULL),
				 XFP_OK);
		free(path);
	}
	return folder;
}

static void remove_folder(char *folder)
{
	for (size_t i = 0; i < sizeof folder_files / sizeof *folder_files; i++) {
		char *path = xfp_path(folder, folder_files[i][0]);

		unlink(path);
		free(path);
	}
	rmdir(folder);
	free(folder);
}

static void test_choosing(void **state)
{
	static const struct {
		const char *config, *file, *why;
	} cases[] = {
		{ "{\"model_type\": \"m2\"}", "one.family", "by model_type m2" },
		{ "{\"model_type\": \"x\", \"text_config\": {\"model_type\": \"inner\"}}", "two.family",
		  "by model_type inner" },
		{ "{\"model_type\": \"x\", \"architectures\": [\"Z\", \"A1\"]}", "one.family", "by architecture A1" },
		{ "{\"model_type\": \"m3\", \"architectures\": [\"A1\"]}", "two.family", "by model_type m3" },
		{ "{\"model_type\": \"x\"}", "general.family", NULL },
		{ "{\"model_type\": 3, \"architectures\": {}}", "general.family", NULL },
		{ NULL, "general.family", NULL },
	};
	char *folder = write_folder();
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_model_config *c = config(cases[i].config);
		char *path, *why;

		assert_int_equal(xfp_family_choose(&folder, 1, c, &path, &why, NULL), XFP_OK);
		assert_string_equal(strrchr(path, '/') + 1, cases[i].file);
		if (cases[i].why)
			assert_string_equal(why, cases[i].why);
		else
			assert_null(why);
		free(path);
		free(why);
		xfp_model_config_free(c);
	}
	remove_folder(folder);
}

static void test_two_claims_are_an_error(void **state)
{
	char *folder = write_folder(), *path, *why, *third;
	struct xfp_model_config *c = config("{\"model_type\": \"m1\"}");
	struct xfp_error err = { 0 };
	(void)state;

	third = xfp_path(folder, "three.family");
	assert_int_equal(xfp_write_file(third, "model_type m1\n", 14, false, NULL), XFP_OK);
	assert_int_equal(xfp_family_choose(&folder, 1, c, &path, &why, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "one and three both claim \"m1\""));
	unlink(third);
	free(third);
	xfp_model_config_free(c);
	remove_folder(folder);
}

/* The first folder with a family for the model decides, whatever the claims or names of later ones. */
static void test_folders_in_order(void **state)
{
	char *folders[] = { write_folder(), write_folder() };
	struct xfp_model_config *c = config("{\"model_type\": \"m2\"}"), *unknown = config("{}");
	char *first = xfp_path(folders[0], "one.family"), *general = xfp_path(folders[0], "general.family"), *path,
	     *why;
	(void)state;

	assert_int_equal(xfp_write_file(first, "model_type m9\n", 14, false, NULL), XFP_OK);
	assert_int_equal(xfp_family_choose(folders, 2, c, &path, &why, NULL), XFP_OK);
	assert_memory_equal(path, folders[1], strlen(folders[1]));
	free(path);
	free(why);
	assert_int_equal(xfp_write_file(first, "model_type m2\n", 14, false, NULL), XFP_OK);
	assert_int_equal(xfp_family_choose(folders, 2, c, &path, &why, NULL), XFP_OK);
	assert_string_equal(path, first);
	free(path);
	free(why);
	assert_int_equal(xfp_family_choose(folders, 2, unknown, &path, &why, NULL), XFP_OK);
	assert_string_equal(path, general);
	free(path);
	unlink(general);
	assert_int_equal(xfp_family_choose(folders, 2, unknown, &path, &why, NULL), XFP_OK);
	assert_memory_equal(path, folders[1], strlen(folders[1]));
	assert_null(why);
	free(path);
	free(first);
	free(general);
	xfp_model_config_free(c);
	xfp_model_config_free(unknown);
	remove_folder(folders[0]);
	remove_folder(folders[1]);
}

/* A shipped family can be read, and it is chosen for all the models that it claims. */
static void check_shipped(char *folder, const char *file)
{
	char *path = xfp_path(folder, file), *chosen, *why;
	struct xfp_error err = { 0 };
	struct xfp_family *f;

	if (xfp_family_load(path, false, &f, &err))
		fail_msg("%s", err.text);
	assert_true(f->rule_count > 5);
	assert_non_null(f->about);
	for (uint32_t m = 0; m < f->model_type_count + f->architecture_count; m++) {
		bool type = m < f->model_type_count;
		char *text = type ? xfp_formatted("{\"model_type\": \"%s\"}", f->model_types[m])
				  : xfp_formatted("{\"architectures\": [\"%s\"]}",
						  f->architectures[m - f->model_type_count]);
		struct xfp_model_config *c = config(text);

		if (xfp_family_choose(&folder, 1, c, &chosen, &why, &err))
			fail_msg("%s", err.text);
		assert_string_equal(chosen, path);
		free(chosen);
		free(why);
		free(text);
		xfp_model_config_free(c);
	}
	xfp_family_free(f);
	free(path);
}

static void test_shipped_families(void **state)
{
	const char *root = getenv("srcdir");
	char *folder = xfp_formatted("%s/pipelines/families", root ? root : ".");
	DIR *dir = opendir(folder);
	struct dirent *entry;
	unsigned count = 0;
	(void)state;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (strstr(entry->d_name, XFP_FAMILY_SUFFIX)) {
			check_shipped(folder, entry->d_name);
			count++;
		}
	closedir(dir);
	assert_true(count >= 15);
	free(folder);
}

PROGRAM("test_family")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_a_family),
		cmocka_unit_test(test_errors_name_file_and_line),
		cmocka_unit_test(test_alternatives_must_be_equally_many),
		cmocka_unit_test(test_header_only_leaves_rules_alone),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_first_match_wins),
		cmocka_unit_test(test_extra_layers_go_by_number),
		cmocka_unit_test(test_no_memory_is_no_answer),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_bad_config),
		cmocka_unit_test(test_choosing),
		cmocka_unit_test(test_two_claims_are_an_error),
		cmocka_unit_test(test_folders_in_order),
		cmocka_unit_test(test_shipped_families),
	};

	return cmocka_run_group_tests_name("family", tests, NULL, NULL);
}
