# SPDX-License-Identifier: Apache-2.0
#
# checkpoints/: readers of source formats, one file per format.

noinst_LIBRARIES += checkpoints/libcheckpoints.a
checkpoints_libcheckpoints_a_SOURCES = \
	checkpoints/checkpoint.c \
	checkpoints/checkpoint.h \
	checkpoints/config_json.c \
	checkpoints/config_json.h \
	checkpoints/elements.c \
	checkpoints/equal.c \
	checkpoints/equal.h \
	checkpoints/folder.c \
	checkpoints/folder.h \
	checkpoints/format.h \
	checkpoints/header.c \
	checkpoints/header.h \
	checkpoints/hub.c \
	checkpoints/hub.h \
	checkpoints/json_reader.c \
	checkpoints/json_reader.h \
	checkpoints/made.c \
	checkpoints/matrix.c \
	checkpoints/note.c \
	checkpoints/packed/awq.c \
	checkpoints/packed/awq_gemv.c \
	checkpoints/packed/codec.h \
	checkpoints/packed/compressed_sets.c \
	checkpoints/packed/compressed_sets.h \
	checkpoints/packed/decoder.c \
	checkpoints/packed/decoder.h \
	checkpoints/packed/e2m1.h \
	checkpoints/packed/exl2.c \
	checkpoints/packed/exl2.h \
	checkpoints/packed/elementary.h \
	checkpoints/packed/fold.c \
	checkpoints/packed/fold.h \
	checkpoints/packed/fold_awq.c \
	checkpoints/packed/fold_compressed.c \
	checkpoints/packed/fold_config.c \
	checkpoints/packed/fold_exl2.c \
	checkpoints/packed/fold_fp8.c \
	checkpoints/packed/fold_gptq.c \
	checkpoints/packed/fold_grouped.c \
	checkpoints/packed/fold_grouped.h \
	checkpoints/packed/fold_modelopt.c \
	checkpoints/packed/fold_mxfp4.c \
	checkpoints/packed/fp8.c \
	checkpoints/packed/fp8.h \
	checkpoints/packed/ggml.c \
	checkpoints/packed/ggml.h \
	checkpoints/packed/gguf.c \
	checkpoints/packed/gptq.c \
	checkpoints/packed/grouped.h \
	checkpoints/packed/int.c \
	checkpoints/packed/int.h \
	checkpoints/packed/mxfp4.c \
	checkpoints/packed/nibbles.h \
	checkpoints/packed/number.h \
	checkpoints/packed/nvfp4.c \
	checkpoints/packed/nvfp4.h \
	checkpoints/packed/plain.c \
	checkpoints/packed/reversed.c \
	checkpoints/packed/scaling.c \
	checkpoints/packed/scaling.h \
	checkpoints/packed/stream.h \
	checkpoints/packed_rows.c \
	checkpoints/packed_rows.h \
	checkpoints/pick.h \
	checkpoints/recipe/recipe.c \
	checkpoints/recipe/recipe.h \
	checkpoints/safetensors.c \
	checkpoints/safetensors_header.c \
	checkpoints/safetensors_header.h \
	checkpoints/safetensors_index.c \
	checkpoints/safetensors_index.h
