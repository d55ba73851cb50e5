/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte selects the kind of input: a pickle in pieces (0), a pickle (1), changes to an archive (2), or a
 * complete file (otherwise).
 */
#include "tests/fuzz/torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "checkpoints/pytorch/torch_file.h"

#define MAX_BYTES 8192u
#define STORAGE_BYTES 96u

struct file {
	unsigned char bytes[4 * MAX_BYTES];
	size_t size, directory; /* offset of the directory */
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void put(struct file *f, const void *bytes, size_t size)
{
	must(size <= sizeof f->bytes - f->size);
	memcpy(f->bytes + f->size, bytes, size);
	f->size += size;
}

/* ---- a pickle ------------------------------------------------------------------------------------ */

#define PIECE(literal)                      \
	{                                   \
		literal, sizeof literal - 1 \
	}
static const struct {
	const char *text;
	size_t size;
} pieces[] = {
	PIECE("}"),
	PIECE("("),
	PIECE("u"),
	PIECE("."),
	PIECE(")"),
	PIECE("t"),
	PIECE("R"),
	PIECE("Q"),
	PIECE("s"),
	PIECE("]"),
	PIECE("a"),
	PIECE("e"),
	PIECE("b"),
	PIECE("N"),
	PIECE("\x88"),
	PIECE("\x89"),
	PIECE("\x85"),
	PIECE("\x86"),
	PIECE("\x87"),
	PIECE("q\0"),
	PIECE("q\1"),
	PIECE("q\2"),
	PIECE("h\0"),
	PIECE("h\1"),
	PIECE("h\2"),
	PIECE("K\0"),
	PIECE("K\1"),
	PIECE("K\2"),
	PIECE("K\3"),
	PIECE("K\4"),
	PIECE("K\6"),
	PIECE("K\x08"),
	PIECE("K\x0c"),
	PIECE("K\x18"),
	PIECE("M\0\1"),
	PIECE("J\xff\xff\xff\xff"),
	PIECE("\x8a\x08\0\0\0\0\0\0\0\x40"),
	PIECE("X\1\0\0\0"
	      "0"),
	PIECE("X\1\0\0\0"
	      "1"),
	PIECE("X\1\0\0\0"
	      "2"),
	PIECE("X\1\0\0\0"
	      "3"),
	PIECE("X\1\0\0\0"
	      "a"),
	PIECE("X\1\0\0\0b"),
	PIECE("X\5\0\0\0model"),
	PIECE("X\7\0\0\0storage"),
	PIECE("X\3\0\0\0cpu"),
	PIECE("X\4\0\0\0meta"),
	PIECE("ctorch\nFloatStorage\n"),
	PIECE("ctorch\nHalfStorage\n"),
	PIECE("ctorch\nDoubleStorage\n"),
	PIECE("ctorch\nByteStorage\n"),
	PIECE("ctorch.storage\nUntypedStorage\n"),
	PIECE("ctorch\nfloat8_e4m3fn\n"),
	PIECE("ctorch\nfloat4_e2m1fn_x2\n"),
	PIECE("ctorch\nuint32\n"),
	PIECE("ctorch._utils\n_rebuild_tensor_v2\n"),
	PIECE("ctorch._utils\n_rebuild_tensor_v3\n"),
	PIECE("ctorch._utils\n_rebuild_parameter\n"),
	PIECE("ccollections\nOrderedDict\n"),
	PIECE("ctorch\nSize\n"),
	PIECE("G\0\0\0\0\0\0\0\0"),
	/* Storages of 24, 48 and 12 elements; the beginning and the end of a tensor, with its offset, sizes and strides
	 * in between. */
	PIECE("(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
	      "0X\3\0\0\0cpuK\x18tQ"),
	PIECE("(X\7\0\0\0storagectorch\nHalfStorage\nX\1\0\0\0"
	      "1X\3\0\0\0cpuK\x30tQ"),
	PIECE("(X\7\0\0\0storagectorch\nDoubleStorage\nX\1\0\0\0"
	      "2X\3\0\0\0cpuK\x0ctQ"),
	PIECE("ctorch._utils\n_rebuild_tensor_v2\n("),
	PIECE("\x89)tR"),
};
#define PIECES (sizeof pieces / sizeof *pieces)

static size_t make_pickle(const uint8_t *data, size_t size, unsigned char *out, size_t capacity)
{
	size_t length = 2;

	memcpy(out, "\x80\2", 2);
	for (size_t i = 0; i < size; i++) {
		size_t piece = data[i] % PIECES;

		if (pieces[piece].size > capacity - length)
			break;
		memcpy(out + length, pieces[piece].text, pieces[piece].size);
		length += pieces[piece].size;
	}
	return length;
}

/* ---- an archive ---------------------------------------------------------------------------------- */

static void put_member(struct file *f, struct file *directory, const char *name, const void *bytes, size_t size)
{
	size_t length = strlen(name);
	unsigned char local[30] = "PK\3\4", entry[46] = "PK\1\2";

	xfp_store16(local + 6, 0x808);
	xfp_store16(local + 26, (uint16_t)length);
	xfp_store16(entry + 8, 0x808);
	xfp_store32(entry + 20, (uint32_t)size);
	xfp_store32(entry + 24, (uint32_t)size);
	xfp_store16(entry + 28, (uint16_t)length);
	xfp_store32(entry + 42, (uint32_t)f->size);
	put(f, local, sizeof local);
	put(f, name, length);
	put(f, bytes, size);
	put(directory, entry, sizeof entry);
	put(directory, name, length);
}

static void make_archive(struct file *f, const unsigned char *pickle, size_t size)
{
	static const char *const names[] = { "x/data/0", "x/data/1", "x/data/2", "x/data/3" };
	static struct file directory;
	unsigned char storage[STORAGE_BYTES], end[22] = "PK\5\6";

	directory.size = 0;
	put_member(f, &directory, "x/data.pkl", pickle, size);
	for (size_t i = 0; i < 4; i++) {
		for (size_t b = 0; b < sizeof storage; b++)
			storage[b] = (unsigned char)(i * 96 + b);
		put_member(f, &directory, names[i], storage, sizeof storage);
	}
	put_member(f, &directory, "x/byteorder", "little", 6);
	f->directory = f->size;
	put(f, directory.bytes, directory.size);
	xfp_store16(end + 8, 6);
	xfp_store16(end + 10, 6);
	xfp_store32(end + 12, (uint32_t)directory.size);
	xfp_store32(end + 16, (uint32_t)f->directory);
	put(f, end, sizeof end);
}

/* Triples of bytes: a position from the end, in two bytes, and the new value. */
static void change(struct file *f, const uint8_t *data, size_t size)
{
	for (; size >= 3; data += 3, size -= 3) {
		size_t back = 1 + xfp_load16(data) % f->size;

		f->bytes[f->size - back] = data[2];
	}
}

/* The output of torch.save for {"a": a 2 x 3 tensor, transposed}. */
static const uint8_t good[] = { 0, 1, 41, 64, 61, 25, 27, 28, 17, 26, 27, 17, 65, 2, 3 };

/* ---- results ------------------------------------------------------------------------------------- */

static unsigned char *read_all(const struct xfp_matrix_source *source, uint64_t piece)
{
	unsigned char *all = malloc(source->bytes + 1);
	struct xfp_element_reader *reader;
	struct xfp_error err;

	must(!xfp_elements_open(source, &reader, &err));
	for (uint64_t at = 0; at < source->bytes; at += piece)
		must(!xfp_elements_read(reader, at, source->bytes - at < piece ? source->bytes - at : piece, all + at,
					&err));
	xfp_elements_close(reader);
	return all;
}

static void check(const struct xfp_source_tensor *t, const struct xfp_source_file *file)
{
	struct xfp_matrix_source source = { .path = file->path,
					    .tensor = t->name,
					    .dtype = t->dtype,
					    .offset = t->offset,
					    .bytes = t->bytes,
					    .recipe = t->recipe,
					    .files = file,
					    .identity = &file->identity };
	uint64_t bits = xfp_dtype_bits(t->dtype), end;
	unsigned char *whole, *pieces_of;

	must(t->rank <= XFP_MAX_RANK && strlen(t->name) <= XFP_MAX_NAME);
	for (uint32_t d = 0; d < t->rank; d++)
		bits *= t->shape[d];
	must(bits == 8 * t->bytes);
	must(t->recipe || (xfp_add(t->offset, t->bytes, &end) && end <= file->identity.size));
	if (xfp_dtype_bits(t->dtype) < 8)
		return;
	whole = read_all(&source, t->bytes + !t->bytes);
	pieces_of = read_all(&source, 5);
	must(!memcmp(whole, pieces_of, t->bytes));
	free(whole);
	free(pieces_of);
}

int fuzz_torch(const uint8_t *data, size_t size)
{
	static unsigned char pickle[MAX_BYTES];
	static struct file made;
	static char path[64];
	static int fd = -1;
	struct xfp_tensor_file file = { 0 };
	struct xfp_place place;
	struct xfp_error err = { 0 };
	int count = -1;

	if (fd < 0) {
		must((fd = memfd_create("torch", 0)) >= 0);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	}
	if (!size || size > MAX_BYTES)
		return -1;
	made.size = 0;
	if (*data == 0)
		make_archive(&made, pickle, make_pickle(data + 1, size - 1, pickle, sizeof pickle));
	else if (*data == 1)
		make_archive(&made, data + 1, size - 1);
	else if (*data == 2)
		make_archive(&made, pickle, make_pickle(good, sizeof good, pickle, sizeof pickle));
	else
		put(&made, data + 1, size - 1);
	if (*data == 2)
		change(&made, data + 1, size - 1);
	must(!ftruncate(fd, 0) && pwrite(fd, made.bytes, made.size, 0) == (ssize_t)made.size);
	place = xfp_place_of_file(path);
	if (!xfp_torch_file_read(&place, NULL, &file, &err)) {
		struct xfp_source_file source = { .name = path, .path = path, .identity = file.identity };

		count = (int)file.count;
		for (uint32_t i = 0; i < file.count; i++) {
			must(!i || strcmp(file.tensors[i - 1].name, file.tensors[i].name) < 0);
			check(&file.tensors[i], &source);
		}
	} else {
		must(err.status == XFP_BAD_INPUT && strstr(err.text, path));
	}
	xfp_tensor_file_free(&file);
	return count;
}
