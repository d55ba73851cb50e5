/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables: what fits stays in one block; otherwise the table is split, and nothing is lost.
 */
#include <stdlib.h>

#include "base/text/screen.h"
#include "base/text/table.h"
#include "base/text/text.h"
#include "tests/unit/unit.h"

static const struct xfp_table_column columns[] = {
	{ "name", 1, 0, 0 }, { "count", 0, 1, 0 }, { "size", 0, 1, 1 }, { "cosine", 0, 2, 0 }, { NULL, 0, 0, 0 },
};

static void add(struct xfp_table *table, const char *name, const char *count, const char *size, const char *cosine)
{
	char(*row)[XFP_TABLE_CELL] = xfp_table_row(table, name);

	snprintf(row[1], sizeof row[1], "%s", count);
	snprintf(row[2], sizeof row[2], "%s", size);
	snprintf(row[3], sizeof row[3], "%s", cosine);
}

static void assert_prints(struct xfp_table *table, const char *expected)
{
	struct xfp_text text;

	xfp_table_print(xfp_text_begin(&text), table);
	assert_true(xfp_text_end(&text));
	assert_string_equal(text.bytes, expected);
	free(text.bytes);
	assert_int_equal(table->rows, 0);
}

static void test_one_piece(void **state)
{
	struct xfp_table table = { .column = columns, .width = 80 };

	(void)state;
	add(&table, "q", "12", "3 kB", "0.99");
	add(&table, "files", "", "7 B", "");
	assert_prints(&table, "name  count size  cosine\n"
			      "q        12 3 kB    0.99\n"
			      "files        7 B\n");
}

static void test_broken_at_a_part(void **state)
{
	struct xfp_table table = { .column = columns, .width = 20 };

	(void)state;
	add(&table, "q", "12", "3 kB", "0.99");
	add(&table, "files", "1", "", "");
	/* "size" would have fitted, but a part begins there; an empty row is left out. */
	assert_prints(&table, "name  count\n"
			      "q        12\n"
			      "files     1\n"
			      "\n"
			      "name  size  cosine\n"
			      "q     3 kB    0.99\n");
}

static void test_long_keys_are_cut(void **state)
{
	struct xfp_table table = { .column = columns, .width = 22 };

	(void)state;
	add(&table, "a_very_long_name", "12", "3 kB", "0.99");
	assert_prints(&table, "name        count\n"
			      "a_very_l...    12\n"
			      "\n"
			      "name        size\n"
			      "a_very_l... 3 kB\n"
			      "\n"
			      "name         cosine\n"
			      "a_very_l...    0.99\n");
}

static void test_letters_of_several_bytes(void **state)
{
	struct xfp_table table = { .column = columns, .width = 80 };

	(void)state;
	add(&table, "\xc3\xa4\xc3\xb6\xc3\xbc", "1", "2", "3");
	add(&table, "abc", "1", "2", "3");
	assert_prints(&table, "name count size  cosine\n"
			      "\xc3\xa4\xc3\xb6\xc3\xbc      1    2       3\n"
			      "abc      1    2       3\n");
}

static void test_texts_beside_and_above(void **state)
{
	struct xfp_table table = { .column = columns, .width = 80, .text = "unit" };

	(void)state;
	add(&table, "a", "1", "2", "3");
	xfp_table_text(&table, "%s", "model.q");
	assert_prints(&table, "name count size  cosine  unit\n"
			      "a        1    2       3  model.q\n");
	table.width = 30;
	add(&table, "a", "1", "2", "3");
	xfp_table_text(&table, "%s", "model.q which is a long one");
	add(&table, "b", "1", "2", "3");
	xfp_table_text(&table, "%s", "model.q which is a long one");
	add(&table, "c", "1", "2", "3");
	xfp_table_text(&table, "%s", "model.layers.0.self_attn.q_proj.weight");
	assert_prints(&table, "unit\n"
			      "  name count size  cosine\n"
			      "model.q which is a long one\n"
			      "  a        1    2       3\n"
			      "  b        1    2       3\n"
			      "model.layers.0.self_attn.q_pro\n"
			      "    j.weight\n"
			      "  c        1    2       3\n");
}

/* A row with only a name is a row; a text is on the line of its row if it fits. */
static void test_edges(void **state)
{
	struct xfp_table table = { .column = columns, .width = 33, .text = "unit" };

	(void)state;
	add(&table, "a", "1", "2", "3");
	xfp_table_text(&table, "%s", "replaced");
	xfp_table_text(&table, "%s", "1234567");
	assert_prints(&table, "name count size  cosine  unit\n"
			      "a        1    2       3  1234567\n");
	table.width = 31;
	add(&table, "a", "1", "2", "3");
	xfp_table_text(&table, "%s", "1234567");
	assert_prints(&table, "unit\n"
			      "  name count size  cosine\n"
			      "1234567\n"
			      "  a        1    2       3\n");
	table = (struct xfp_table){ .column = columns, .width = 80 };
	add(&table, "alone", "", "", "");
	assert_prints(&table, "name  count size  cosine\n"
			      "alone\n");
}

/* Of several keys the widest is cut. */
static void test_the_widest_key_is_cut(void **state)
{
	static const struct xfp_table_column keys[] = {
		{ "id", 1, 0, 0 }, { "name", 1, 1, 0 }, { "count", 0, 1, 0 }, { NULL, 0, 0, 0 }
	};
	struct xfp_table table = { .column = keys, .keys = 2, .width = 20 };
	char(*row)[XFP_TABLE_CELL] = xfp_table_row(&table, "ab");

	(void)state;
	snprintf(row[1], sizeof row[1], "a_very_long_name");
	snprintf(row[2], sizeof row[2], "12");
	assert_prints(&table, "id name    count\n"
			      "ab a_ve...    12\n");
}

static void test_folding_leaves_no_blanks(void **state)
{
	struct xfp_table table = { .column = columns, .width = 30, .text = "unit" };

	(void)state;
	add(&table, "a", "1", "2", "3");
	xfp_table_text(&table, "%s", "some words that are more than  a line");
	assert_prints(&table, "unit\n"
			      "  name count size  cosine\n"
			      "some words that are more than\n"
			      "    a line\n"
			      "  a        1    2       3\n");
}

static void test_width(void **state)
{
	(void)state;
	assert_int_equal(setenv("COLUMNS", "132", 1), 0);
	assert_int_equal(xfp_screen_width(), 132);
	assert_int_equal(setenv("COLUMNS", "40", 1), 0);
	assert_int_equal(xfp_screen_width(), XFP_SCREEN_MIN_COLUMNS);
	assert_int_equal(setenv("COLUMNS", "132x", 1), 0);
	assert_int_not_equal(xfp_screen_width(), 132);
	assert_int_equal(unsetenv("COLUMNS"), 0);
}

PROGRAM("test_table")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_piece),
		cmocka_unit_test(test_broken_at_a_part),
		cmocka_unit_test(test_long_keys_are_cut),
		cmocka_unit_test(test_letters_of_several_bytes),
		cmocka_unit_test(test_texts_beside_and_above),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_the_widest_key_is_cut),
		cmocka_unit_test(test_folding_leaves_no_blanks),
		cmocka_unit_test(test_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
