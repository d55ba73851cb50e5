/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealed_lie.h - change the content of one of our HDF5 files and seal it again, so that its envelope is valid and its
 * content is not.
 */
#ifndef XFP_TEST_SEALED_LIE_H
#define XFP_TEST_SEALED_LIE_H

#include <stdlib.h>
#include <string.h>

#include "schemas/envelope.h"
#include "schemas/h5.h"
#include "tests/unit/unit.h"

static inline void seal_again(const char *path)
{
	struct xfp_error err = { 0 };

	if (xfp_envelope_seal(path, &err))
		fail_msg("%s", err.text);
}

/* Overwrite bytes of a dataset from `at` on. */
static inline void sealed_lie(const char *path, const char *name, size_t at, const void *bytes, size_t size)
{
	hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), set, type, space;
	uint8_t *data;
	size_t capacity;

	assert_true(file >= 0);
	set = H5Dopen2(file, name, H5P_DEFAULT);
	type = H5Dget_type(set);
	space = H5Dget_space(set);
	capacity = (size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type);
	if (at + size > capacity)
		fail_msg("%s has %zu bytes", name, capacity);
	data = malloc(capacity);
	assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	memcpy(data + at, bytes, size);
	assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	free(data);
	H5Sclose(space);
	H5Tclose(type);
	H5Dclose(set);
	assert_true(H5Fclose(file) >= 0);
	seal_again(path);
}

/* Replace a dataset by one with another number of elements, copying the first ones. */
static inline void sealed_resize(const char *path, const char *name, int by)
{
	hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), set, type, space, list;
	hsize_t count;
	uint8_t *data;

	assert_true(file >= 0);
	set = H5Dopen2(file, name, H5P_DEFAULT);
	type = H5Dget_type(set);
	space = H5Dget_space(set);
	list = H5Dget_create_plist(set);
	count = (hsize_t)H5Sget_simple_extent_npoints(space);
	data = calloc(count + 8, H5Tget_size(type));
	assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	H5Dclose(set);
	H5Sclose(space);
	assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
	count += (hsize_t)by;
	space = H5Screate_simple(1, &count, NULL);
	set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
	assert_true(set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	free(data);
	H5Pclose(list);
	H5Sclose(space);
	H5Tclose(type);
	H5Dclose(set);
	assert_true(H5Fclose(file) >= 0);
	seal_again(path);
}

/* Change a numeric attribute of the file. */
static inline void sealed_number(const char *path, const char *name, uint64_t value)
{
	hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), attribute = H5Aopen(file, name, H5P_DEFAULT);

	assert_true(attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_UINT64, &value) >= 0);
	H5Aclose(attribute);
	assert_true(H5Fclose(file) >= 0);
	seal_again(path);
}

#endif
