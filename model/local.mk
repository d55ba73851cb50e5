# SPDX-License-Identifier: Apache-2.0
#
# model/: the forward pass, the tokenizer, and what eval and generate do with both.

MODEL_LIBS = \
	model/evaluate/libevaluate.a model/generate/libgenerate.a \
	model/libmodel.a $(MODEL_SETS)
noinst_LIBRARIES += model/evaluate/libevaluate.a model/generate/libgenerate.a model/libmodel.a
model_evaluate_libevaluate_a_SOURCES = \
	model/evaluate/batching.c \
	model/evaluate/batching.h \
	model/evaluate/embeddings.c \
	model/evaluate/embeddings.h \
	model/evaluate/evaluate.c \
	model/evaluate/evaluate.h \
	model/evaluate/evaluation.c \
	model/evaluate/evaluation.h \
	model/evaluate/forecast.c \
	model/evaluate/forecast.h \
	model/evaluate/layers.c \
	model/evaluate/layers.h \
	model/evaluate/single.c \
	model/evaluate/single.h \
	model/evaluate/state.c \
	model/evaluate/state.h \
	model/evaluate/streams.c \
	model/evaluate/streams.h \
	model/evaluate/text.c \
	model/evaluate/text.h \
	model/evaluate/texts.c \
	model/evaluate/texts.h
model_generate_libgenerate_a_SOURCES = \
	model/generate/generate.c \
	model/generate/generate.h \
	model/generate/generation.h \
	model/generate/memory_bandwidth.c \
	model/generate/memory_bandwidth.h \
	model/generate/prompts.c \
	model/generate/prompts.h \
	model/generate/text.c \
	model/generate/text.h
# No function has arguments of vectors wider than the machine's (model/forward/lane_loops.h).
model_cflags = $(AM_CFLAGS) $(KERNEL_CFLAGS) -Wno-psabi
model_libmodel_a_CFLAGS = $(model_cflags)
model_libmodel_a_SOURCES = \
	model/forward/activation.c \
	model/forward/attention.c \
	model/forward/delta.c \
	model/forward/description.c \
	model/forward/description.h \
	model/forward/description_text.c \
	model/forward/description_text.h \
	model/forward/encoder.c \
	model/forward/encoder_read.c \
	model/forward/fields.c \
	model/forward/fields.h \
	model/forward/find_tensors.c \
	model/forward/forward.c \
	model/forward/forward.h \
	model/forward/kv_cache.c \
	model/forward/kv_cache.h \
	model/forward/lane_loops.h \
	model/forward/lane_set.h \
	model/forward/lanes_plain.c \
	model/forward/latent.c \
	model/forward/linear_map.c \
	model/forward/loss.c \
	model/forward/loss.h \
	model/forward/memory.c \
	model/forward/memory.h \
	model/forward/mlp.c \
	model/forward/model_family.c \
	model/forward/model_family.h \
	model/forward/numbers.c \
	model/forward/numbers.h \
	model/forward/parts.h \
	model/forward/product.c \
	model/forward/product.h \
	model/forward/rope.c \
	model/forward/rope.h \
	model/forward/rope_read.c \
	model/forward/rope_read.h \
	model/forward/router.c \
	model/forward/router.h \
	model/forward/step.c \
	model/forward/step.h \
	model/forward/tensors.c \
	model/forward/tensors.h \
	model/batching.c \
	model/batching.h \
	model/end_tokens.c \
	model/end_tokens.h \
	model/model.c \
	model/model.h \
	model/npy.c \
	model/npy.h \
	model/pooling.c \
	model/pooling.h \
	model/sample.c \
	model/sample.h \
	model/skipped.c \
	model/skipped.h \
	model/special_tokens.c \
	model/special_tokens.h \
	model/text.c \
	model/text.h \
	model/tokens.h \
	model/weights/bundle_places.c \
	model/weights/bundle_products.c \
	model/weights/bundle_source.h \
	model/weights/digests.c \
	model/weights/digests.h \
	model/weights/fast_product.c \
	model/weights/fast_product.h \
	model/weights/pages.h \
	model/weights/weights.c \
	model/weights/weights.h \
	model/weights/weights_bundle.c \
	model/weights/weights_checkpoint.c

# The same loops, compiled once per instruction set and selected at run time.
if X86
MODEL_SETS = model/libavx2.a model/libavx512.a
noinst_LIBRARIES += $(MODEL_SETS)
model_libavx2_a_SOURCES = model/forward/lanes_avx2.c
model_libavx2_a_CFLAGS = $(model_cflags) -mavx2 -mfma
model_libavx512_a_SOURCES = model/forward/lanes_avx512.c
model_libavx512_a_CFLAGS = $(model_cflags) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma
endif

noinst_LIBRARIES += model/libtokenizer.a
model_libtokenizer_a_SOURCES = \
	model/tokenizer/added.c \
	model/tokenizer/added.h \
	model/tokenizer/bert_content.c \
	model/tokenizer/bpe.c \
	model/tokenizer/bpe.h \
	model/tokenizer/bpe_tables.c \
	model/tokenizer/bpe_tables.h \
	model/tokenizer/content.c \
	model/tokenizer/content.h \
	model/tokenizer/decoder.c \
	model/tokenizer/decoder.h \
	model/tokenizer/decoder_chain.c \
	model/tokenizer/decoder_chain.h \
	model/tokenizer/defects.c \
	model/tokenizer/defects.h \
	model/tokenizer/expression.c \
	model/tokenizer/expression.h \
	model/tokenizer/files.c \
	model/tokenizer/files.h \
	model/tokenizer/matcher.c \
	model/tokenizer/member.c \
	model/tokenizer/member.h \
	model/tokenizer/normalizer.c \
	model/tokenizer/normalizer.h \
	model/tokenizer/pattern.c \
	model/tokenizer/pattern.h \
	model/tokenizer/program.c \
	model/tokenizer/program.h \
	model/tokenizer/repetition.c \
	model/tokenizer/splitter.c \
	model/tokenizer/splitter.h \
	model/tokenizer/template.c \
	model/tokenizer/template.h \
	model/tokenizer/tiktoken_content.c \
	model/tokenizer/token_ids.h \
	model/tokenizer/tokenizer.c \
	model/tokenizer/tokenizer.h \
	model/tokenizer/vocabulary.c \
	model/tokenizer/vocabulary.h \
	model/tokenizer/wordpiece.c \
	model/tokenizer/wordpiece.h \
	model/tokenizer/unicode/bytes_alphabet.h \
	model/tokenizer/unicode/category_table.h \
	model/tokenizer/unicode/characters.c \
	model/tokenizer/unicode/characters.h \
	model/tokenizer/unicode/compatible_table.h \
	model/tokenizer/unicode/compatible_text.h \
	model/tokenizer/unicode/fold_table.h \
	model/tokenizer/unicode/growable.c \
	model/tokenizer/unicode/growable.h \
	model/tokenizer/unicode/lower_table.h \
	model/tokenizer/unicode/normal_form.c \
	model/tokenizer/unicode/normal_table.h \
	model/tokenizer/unicode/property_table.h \
	model/tokenizer/unicode/script_table.h \
	model/tokenizer/unicode/stable_table.h \
	model/tokenizer/unicode/unicode.c \
	model/tokenizer/unicode/unicode.h

# Writes the committed Unicode tables, with the Python package `tokenizers`.
EXTRA_DIST += model/tokenizer/unicode/make-tables.py
