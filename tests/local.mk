# SPDX-License-Identifier: Apache-2.0
#
# tests/: unit tests (cmocka), tests of the installed tools (bats) and of the tree itself. All print TAP,
# through run-tap.

# A program consists of one source, linked with all libraries, unless listed otherwise.
if CHECK
fixtures = tests/unit/libfixtures.a
endif
LDADD = $(fixtures) $(MODEL_TOOL_LIBS) $(CMOCKA_LIBS)

# quickstart runs the generator of checkpoints. The others are built by make check and make bench.
if CONVERTER
noinst_PROGRAMS += tests/make-checkpoint
check_PROGRAMS += \
	tests/bench/bench \
	tests/feedback \
	tests/inputs \
	tests/kernel-verify-broken \
	tests/make-compact-seeds \
	tests/read-inputs \
	tests/tokenize
check_DATA += $(bench_links)
endif
tests_make_checkpoint_LDADD = -lm
# The verifier with broken kernels, which it must detect.
tests_kernel_verify_broken_SOURCES = $(kernel_verify_sources) tests/kernel-verify-broken.c
tests_kernel_verify_broken_LDADD = $(kernel_verify_libs)
# Tokenizes from the command line, for tests/tokenizer_families.py --compare.
tests_tokenize_LDADD = $(TOKENIZER_LIBS)

# Several programs linked as one: each is a link to it, whose name selects the program (tests/program.h).
$(bench_links) $(unit_links):
	$(AM_V_at)program=$<; ln -sf "../$${program#tests/}" $@
CLEANFILES += $(bench_links) $(unit_links)

# Benchmarks: `make bench`, not part of `make check` (tests/cli/bench.bats runs them on tiny inputs).
bench_links = \
	tests/bench/decode \
	tests/bench/feedback \
	tests/bench/int4 \
	tests/bench/llama \
	tests/bench/make-weights \
	tests/bench/opening \
	tests/bench/products
$(bench_links): tests/bench/bench
tests_bench_bench_SOURCES = \
	kernel-verify/ceiling.c \
	kernel-verify/kernel_verify.h \
	tests/bench/bench.c \
	tests/bench/bench.h \
	tests/bench/decode.c \
	tests/bench/feedback.c \
	tests/bench/int4.c \
	tests/bench/llama.c \
	tests/bench/make-weights.c \
	tests/bench/opening.c \
	tests/bench/products.c \
	tests/generated-weights.h \
	tests/program.c \
	tests/program.h \
	tests/unit/bundle_image.c \
	tests/unit/bundle_image.h \
	tests/unit/many_members.c \
	tests/unit/many_members.h
tests_bench_bench_LDADD = $(MODEL_TOOL_LIBS)

# The fuzzer of the bundle reader: `make fuzz`, which needs clang; test_recipes does not.
EXTRA_DIST += \
	tests/fuzz/corpus.hex \
	tests/fuzz/fuzz_bundle.c \
	tests/fuzz/fuzz_folds.c \
	tests/fuzz/fuzz_ggufs.c \
	tests/fuzz/fuzz_surveys.c \
	tests/fuzz/fuzz_tokenizers.c \
	tests/fuzz/fuzz_torch.c \
	tests/fuzz/run \
	tests/fuzz/run-readers \
	tests/fuzz/run-tokenizers

# Faults: make faults. Static stages are linked with the failing allocator, which the other tools preload.
EXTRA_DIST += \
	tests/faults/allocations.py \
	tests/faults/commands.py \
	tests/faults/common.py \
	tests/faults/damage.py \
	tests/faults/moved.py \
	tests/faults/run \
	tests/faults/scene.py \
	tests/faults/sources.py \
	tests/faults/surveys.py \
	tests/faults/survivors.py \
	tests/faults/syscalls.py \
	tests/faults/together.py
fault_tests = tests/faults/sample
fault_programs = \
	tests/faults/xfp-autoselect \
	tests/faults/xfp-libfit \
	tests/faults/xfp-lloyd-fit \
	tests/faults/xfp-outlier-extract \
	tests/faults/xfp-pack \
	tests/faults/xfp-survey
fault_ldflags = $(unit_ldflags) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=strdup
tests_faults_xfp_autoselect_SOURCES = $(xfp_autoselect_SOURCES) tests/faults/fail_allocation.c
tests_faults_xfp_autoselect_LDFLAGS = $(fault_ldflags)
tests_faults_xfp_autoselect_LDADD = $(unit_libs)
tests_faults_xfp_libfit_SOURCES = $(xfp_libfit_SOURCES) tests/faults/fail_allocation.c
tests_faults_xfp_libfit_LDFLAGS = $(fault_ldflags)
tests_faults_xfp_libfit_LDADD = $(unit_libs)
tests_faults_xfp_lloyd_fit_SOURCES = $(xfp_lloyd_fit_SOURCES) tests/faults/fail_allocation.c
tests_faults_xfp_lloyd_fit_LDFLAGS = $(fault_ldflags)
tests_faults_xfp_lloyd_fit_LDADD = $(unit_libs)
tests_faults_xfp_outlier_extract_SOURCES = $(xfp_outlier_extract_SOURCES) tests/faults/fail_allocation.c
tests_faults_xfp_outlier_extract_LDFLAGS = $(fault_ldflags)
tests_faults_xfp_outlier_extract_LDADD = $(unit_libs)
tests_faults_xfp_pack_SOURCES = $(xfp_pack_SOURCES) tests/faults/fail_allocation.c
tests_faults_xfp_pack_LDFLAGS = $(fault_ldflags)
tests_faults_xfp_pack_LDADD = $(unit_libs)
tests_faults_xfp_survey_SOURCES = $(xfp_survey_SOURCES) tests/faults/fail_allocation.c
tests_faults_xfp_survey_LDFLAGS = $(fault_ldflags)
tests_faults_xfp_survey_LDADD = $(unit_libs)

tests/faults/fail_allocation.so: tests/faults/fail_allocation.c
	$(AM_V_at)$(MKDIR_P) tests/faults
	$(AM_V_CCLD)$(CC) $(DEFS) $(CPPFLAGS) $(XFP_CFLAGS) $(CFLAGS) -DPRELOADED -shared -fPIC -o $@ \
		$(srcdir)/tests/faults/fail_allocation.c
CLEANFILES += tests/faults/fail_allocation.so

tests/full_disk.so: tests/full_disk.c
	$(AM_V_at)$(MKDIR_P) tests
	$(AM_V_CCLD)$(CC) $(DEFS) $(CPPFLAGS) $(XFP_CFLAGS) $(CFLAGS) -shared -fPIC -o $@ $(srcdir)/tests/full_disk.c -ldl
EXTRA_DIST += tests/full_disk.c
CLEANFILES += tests/full_disk.so

# CUDA without a device: an emulator of PTX, and a stand-in for the driver that runs kernels in it.
EXTRA_DIST += \
	tests/cuda/driver.h \
	tests/cuda/driver_calls.h \
	tests/cuda/machine.h \
	tests/cuda/opcode_arithmetic.py \
	tests/cuda/opcode_common.py \
	tests/cuda/opcode_faults.py \
	tests/cuda/opcode_machine.py \
	tests/cuda/opcode_matrix.py \
	tests/cuda/opcode_warps.py \
	tests/cuda/ptx/__init__.py \
	tests/cuda/ptx/atomics.py \
	tests/cuda/ptx/batch.py \
	tests/cuda/ptx/bits.py \
	tests/cuda/ptx/convert.py \
	tests/cuda/ptx/copies.py \
	tests/cuda/ptx/decode.py \
	tests/cuda/ptx/fault.py \
	tests/cuda/ptx/floats.py \
	tests/cuda/ptx/heap.py \
	tests/cuda/ptx/integers.py \
	tests/cuda/ptx/matrix.py \
	tests/cuda/ptx/memory.py \
	tests/cuda/ptx/move.py \
	tests/cuda/ptx/order.py \
	tests/cuda/ptx/parse.py \
	tests/cuda/ptx/run.py \
	tests/cuda/ptx/stepper.py \
	tests/cuda/ptx/tracker.py \
	tests/cuda/ptx/types.py \
	tests/cuda/ptx/warp.py \
	tests/cuda/ptx_server.py \
	tests/cuda/reference.py \
	tests/cuda/scene.h \
	tests/cuda/snippets.py \
	tests/cuda/test_opcodes.py \
	tests/cuda/twice.ptx
cuda_tests = tests/cuda/opcodes
kernel_tests = \
	tests/cuda/kernels \
	tests/cuda/mutants \
	tests/cuda/executed \
	tests/cuda/resources \
	tests/cuda/sass
stand_in_driver = \
	tests/cuda/driver.c \
	tests/cuda/driver_launch.c \
	tests/cuda/driver_memory.c \
	tests/cuda/driver_queue.c
EXTRA_DIST += $(stand_in_driver)

tests/cuda/libcuda.so.1: $(stand_in_driver) tests/cuda/driver.h tests/cuda/driver_calls.h
	$(AM_V_at)$(MKDIR_P) tests/cuda
	$(AM_V_CCLD)cd $(srcdir) && $(CC) $(DEFS) -I. $(CPPFLAGS) $(XFP_CFLAGS) $(CFLAGS) -shared -fPIC \
		-Wl,-soname,libcuda.so.1 -o '$(abs_builddir)'/$@ $(stand_in_driver)
CLEANFILES += tests/cuda/libcuda.so.1

# Unit tests, tests/unit/test_AREA, are linked as one program per folder. Add a new test to the list that suits it.
tests_units_base_SOURCES = \
	tests/unit/test_command_line.c \
	tests/unit/test_file.c \
	tests/unit/test_glob.c \
	tests/unit/test_suggestion.c \
	tests/unit/test_number.c \
	tests/unit/test_path.c \
	tests/unit/test_read_through.c \
	tests/unit/test_sha256.c \
	tests/unit/test_size.c \
	tests/unit/test_table.c \
	tests/unit/test_tar.c
tests_units_schemas_SOURCES = \
	tests/unit/test_artifact.c \
	tests/unit/test_artifact_damage.c \
	tests/unit/test_artifact_lies.c \
	tests/unit/test_index.c \
	tests/unit/test_inputs.c \
	tests/unit/test_json_print.c \
	tests/unit/test_ledger.c \
	tests/unit/test_ledger_lies.c \
	tests/unit/test_parameters.c \
	tests/unit/test_policy.c \
	tests/unit/test_rows.c \
	tests/unit/test_units.c
tests_units_checkpoints_SOURCES = \
	tests/unit/test_crcs.c \
	tests/unit/test_gguf.c \
	tests/unit/test_gguf_tokenizer.c \
	tests/unit/test_json.c \
	tests/unit/test_matrix.c \
	tests/unit/test_meta.c \
	tests/unit/test_pickle.c \
	tests/unit/test_safetensors.c \
	tests/unit/test_sharded.c \
	tests/unit/test_strided.c \
	tests/unit/test_zip.c
tests_units_packed_SOURCES = \
	tests/unit/test_codecs.c \
	tests/unit/test_fold_config.c \
	tests/unit/test_fold_shapes.c \
	tests/unit/test_ggml.c \
	tests/unit/test_grouped.c \
	tests/unit/test_packed.c \
	tests/unit/test_packed_ints.c
tests_units_kernels_SOURCES = \
	tests/unit/test_assign.c \
	tests/unit/test_compact.c \
	tests/unit/test_decode.c \
	tests/unit/test_edges.c \
	tests/unit/test_encode.c \
	tests/unit/test_experts.c \
	tests/unit/test_feedback.c \
	tests/unit/test_linears.c \
	tests/unit/test_lloyd.c \
	tests/unit/test_matvec.c \
	tests/unit/test_moments.c \
	tests/unit/test_multiply.c \
	tests/unit/test_narrow.c \
	tests/unit/test_optimal.c \
	tests/unit/test_peer_floats.c \
	tests/unit/test_peers.c \
	tests/unit/test_scale.c \
	tests/unit/test_scaled.c
tests_units_runtime_SOURCES = \
	tests/unit/test_bundle_hostile.c \
	tests/unit/test_bundle_open.c \
	tests/unit/test_bundle_parts.c \
	tests/unit/test_cuda_image.c \
	tests/unit/test_cuda_plan.c
tests_units_stages_SOURCES = \
	tests/unit/test_target.c \
	tests/unit/test_classify.c \
	tests/unit/test_decide.c \
	tests/unit/test_family.c \
	tests/unit/test_hosts.c \
	tests/unit/test_moving.c \
	tests/unit/test_output_scale.c \
	tests/unit/test_stage_progress.c \
	tests/unit/test_select.c \
	tests/unit/test_settings.c \
	tests/unit/test_solve.c \
	tests/unit/test_stages.c \
	tests/unit/test_survey.c \
	tests/unit/test_tiles.c \
	tests/unit/test_verified.c \
	tests/unit/test_windows.c
tests_units_cache_SOURCES = \
	tests/unit/test_key.c \
	tests/unit/test_leaks.c \
	tests/unit/test_lock.c \
	tests/unit/test_manifest.c \
	tests/unit/test_manifest_open.c \
	tests/unit/test_rebuild.c \
	tests/unit/test_store.c
tests_units_commands_SOURCES = \
	tests/unit/test_batches.c \
	tests/unit/test_curve.c \
	tests/unit/test_footprint.c \
	tests/unit/test_goal.c \
	tests/unit/test_launch_waits.c \
	tests/unit/test_low_floors.c \
	tests/unit/test_pace.c \
	tests/unit/test_plan_nodes.c \
	tests/unit/test_plan_time.c \
	tests/unit/test_prepare.c \
	tests/unit/test_record.c \
	tests/unit/test_report.c \
	tests/unit/test_resume.c \
	tests/unit/test_rounds.c \
	tests/unit/test_allocation.c \
	tests/unit/test_sources.c \
	tests/unit/test_unpack.c \
	tests/unit/test_walk_points.c \
	tests/unit/test_composition.c
tests_units_model_SOURCES = \
	tests/unit/test_config_keys.c \
	tests/unit/test_description.c \
	tests/unit/test_encoder.c \
	tests/unit/test_forward.c \
	tests/unit/test_npy.c \
	tests/unit/test_numbers.c \
	tests/unit/test_sample.c \
	tests/unit/test_tokenizer_edges.c
# Programs that tokenize text are linked with little else.
tests_units_tokenizer_SOURCES = \
	tests/fuzz/test_tokenizers.c \
	tests/unit/test_defects.c \
	tests/unit/test_tokenizer.c \
	tests/unit/test_tokenizer_files.c \
	tests/unit/test_tokenizer_memory.c \
	tests/unit/test_tokenizer_unicode.c
tests_units_tokenizer_LDADD = $(fixtures) $(TOKENIZER_LIBS) $(CMOCKA_LIBS)
tests_units_tokenizer_LDFLAGS = \
	$(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=free
tests_units_fuzz_SOURCES = \
	tests/fuzz/test_folds.c \
	tests/fuzz/test_ggufs.c \
	tests/fuzz/test_recipes.c \
	tests/fuzz/test_surveys.c \
	tests/fuzz/test_torch.c
# Functions replaced by the linker's --wrap behave as usual unless a test changes that.
tests_units_wrapped_SOURCES = \
	tests/unit/test_bundle.c \
	tests/unit/test_bundle_stamp.c \
	tests/unit/test_bundle_tools.c \
	tests/unit/test_checkpoint_parts.c \
	tests/unit/test_filesystem.c \
	tests/unit/test_gc.c \
	tests/unit/test_manifest_race.c \
	tests/unit/test_steps.c \
	tests/unit/test_text.c \
	tests/unit/test_walk.c
tests_units_wrapped_LDFLAGS = \
	$(AM_LDFLAGS) -Wl,--wrap=flock,--wrap=lstat,--wrap=malloc,--wrap=readdir,--wrap=realloc,--wrap=statfs,--wrap=unlink \
	-Wl,--wrap=xfp_algorithm_decides,--wrap=xfp_artifact_get_label,--wrap=xfp_artifact_open \
	-Wl,--wrap=xfp_bundle_check_member,--wrap=xfp_pending_open
# The same, with two functions that are replaced above, too.
tests_units_refused_SOURCES = \
	tests/unit/test_digests.c \
	tests/unit/test_no_memory.c \
	tests/unit/test_publish.c
tests_units_refused_LDFLAGS = \
	$(AM_LDFLAGS) -Wl,--wrap=aligned_alloc,--wrap=calloc,--wrap=malloc,--wrap=xfp_bundle_check_member \
	-Wl,--wrap=fstat,--wrap=fsync,--wrap=close,--wrap=rename,--wrap=pread,--wrap=pwrite,--wrap=read,--wrap=write
# Functions replaced by empty ones.
tests_units_replaced_SOURCES = \
	tests/unit/test_disk_space.c \
	tests/unit/test_dropping.c
tests_units_replaced_LDFLAGS = \
	$(AM_LDFLAGS) -Wl,--wrap=xfp_free_bytes,--wrap=xfp_prepare_unit,--wrap=xfp_receipt_make \
	-Wl,--wrap=xfp_lock_try_upgrade,--wrap=xfp_lock_downgrade,--wrap=xfp_manifest_version \
	-Wl,--wrap=xfp_manifest_output_keys,--wrap=xfp_store_drop_one \
	-Wl,--wrap=xfp_lock_exclusive,--wrap=xfp_manifest_has_unfinished,--wrap=xfp_store_has
unit_programs = \
	tests/units/base \
	tests/units/schemas \
	tests/units/checkpoints \
	tests/units/packed \
	tests/units/kernels \
	tests/units/runtime \
	tests/units/stages \
	tests/units/cache \
	tests/units/commands \
	tests/units/model \
	tests/units/tokenizer \
	tests/units/fuzz \
	tests/units/wrapped \
	tests/units/refused \
	tests/units/replaced
unit_links = \
	$(tests_units_base_SOURCES:.c=) \
	$(tests_units_schemas_SOURCES:.c=) \
	$(tests_units_checkpoints_SOURCES:.c=) \
	$(tests_units_packed_SOURCES:.c=) \
	$(tests_units_kernels_SOURCES:.c=) \
	$(tests_units_runtime_SOURCES:.c=) \
	$(tests_units_stages_SOURCES:.c=) \
	$(tests_units_cache_SOURCES:.c=) \
	$(tests_units_commands_SOURCES:.c=) \
	$(tests_units_model_SOURCES:.c=) \
	$(tests_units_tokenizer_SOURCES:.c=) \
	$(tests_units_fuzz_SOURCES:.c=) \
	$(tests_units_wrapped_SOURCES:.c=) \
	$(tests_units_refused_SOURCES:.c=) \
	$(tests_units_replaced_SOURCES:.c=)
$(tests_units_base_SOURCES:.c=): tests/units/base
$(tests_units_schemas_SOURCES:.c=): tests/units/schemas
$(tests_units_checkpoints_SOURCES:.c=): tests/units/checkpoints
$(tests_units_packed_SOURCES:.c=): tests/units/packed
$(tests_units_kernels_SOURCES:.c=): tests/units/kernels
$(tests_units_runtime_SOURCES:.c=): tests/units/runtime
$(tests_units_stages_SOURCES:.c=): tests/units/stages
$(tests_units_cache_SOURCES:.c=): tests/units/cache
$(tests_units_commands_SOURCES:.c=): tests/units/commands
$(tests_units_model_SOURCES:.c=): tests/units/model
$(tests_units_tokenizer_SOURCES:.c=): tests/units/tokenizer
$(tests_units_fuzz_SOURCES:.c=): tests/units/fuzz
$(tests_units_wrapped_SOURCES:.c=): tests/units/wrapped
$(tests_units_refused_SOURCES:.c=): tests/units/refused
$(tests_units_replaced_SOURCES:.c=): tests/units/replaced
unit_tests = tests/cuda/test_driver $(unit_links)
# libxfp-cuda, on that machine.
device_tests = \
	tests/cuda/test_multiply \
	tests/cuda/test_open \
	tests/cuda/test_upload \
	tests/cuda/test_parts
device_ldadd = $(fixtures) runtime/libxfp-cuda.la runtime/libxfp.la $(MODEL_TOOL_LIBS) $(CMOCKA_LIBS)
tests_cuda_test_multiply_LDADD = $(device_ldadd)
tests_cuda_test_open_LDADD = $(device_ldadd)
tests_cuda_test_upload_LDADD = $(device_ldadd)
tests_cuda_test_parts_LDADD = $(device_ldadd)
EXTRA_DIST += \
	tests/cuda/executed.py \
	tests/cuda/executed.txt \
	tests/cuda/image.py \
	tests/cuda/kernels.py \
	tests/cuda/mutants.py \
	tests/cuda/resources.py \
	tests/cuda/sass.py
# With a GPU, on a machine with few packages.
EXTRA_DIST += \
	tests/cuda/bare_build.py \
	tests/cuda/nvrtc.py \
	tests/cuda/on_device.py \
	tests/cuda/on_device_builds.py \
	tests/cuda/on_device_clocks.py \
	tests/cuda/on_device_machine.py \
	tests/cuda/on_device_report.py \
	tests/cuda/on_device_run.py \
	tests/cuda/on_device_steps.py \
	tests/cuda/on_device_table.py \
	tests/cuda/on_device_torch.py \
	tests/on-device
# The longest tests first: make starts tests in this order, and a long one that began last would leave the other
# processors idle at the end.
long_cli_tests = \
	tests/cli/models.bats \
	tests/cli/models_table.bats \
	tests/cli/goal-calibrated.bats \
	tests/cli/goal.bats \
	tests/cli/pytorch.bats \
	tests/cli/families_published.bats \
	tests/cli/kernel-cost.bats \
	tests/cli/kernel-verify.bats \
	tests/cli/gguf.bats \
	tests/cli/packed_compressed.bats \
	tests/cli/packed.bats \
	tests/cli/packed_changes.bats \
	tests/cli/packed_grouped.bats \
	tests/cli/resume.bats \
	tests/cli/survey.bats \
	tests/cli/surveys.bats \
	tests/cli/paths.bats \
	tests/cli/plan.bats \
	tests/cli/policy.bats \
	tests/cli/processors.bats \
	tests/cli/device.bats \
	tests/cli/moved.bats \
	tests/cli/families.bats \
	tests/cli/on-device.bats
cli_tests = \
	tests/cli/bad-input.bats \
	tests/cli/bare-build.bats \
	tests/cli/bench.bats \
	tests/cli/bundle.bats \
	tests/cli/cache.bats \
	tests/cli/calibrate.bats \
	tests/cli/calibrate_encoder.bats \
	tests/cli/calibrated-floors.bats \
	tests/cli/calibration.bats \
	tests/cli/compact.bats \
	tests/cli/compare.bats \
	tests/cli/completion.bats \
	tests/cli/convert-calibrated.bats \
	tests/cli/convert.bats \
	tests/cli/crc.bats \
	tests/cli/cuda.bats \
	tests/cli/cut-off.bats \
	tests/cli/digests.bats \
	tests/cli/drop.bats \
	tests/cli/eval.bats \
	tests/cli/eval_encoder.bats \
	tests/cli/eval_experts.bats \
	tests/cli/eval_hybrid.bats \
	tests/cli/eval_single.bats \
	tests/cli/feedback.bats \
	tests/cli/fp8.bats \
	tests/cli/generate.bats \
	tests/cli/golden.bats \
	tests/cli/help.bats \
	tests/cli/hosts.bats \
	tests/cli/input.bats \
	tests/cli/inspect-lists.bats \
	tests/cli/inspect-stats.bats \
	tests/cli/inspect.bats \
	tests/cli/io-errors.bats \
	tests/cli/launcher.bats \
	tests/cli/library.bats \
	tests/cli/manifest.bats \
	tests/cli/modes.bats \
	tests/cli/names.bats \
	tests/cli/no-memory.bats \
	tests/cli/older.bats \
	tests/cli/oracle.bats \
	tests/cli/output.bats \
	tests/cli/packed_bad.bats \
	tests/cli/packed_exl2.bats \
	tests/cli/printed.bats \
	tests/cli/python.bats \
	tests/cli/refused.bats \
	tests/cli/regenerate.bats \
	tests/cli/report.bats \
	tests/cli/reproducible.bats \
	tests/cli/scripts.bats \
	tests/cli/setup.bats \
	tests/cli/sources.bats \
	tests/cli/stages.bats \
	tests/cli/status.bats \
	tests/cli/terminal.bats \
	tests/cli/trust.bats \
	tests/cli/unchanged.bats \
	tests/cli/upkeep.bats \
	tests/cli/walk.bats \
	tests/cli/walk_probe.bats \
	tests/cli/verified.bats \
	tests/cli/waiting.bats
# Waits most of the time; skipped without Slurm.
cluster_tests = \
	tests/slurm/slurm.bats
tree_tests = \
	tests/check-lists \
	tests/check-style

EXTRA_DIST += \
	tests/bench/cluster.py \
	tests/bench/common.py \
	tests/bench/feedback.py \
	tests/bench/generate.py \
	tests/bench/gguf_write.py \
	tests/bench/llama.py \
	tests/bench/llama_text.c \
	tests/bench/calibrated-moe.py \
	tests/bench/make-moe.py \
	tests/bench/memory.py \
	tests/bench/modes.py \
	tests/bench/opening.py \
	tests/bench/overhead.py \
	tests/bench/packed.py \
	tests/bench/plan.py \
	tests/bench/plot.py \
	tests/bench/python_text.py \
	tests/bench/results/scale.csv \
	tests/bench/results/scale.svg \
	tests/bench/resume.py \
	tests/bench/run \
	tests/bench/scale.py \
	tests/bench/speed.py \
	tests/bench/torch_call.py \
	tests/check_products.py \
	tests/cli/helpers.bash \
	tests/cli/packed.bash \
	tests/emulated \
	tests/emulated-tools \
	tests/example.c \
	tests/example.cc \
	tests/families.py \
	tests/families_judge.py \
	tests/families_published.py \
	tests/calibrated_fit.py \
	tests/feedback_reference.py \
	tests/golden.sha256 \
	tests/hostile_text.py \
	tests/kernel-cost.csv \
	tests/kernel_cost.py \
	tests/kernels.sha256 \
	tests/make-bad-checkpoint.py \
	tests/make-gguf.py \
	tests/inputs_file.py \
	tests/inspect_stats.py \
	tests/make-packed-checkpoint.py \
	tests/make-pytorch-checkpoint.py \
	tests/packed_grouped.py \
	tests/make-sparse-checkpoint.py \
	tests/make-tokenizer.py \
	tests/measure-peak \
	tests/models/bert.py \
	tests/models/calibrated.py \
	tests/models/check_families.py \
	tests/models/check_greedy.py \
	tests/models/check_python.py \
	tests/models/check_transformers.py \
	tests/models/config_keys.py \
	tests/models/families.json \
	tests/models/families_table.py \
	tests/models/floors.py \
	tests/models/ggml.py \
	tests/models/gguf_io.py \
	tests/models/encoder_expected.py \
	tests/models/forward_expected.py \
	tests/models/layer_inputs.py \
	tests/models/longrope.py \
	tests/models/named_weights.py \
	tests/models/goals.py \
	tests/models/judge.py \
	tests/models/loss_plot.py \
	tests/models/measure.py \
	tests/models/presets.py \
	tests/models/published.py \
	tests/models/qwen3_moe.py \
	tests/models/results/all-MiniLM-L6-v2.svg \
	tests/models/results/config-keys.md \
	tests/models/results/families.json \
	tests/models/results/qwen3-moe-8m.svg \
	tests/models/results/qwen3-moe-8m-calibrated.svg \
	tests/models/results/qwen3-moe-8m-floors.svg \
	tests/models/safetensors_io.py \
	tests/models/sentences.txt \
	tests/models/table.py \
	tests/models/wordpiece.py \
	tests/older/bert.xfp.gz \
	tests/older/moe.xfp.gz \
	tests/older/tied.xfp.gz \
	tests/older/untied.xfp.gz \
	tests/oracle_cosine.py \
	tests/oracle_fit.py \
	tests/packages \
	tests/packed_compressed.py \
	tests/packed_exl2.py \
	tests/packed_numbers.py \
	tests/python/arrays.py \
	tests/python/bundles.py \
	tests/python/common.py \
	tests/python/devices.py \
	tests/python/folders.py \
	tests/python/layouts.py \
	tests/python/libraries.py \
	tests/python/make-bundles \
	tests/python/models.py \
	tests/python/operators.py \
	tests/python/products.py \
	tests/python/serving.py \
	tests/python/stand_in.py \
	tests/python/threads.py \
	tests/python/torch_devices.py \
	tests/read_bundle.py \
	tests/rooms.py \
	tests/run-tap \
	tests/seal.py \
	tests/slurm/cluster \
	tests/check_page.py \
	tests/svg_boxes.py \
	tests/tokenizer_families.json \
	tests/tokenizer_families.py \
	tests/tokenizer_unicode.json \
	tests/tokenizer_unicode.py \
	tests/totals \
	tests/sample_bits.py \
	tests/walk_point.py
# Helpers shared by several tests, and by the fuzzers.
tests_unit_libfixtures_a_SOURCES = \
	tests/program.c \
	tests/program.h \
	tests/fuzz/blocks.c \
	tests/fuzz/blocks.h \
	tests/fuzz/contents.c \
	tests/fuzz/folds.c \
	tests/fuzz/folds.h \
	tests/fuzz/ggufs.c \
	tests/fuzz/ggufs.h \
	tests/fuzz/lay_out.c \
	tests/fuzz/multiply.c \
	tests/fuzz/mutate.c \
	tests/fuzz/names.c \
	tests/fuzz/patch.c \
	tests/fuzz/read_back.c \
	tests/fuzz/read_back.h \
	tests/fuzz/recipe.c \
	tests/fuzz/recipe.h \
	tests/fuzz/seeds.c \
	tests/fuzz/surveys.c \
	tests/fuzz/surveys.h \
	tests/fuzz/tokenizers.c \
	tests/fuzz/tokenizers.h \
	tests/fuzz/tokens.c \
	tests/fuzz/tokens.h \
	tests/fuzz/torch.c \
	tests/fuzz/torch.h \
	tests/fuzz/walk.c \
	tests/fuzz/walk.h \
	tests/unit/artifact_fixture.h \
	tests/unit/bundle_fixture.c \
	tests/unit/bundle_fixture.h \
	tests/unit/bundle_fixture_io.c \
	tests/unit/bundle_fixture_parts.c \
	tests/unit/bundle_fixture_parts.h \
	tests/unit/bundle_image.c \
	tests/unit/bundle_image.h \
	tests/unit/cache_fixture.h \
	tests/unit/round_floors.h \
	tests/unit/lane_bits.h \
	tests/unit/many_members.c \
	tests/unit/many_members.h \
	tests/unit/config_keys.json \
	tests/unit/encoder_expected.h \
	tests/unit/forward_expected.h \
	tests/unit/model.h \
	tests/unit/named_shapes.h \
	tests/unit/peers.h \
	tests/unit/scratch.h \
	tests/unit/survey_fixture.h \
	tests/unit/tiny_model.h \
	tests/unit/tokenizer_families.h \
	tests/unit/watching.h \
	tests/unit/sealed_lie.h \
	tests/unit/unit.h \
	tests/unit/vectors.h

EXTRA_DIST += tests/cuda/not-built $(long_cli_tests) $(cli_tests) $(cluster_tests) $(cuda_tests) $(kernel_tests) \
	$(fault_tests) $(tree_tests)

if CHECK
check_PROGRAMS += $(unit_programs) tests/cuda/test_driver $(fault_programs)
# The longest begin first, here as in the lists.
TESTS += $(fault_tests)
if CUDA
check_PROGRAMS += $(device_tests)
TESTS += $(kernel_tests)
TESTS += $(device_tests)
check_DATA += $(cuda_ptx) kernel-verify/cuda/measure.ptx90
# tests/cuda/kernels counts the executed instructions.
counting = tests/cuda/kernels
comparing = tests/cuda/executed
counting_log = $(counting).log
comparing_log = $(comparing).log
$(counting_log): $(counting).py $(cuda_ptx)
$(comparing_log): $(counting_log)
CLEANFILES += $(counting).json
else
TESTS += tests/cuda/not-built
endif
check_LIBRARIES = tests/unit/libfixtures.a
TESTS += $(cuda_tests) $(cluster_tests) $(long_cli_tests) $(tree_tests) $(unit_tests) $(cli_tests)
endif

TEST_EXTENSIONS = .bats
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
BATS_LOG_DRIVER = $(LOG_DRIVER)
LOG_COMPILER = $(srcdir)/tests/run-tap
BATS_LOG_COMPILER = $(LOG_COMPILER)

# Tests use an installation in the build folder, and do not inherit variables of the make that runs them.
#   XFP_TEST_ROOT    the DESTDIR; XFP_TEST_BIN, _LIB and _MAN are folders below it
#   XFP_TEST_TOOLS   the folder of the generators of input
#   srcdir           this source tree, absolute
# Several run at the same time, so numpy's threads would only compete. LLVM's OpenMP registers each process in /dev/shm by
# its id; if one is killed between creating and filling its file, a later process with that id aborts.
AM_TESTS_ENVIRONMENT = \
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES DESTDIR; \
	unset XFP_CACHE XFP_FAMILIES XFP_GROUP_SIZE XFP_MIN_COS_LAZY XFP_MIN_COS_STRICT XFP_MOE_LLOYD_ITERS; \
	XFP_TEST_ROOT='$(abs_builddir)/tests/root'; export XFP_TEST_ROOT; \
	XFP_TEST_BIN="$$XFP_TEST_ROOT$(bindir)"; export XFP_TEST_BIN; \
	XFP_TEST_LIB="$$XFP_TEST_ROOT$(libdir)"; export XFP_TEST_LIB; \
	XFP_TEST_MAN="$$XFP_TEST_ROOT$(mandir)"; export XFP_TEST_MAN; \
	XFP_TEST_TOOLS='$(abs_builddir)/tests'; export XFP_TEST_TOOLS; \
	XFP_DATADIR="$$XFP_TEST_ROOT$(pkgdatadir)"; export XFP_DATADIR; \
	PATH="$$XFP_TEST_BIN:$$PATH"; export PATH; \
	CC='$(CC)'; export CC; \
	PYTHON='$(PYTHON)'; export PYTHON; \
	XFP_TEST_CUDA='$(CUDA_STATE)'; export XFP_TEST_CUDA; \
	NVCC='$(NVCC)'; export NVCC; \
	CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE; \
	OPENBLAS_NUM_THREADS=1; export OPENBLAS_NUM_THREADS; \
	KMP_DUPLICATE_LIB_OK=TRUE; export KMP_DUPLICATE_LIB_OK; \
	srcdir=`cd '$(abs_srcdir)' && pwd`; export srcdir;
if SANITIZERS
AM_TESTS_ENVIRONMENT += XFP_TEST_SANITIZERS=yes; export XFP_TEST_SANITIZERS;
endif

# make check -j, but with a fresh installation first
check_DATA += tests/root.stamp tests/faults/fail_allocation.so tests/full_disk.so tests/cuda/libcuda.so.1
tests/root.stamp: $(bin_PROGRAMS) $(noinst_PROGRAMS) $(lib_LTLIBRARIES) $(pkginclude_HEADERS) \
		$(nobase_dist_pkgdata_DATA) $(nobase_dist_pkgdata_SCRIPTS) $(dist_man_MANS) runtime/xfp.pc \
		$(nodist_bashcompletion_DATA) $(nodist_zshcompletion_DATA)
	$(AM_V_GEN)rm -rf tests/root
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) install-am DESTDIR='$(abs_builddir)/tests/root' >tests/root.log 2>&1 || \
		{ cat tests/root.log; exit 1; }
	$(AM_V_at)touch $@

#: rooms         redraw the rooms in ARCHITECTURE.md from its table
.PHONY: rooms
rooms:
	cd '$(srcdir)' && '$(PYTHON)' tests/rooms.py draw

# KERNEL_COST holds options: make kernel-cost KERNEL_COST=--update after a change that costs instructions on purpose.
#: kernel-cost   instructions and simulated cycles of the inner loops of products, compared with the committed table
.PHONY: kernel-cost
kernel-cost: runtime/libmultiply.la
	@'$(PYTHON)' '$(srcdir)/tests/kernel_cost.py' $(KERNEL_COST) .

# With the same installation; BENCH holds options and benchmarks: make bench BENCH="--rounds 9 speed".
#: bench         measure speed and memory; BENCH="--help" lists what can be measured
.PHONY: bench
bench: tests/root.stamp $(bench_links)
	@$(AM_TESTS_ENVIRONMENT) "$$PYTHON" "$$srcdir/tests/bench/run" $(BENCH)

# Every point, in two hours or more; FAULTS holds options: make faults FAULTS="--only damage/text".
#: faults        inject all faults into tiny conversions, in two hours; FAULTS="--help" lists options
.PHONY: faults
faults: tests/root.stamp $(fault_programs) tests/faults/fail_allocation.so
	@$(AM_TESTS_ENVIRONMENT) "$$PYTHON" "$$srcdir/tests/faults/run" $(FAULTS)

# libFuzzer on the bundle reader, in ./fuzz; FUZZ holds its options: make fuzz FUZZ="-max_total_time=600".
#: fuzz          fuzz the reader of bundles; FUZZ="-max_total_time=600" holds options of libFuzzer
.PHONY: fuzz
fuzz:
	@'$(srcdir)/tests/fuzz/run' $(FUZZ)

# The same on packed checkpoints, on GGUF, on PyTorch's files and on surveys, in ./fuzz-folds and so on.
#: fuzz-folds    fuzz the readers of packed checkpoints
#: fuzz-ggufs    fuzz the reader of GGUF
#: fuzz-torch    fuzz the readers of PyTorch files and zip archives
#: fuzz-surveys  fuzz the reader of surveys to import
.PHONY: fuzz-folds fuzz-ggufs fuzz-torch fuzz-surveys
fuzz-folds fuzz-ggufs fuzz-torch fuzz-surveys:
	@'$(srcdir)/tests/fuzz/run-readers' $(@:fuzz-%=%) $(FUZZ)

# And on tokenizers, in ./fuzz-tokenizers.
#: fuzz-tokenizers  fuzz the reader of tokenizer.json
.PHONY: fuzz-tokenizers
fuzz-tokenizers:
	@'$(srcdir)/tests/fuzz/run-tokenizers' $(FUZZ)

# Objects built with flags of their own: libraries of vectors, and other kernels.
#: fuzz-vectors  print the libraries that tests/fuzz/run builds with flags of their own
#: fuzz-kernels  print the objects that it does
.PHONY: fuzz-vectors fuzz-kernels
fuzz-vectors:
	@echo $(decode_libraries) $(vector_libraries)
fuzz-kernels:
	@echo $(runtime_libruntime_la_OBJECTS) $(runtime_libmultiply_la_OBJECTS) | tr ' ' '\n' | grep '^kernels/' | xargs

check-local:
	@test '$(TESTS_STATE)' = yes || \
		{ echo 'make check: $(TESTS_STATE); install what is missing and configure again' >&2; exit 1; }

# The results that run-tests sums up, with tests/totals.
#: test-logs     print the log of every test, for run-tests
.PHONY: test-logs
test-logs:
	@echo $(TEST_LOGS)

CLEANFILES += tests/root.stamp tests/root.log
clean-local:
	-rm -rf tests/root
