/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/utf8.h"
#include "schemas/layout/bundle_layout.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <string.h>

/* libarchive leaks a little when an archive is abandoned, as in this test; read by LeakSanitizer. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libarchive";
}

/* Captures the header that libarchive writes. */
struct capture {
	uint8_t data[4096];
	size_t size;
};

static la_ssize_t on_write(struct archive *archive, void *context, const void *data, size_t size)
{
	struct capture *capture = context;

	(void)archive;
	if (capture->size + size <= sizeof capture->data)
		memcpy(capture->data + capture->size, data, size);
	capture->size += size;
	return (la_ssize_t)size;
}

static size_t libarchive_header(const char *name, uint64_t size, struct capture *capture)
{
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	size_t header;

	*capture = (struct capture){ 0 };
	archive_write_set_format_pax_restricted(archive);
	archive_write_set_bytes_per_block(archive, 0);
	assert_int_equal(archive_write_open(archive, capture, NULL, on_write, NULL), ARCHIVE_OK);
	archive_entry_set_pathname(entry, name);
	archive_entry_set_size(entry, (la_int64_t)size);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_mtime(entry, 0, 0);
	assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
	header = capture->size;
	archive_entry_free(entry);
	archive_write_fail(archive); /* no content follows */
	archive_write_free(archive);
	return header;
}

static void headers_are_libarchives(void **state)
{
	const uint64_t gib = 1 << 30, sizes[] = {
		0,
		1,
		149,
		4096,
		8 * gib - 1,
		8 * gib,
		8 * gib + 3584,
		10 * gib,
		64 * gib - 1,
		64 * gib,
		795 * gib + 512,
		99999999999,
		100000000000,
		UINT64_C(999999999999999),
	};
	const char *names[] = {
		"xfp.json",
		"xfp.idx",
		"xfp.sum",
		"u/000000.idx",
		"u/000012.cb",
		"u/1234567.out",
		"t/000003.raw",
		"files/config.json",
		"files/1_Pooling/config.json",
		"files/+000004",
		"files/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
	};
	struct capture capture;
	uint8_t ours[3 * XFP_TAR_BLOCK];

	(void)state;
	for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			size_t size = libarchive_header(names[n], sizes[s], &capture);

			assert_int_equal(xfp_tar_header_bytes(sizes[s]), size);
			memset(ours, 0xff, sizeof ours);
			xfp_tar_header(names[n], sizes[s], ours);
			assert_memory_equal(ours, capture.data, size);
		}
	}
}

static void members_have_short_plain_names(void **state)
{
	char part[24], file[XFP_FILE_MEMBER_BYTES], name[100];

	(void)state;
	xfp_part_member(12, XFP_PART_INDEX, part);
	assert_string_equal(part, "u/000012.idx");
	xfp_part_member(12, XFP_PART_GROUP, part);
	assert_string_equal(part, "u/000012.grp");
	xfp_part_member(4294967294u, XFP_PART_OUTLIER, part);
	assert_string_equal(part, "u/4294967294.out");
	xfp_part_member(3, XFP_PARTS, part);
	assert_string_equal(part, "t/000003.raw");
	xfp_file_member(3, "1_Pooling/config.json", file);
	assert_string_equal(file, "files/1_Pooling/config.json");
	xfp_file_member(3, "c\xc3\xa9.json", file);
	assert_string_equal(file, "files/+000003");
	xfp_file_member(4, "with blank", file);
	assert_string_equal(file, "files/+000004");
	memset(name, 'a', 81);
	name[81] = 0;
	xfp_file_member(5, name, file);
	assert_string_equal(file, "files/+000005");
	name[80] = 0;
	xfp_file_member(5, name, file);
	assert_int_equal(strlen(file), 86);
}

static void names_that_leave_the_folder_are_refused(void **state)
{
	const char *good[] = { "a", "a/b", "..a", "a..", ".a", "...", "a/.b/c" };
	const char *bad[] = { "", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "./a", "a/." };

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(xfp_file_name_valid(good[i]));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(xfp_file_name_valid(bad[i]));
}

static void only_utf8_without_nul(void **state)
{
	const char *good[] = {
		"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x92\xa9", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"
	};
	const char *bad[] = { "\x80",
			      "\xc3",
			      "\xc0\x80",
			      "\xc1\xbf",
			      "\xe0\x9f\xbf",
			      "\xed\xa0\x80",
			      "\xf0\x8f\xbf\xbf",
			      "\xf4\x90\x80\x80",
			      "\xf8\x88\x80\x80\x80",
			      "\xff",
			      "a\xe2\x82",
			      "\xe2\x28\xa1" };

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(xfp_utf8_valid(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(xfp_utf8_valid(bad[i], strlen(bad[i])));
	assert_false(xfp_utf8_valid("a\0b", 3));
}

PROGRAM("test_tar")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_libarchives),
		cmocka_unit_test(members_have_short_plain_names),
		cmocka_unit_test(names_that_leave_the_folder_are_refused),
		cmocka_unit_test(only_utf8_without_nul),
	};

	return cmocka_run_group_tests_name("tar", tests, NULL, NULL);
}
