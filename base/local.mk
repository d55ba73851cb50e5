# SPDX-License-Identifier: Apache-2.0
#
# base/: errors, dtypes, files; everything may use it.

noinst_LIBRARIES += base/libbase.a
base_libbase_a_SOURCES = \
	base/digest_avx2.c \
	base/digest_set.h \
	base/system/clock.c \
	base/system/clock.h \
	base/system/command_line.c \
	base/system/command_line.h \
	base/system/file.c \
	base/system/file.h \
	base/system/file_read.c \
	base/system/filesystem.c \
	base/system/filesystem.h \
	base/system/host.c \
	base/system/host.h \
	base/system/mapped.c \
	base/system/mapped.h \
	base/system/memory.h \
	base/system/new_folder.c \
	base/system/new_folder.h \
	base/system/next_option.c \
	base/system/next_option.h \
	base/system/output.c \
	base/system/output.h \
	base/system/process.c \
	base/system/process.h \
	base/system/processors.c \
	base/system/processors.h \
	base/system/read_through.c \
	base/system/read_through.h \
	base/system/signals.c \
	base/system/signals.h \
	base/system/path.c \
	base/system/path.h \
	base/system/standard_files.c \
	base/system/standard_files.h \
	base/system/temporary.c \
	base/system/temporary.h \
	base/text/expression.c \
	base/text/expression.h \
	base/text/glob.c \
	base/text/glob.h \
	base/text/screen.c \
	base/text/screen.h \
	base/text/shell.c \
	base/text/shell.h \
	base/text/size.c \
	base/text/size.h \
	base/text/suffix.h \
	base/text/suggestion.c \
	base/text/suggestion.h \
	base/text/table.c \
	base/text/table.h \
	base/text/text.c \
	base/text/text.h \
	base/text/utc.c \
	base/text/utc.h \
	base/text/whole_number.c \
	base/text/whole_number.h

runtime_libruntime_la_SOURCES += \
	base/bytes.h \
	base/dtype.c \
	base/dtype.h \
	base/printable.c \
	base/printable.h \
	base/sha256.c \
	base/sha256.h \
	base/sort.h \
	base/utf8.c \
	base/utf8.h \
	base/xfp_error.c

pkginclude_HEADERS += base/xfp_error.h
