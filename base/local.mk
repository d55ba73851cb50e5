# SPDX-License-Identifier: Apache-2.0
#
# base/: errors, dtypes, files; everything may use it.

noinst_LIBRARIES += base/libbase.a
base_libbase_a_SOURCES = \
	base/expression.c \
	base/expression.h \
	base/file.c \
	base/file.h \
	base/file_read.c \
	base/filesystem.c \
	base/filesystem.h \
	base/glob.c \
	base/glob.h \
	base/misspelt.c \
	base/misspelt.h \
	base/next_option.c \
	base/next_option.h \
	base/output.c \
	base/output.h \
	base/process.c \
	base/process.h \
	base/processors.c \
	base/processors.h \
	base/size.c \
	base/size.h \
	base/standard_files.c \
	base/standard_files.h \
	base/text.c \
	base/text.h

runtime_libruntime_la_SOURCES += \
	base/bytes.h \
	base/dtype.c \
	base/dtype.h \
	base/printable.c \
	base/printable.h \
	base/sha256.c \
	base/sha256.h \
	base/xfp_error.c

pkginclude_HEADERS += base/xfp_error.h
