/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zip archives: records at their limits, and one wrong field at a time.
 */
#include <fcntl.h>

#include "base/bytes.h"
#include "checkpoints/zip.h"
#include "tests/unit/scratch.h"

#define MEMBERS 3
#define IN_FRONT 100 /* bytes of the file before the archive */
#define FULL32 0xffffffffu

/* The order of the directory is not that of names, and the folder is not a member. */
static const char *const names[MEMBERS] = { "b/data", "b/", "a" }, *const contents[MEMBERS] = { "12345", "", "xyz" };

struct archive {
	unsigned char bytes[70000];
	size_t size, local[MEMBERS], entry[MEMBERS], extra[MEMBERS], end64, locator, end;
};

static struct xfp_error err;

static size_t put(struct archive *a, size_t at, unsigned size, uint64_t value)
{
	for (unsigned i = 0; i < size; i++)
		a->bytes[at + i] = (unsigned char)(value >> 8 * i);
	return at + size;
}

/* Fields of the given sizes, in this order, up to a size of 0. */
static void fields(struct archive *a, const char *signature, const unsigned *sizes, const uint64_t *values)
{
	memcpy(a->bytes + a->size, signature, 4);
	a->size += 4;
	for (; *sizes; sizes++, values++)
		a->size = put(a, a->size, *sizes, *values);
}

static void text(struct archive *a, const char *what)
{
	memcpy(a->bytes + a->size, what, strlen(what));
	a->size += strlen(what);
}

/* With 64-bit numbers in extra fields and records, or without. */
static void build(struct archive *a, bool wide)
{
	static const unsigned in_local[] = { 2, 2, 2, 2, 2, 4, 4, 4, 2, 2, 0 };
	static const unsigned in_entry[] = { 2, 2, 2, 2, 2, 2, 4, 4, 4, 2, 2, 2, 2, 2, 4, 4, 0 };
	static const unsigned in_end64[] = { 8, 2, 2, 4, 4, 8, 8, 8, 8, 0 }, in_locator[] = { 4, 8, 4, 0 };
	static const unsigned in_end[] = { 2, 2, 2, 2, 4, 4, 2, 0 };
	size_t directory, directory_end;

	memset(a, 0, sizeof *a);
	for (int i = 0; i < MEMBERS; i++) {
		uint64_t bytes = strlen(contents[i]), name = strlen(names[i]);

		a->local[i] = a->size;
		fields(a, "PK\3\4", in_local, (uint64_t[]){ 20, 0, 0, 0, 0, 0, bytes, bytes, name, 3 });
		text(a, names[i]);
		text(a, "abc");
		text(a, contents[i]);
	}
	directory = a->size;
	for (int i = 0; i < MEMBERS; i++) {
		uint64_t bytes = strlen(contents[i]), name = strlen(names[i]), sized = wide ? FULL32 : bytes;

		a->entry[i] = a->size;
		fields(a, "PK\1\2", in_entry,
		       (uint64_t[]){ 20, 20, 0, 0, 0, 0, 0, sized, sized, name, wide ? 33 : 0, 2, 0, 0, 0,
				     wide ? FULL32 : a->local[i] });
		text(a, names[i]);
		a->extra[i] = a->size;
		if (wide) { /* the zip64 field follows a field of another kind */
			a->size = put(a, put(a, put(a, a->size, 2, 7), 2, 1), 1, 9);
			a->size = put(a, put(a, a->size, 2, 1), 2, 24);
			a->size = put(a, put(a, put(a, a->size, 8, bytes), 8, bytes), 8, a->local[i]);
		}
		text(a, "!!");
	}
	directory_end = a->size;
	if (wide) {
		a->end64 = a->size;
		fields(a, "PK\6\6", in_end64,
		       (uint64_t[]){ 44, 45, 45, 0, 0, MEMBERS, MEMBERS, directory_end - directory, directory });
		a->locator = a->size;
		fields(a, "PK\6\7", in_locator, (uint64_t[]){ 0, a->end64, 1 });
	}
	a->end = a->size;
	fields(a, "PK\5\6", in_end,
	       (uint64_t[]){ 0, 0, wide ? 0xffff : MEMBERS, wide ? 0xffff : MEMBERS,
			     wide ? FULL32 : directory_end - directory, wide ? FULL32 : directory, 0 });
}

static enum xfp_status read_archive(void **state, const struct archive *a, struct xfp_zip *zip)
{
	static unsigned char whole[IN_FRONT + sizeof a->bytes];
	char *path = scratch_path(state, "archive");
	struct xfp_place place = { path, "archive", IN_FRONT, a->size };
	enum xfp_status status;
	int fd;

	memcpy(whole + IN_FRONT, a->bytes, a->size);
	scratch_write(state, "archive", whole, IN_FRONT + a->size);
	assert_true((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0);
	*zip = (struct xfp_zip){ 0 };
	status = xfp_zip_read(fd, &place, zip, &err);
	close(fd);
	free(path);
	return status;
}

static void expect_read(void **state, const struct archive *a)
{
	struct xfp_zip zip;

	if (read_archive(state, a, &zip))
		fail_msg("%s", err.text);
	assert_int_equal(zip.count, 2);
	assert_string_equal(zip.members[0].name, "a");
	assert_string_equal(zip.members[1].name, "b/data");
	assert_int_equal(zip.first, 1);
	assert_ptr_equal(xfp_zip_find(&zip, "b/data"), &zip.members[1]);
	assert_null(xfp_zip_find(&zip, "b/"));
	for (int i = 0; i < 2; i++) {
		const char *content = contents[i ? 0 : 2];

		assert_false(zip.members[i].compressed);
		assert_int_equal(zip.members[i].bytes, strlen(content));
		assert_memory_equal(a->bytes + zip.members[i].offset - IN_FRONT, content, strlen(content));
	}
	xfp_zip_free(&zip);
}

static void expect_refused(void **state, const struct archive *a, const char *message)
{
	struct xfp_zip zip;
	enum xfp_status status = read_archive(state, a, &zip);

	if (status != XFP_BAD_INPUT || !strstr(err.text, message))
		fail_msg("status %d, %s, and not %s", (int)status, status ? err.text : "", message);
	assert_null(zip.members);
}

/* ------------------------------------------------------------------------------------------------ */

/* Change a field of a valid archive: the archive is refused with `message`, or read if that is NULL. */
struct change {
	size_t at;
	unsigned size;
	uint64_t value;
	const char *message;
};

static void check_changes(void **state, struct archive *a, const struct change *changes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct change *change = &changes[i];
		unsigned char before[8];

		memcpy(before, a->bytes + change->at, sizeof before);
		put(a, change->at, change->size, change->value);
		print_message("change %zu at %zu\n", i, change->at);
		if (change->message)
			expect_refused(state, a, change->message);
		else
			expect_read(state, a);
		memcpy(a->bytes + change->at, before, sizeof before);
	}
}

static void fields_are_checked(void **state)
{
	static struct archive a;

	build(&a, false);
	expect_read(state, &a);
	{
		const struct change changes[] = {
			{ a.end + 4, 2, 1, "several disks" },
			{ a.end + 6, 2, 1, "several disks" },
			{ a.end + 8, 2, 2, "several disks" },
			{ a.end + 10, 2, 4, "several disks" },
			{ a.end + 12, 4, a.end - a.entry[0] + 1, "directory is not where" },
			{ a.end + 12, 4, a.end - a.entry[0] - 1, "directory is not where" },
			{ a.end + 16, 4, a.entry[0] + 1, "directory is not where" },
			{ a.end + 16, 4, a.end + 1, "directory is not where" },
			{ a.end + 8, 4, 2u << 16 | 2, "more entries than it says" },
			{ a.end + 8, 4, 4u << 16 | 4, "directory is not where" },
			{ a.end + 20, 2, 1, "does not end like a zip archive" },
			{ a.end, 1, 'Q', "does not end like a zip archive" },
			{ a.entry[1], 1, 'Q', "fewer entries than stated" },
			{ a.entry[2] + 32, 2, 3, "reaches past the directory's end" },
			{ a.entry[0] + 8, 2, 1u << 0, "is encrypted" },
			{ a.entry[0] + 8, 2, 1u << 6, "is encrypted" },
			{ a.entry[0] + 8, 2, 1u << 13, "is encrypted" },
			{ a.entry[0] + 34, 2, 1, "lies on another disk" },
			{ a.entry[0] + 20, 4, 4, "its two sizes differ" },
			{ a.entry[0] + 24, 4, 4, "its two sizes differ" },
			{ a.entry[0] + 42, 4, a.end, "past the archive's end" },
			{ a.entry[2] + 42, 4, a.entry[0] - 30, "past the archive's end" },
			{ a.entry[2] + 42, 4, a.entry[0] - 31, "header is not what" },
			{ a.local[0], 1, 'Q', "header is not what" },
			{ a.local[0] + 6, 2, 1u << 6, "header is not what" },
			{ a.local[0] + 8, 2, 8, "header is not what" },
			{ a.local[0] + 26, 2, 5, "header is not what" },
			{ a.local[0] + 30, 1, 'c', "header is not what" },
			{ a.local[0] + 18, 4, 6, "another size in its header" },
			{ a.local[0] + 22, 4, 6, "another size in its header" },
			{ a.local[0] + 18, 4, FULL32, NULL },
			{ a.local[0] + 22, 4, FULL32, NULL },
			{ a.local[2] + 28, 2, 4, "a: reaches past the archive's end" },
			{ a.local[0] + 28, 2, 4, "overlap" },
			{ a.entry[2] + 46, 1, '/', "is not a path" },
			{ a.entry[2] + 46, 1, '\\', "is not a path" },
			{ a.entry[2] + 46, 1, 0, "is not a path" },
			{ a.entry[0] + 47, 1, ':', "is not a path" },
			{ a.entry[0] + 46, 3, '.' | '.' << 8 | '/' << 16, "is not a path" },
			{ a.entry[0] + 48, 4, '.' | '.' << 8 | '/' << 16 | (uint64_t)'.' << 24, "is not a path" },
			{ a.entry[0] + 48, 4, 'a' | '/' << 8 | '.' << 16 | (uint64_t)'.' << 24, "is not a path" },
			{ a.entry[0] + 48, 4, '.' | '.' << 8 | '.' << 16 | (uint64_t)'/' << 24, "header is not what" },
		};

		check_changes(state, &a, changes, sizeof changes / sizeof *changes);
	}
	/* Sizes that follow the content are not in the header. */
	put(&a, a.local[0] + 6, 2, 1u << 3);
	put(&a, a.local[0] + 18, 8, 0);
	expect_read(state, &a);
	/* An entry that points to another member's header, and a compressed member. */
	build(&a, false);
	memcpy(a.bytes + a.entry[0] + 46, "b/", 2);
	put(&a, a.entry[1] + 42, 4, a.local[0]);
	expect_refused(state, &a, "header is not what");
	build(&a, false);
	put(&a, a.entry[0] + 10, 2, 8);
	put(&a, a.entry[0] + 24, 4, 77);
	put(&a, a.local[0] + 8, 2, 8);
	put(&a, a.local[0] + 22, 4, 77);
	{
		struct xfp_zip zip;

		assert_int_equal(read_archive(state, &a, &zip), XFP_OK);
		assert_true(zip.members[1].compressed && !zip.members[0].compressed);
		xfp_zip_free(&zip);
	}
}

static void wide_fields_are_checked(void **state)
{
	static struct archive a;

	build(&a, true);
	expect_read(state, &a);
	{
		const struct change changes[] = {
			{ a.locator + 4, 4, 1, "several disks" },
			{ a.locator + 16, 4, 2, "several disks" },
			{ a.locator + 16, 4, 0, NULL },
			{ a.locator + 8, 8, a.end64 + 1, "not where its locator says" },
			{ a.locator + 8, 8, a.locator + 1, "not where its locator says" },
			{ a.locator + 8, 8, a.end64 - 1, "is invalid" },
			{ a.end64, 1, 'Q', "is invalid" },
			{ a.end64 + 4, 8, 45, "is invalid" },
			{ a.end64 + 16, 4, 1, "several disks" },
			{ a.end64 + 20, 4, 1, "several disks" },
			{ a.end64 + 24, 8, MEMBERS + 1, "several disks" },
			{ a.end64 + 48, 8, a.entry[0] - 1, "directory is not where" },
			/* The shorter record must agree, unless its fields are full. */
			{ a.end + 10, 2, MEMBERS, NULL },
			{ a.end + 10, 2, MEMBERS + 1, "contradict each other" },
			{ a.end + 12, 4, a.end64 - a.entry[0], NULL },
			{ a.end + 12, 4, a.end64 - a.entry[0] + 1, "contradict each other" },
			{ a.end + 16, 4, a.entry[0], NULL },
			{ a.end + 16, 4, a.entry[0] + 1, "contradict each other" },
			/* The extra field: only of another kind, too short, or longer than the entry. */
			{ a.extra[0] + 5, 2, 2, "lacks the zip64 field" },
			{ a.extra[0] + 7, 2, 23, "lacks the zip64 field" },
			{ a.extra[0] + 7, 2, 25, "lacks the zip64 field" },
			{ a.extra[0] + 2, 2, 30, "lacks the zip64 field" },
			{ a.extra[0] + 2, 2, 29, "lacks the zip64 field" },
			{ a.entry[2] + 42, 4, a.local[2], NULL },
		};

		check_changes(state, &a, changes, sizeof changes / sizeof *changes);
	}
}

static void a_comment_may_follow(void **state)
{
	static struct archive a, with;
	const size_t sizes[] = { 1, 21, 22, 65534, 65535 };

	build(&a, false);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		with = a;
		put(&with, a.end + 20, 2, sizes[i]);
		with.size += sizes[i];
		expect_read(state, &with);
		with.bytes[a.end + 20] ^= 1;
		expect_refused(state, &with, "does not end like a zip archive");
	}
	/* The end record alone is an empty archive; one byte less is not an archive. */
	memset(&with, 0, sizeof with);
	memcpy(with.bytes, "PK\5\6", 4);
	with.size = 22;
	{
		struct xfp_zip zip;

		assert_int_equal(read_archive(state, &with, &zip), XFP_OK);
		assert_int_equal(zip.count, 0);
		assert_null(xfp_zip_find(&zip, "a"));
		xfp_zip_free(&zip);
	}
	with.size = 21;
	expect_refused(state, &with, "does not end like a zip archive");
}

PROGRAM("test_zip")
{
	const struct CMUnitTest tests[] = {
		scratch_test(fields_are_checked),
		scratch_test(wide_fields_are_checked),
		scratch_test(a_comment_may_follow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
