# SPDX-License-Identifier: Apache-2.0
#
# checkpoints/: readers of source formats, one file per format.

noinst_LIBRARIES += checkpoints/libcheckpoints.a
checkpoints_libcheckpoints_a_SOURCES = \
	checkpoints/checkpoint.c \
	checkpoints/checkpoint.h \
	checkpoints/equal.c \
	checkpoints/equal.h \
	checkpoints/folder.c \
	checkpoints/folder.h \
	checkpoints/format.h \
	checkpoints/hub.c \
	checkpoints/hub.h \
	checkpoints/json_reader.c \
	checkpoints/json_reader.h \
	checkpoints/matrix.c \
	checkpoints/note.c \
	checkpoints/safetensors.c \
	checkpoints/safetensors_header.c \
	checkpoints/safetensors_header.h \
	checkpoints/safetensors_index.c \
	checkpoints/safetensors_index.h
