# SPDX-License-Identifier: Apache-2.0
#
# stages/: one file a stage executable; rooms for what they and the commands share.

if CONVERTER
noinst_LIBRARIES += stages/libstages.a
endif
stages_libstages_a_SOURCES = \
	stages/cache.c \
	stages/cache.h \
	stages/cache_check.c \
	stages/cache_common.c \
	stages/cache_explain.c \
	stages/cache_gc.c \
	stages/cache_ls.c \
	stages/cache_rebuild.c \
	stages/cache_stats.c \
	stages/chosen.c \
	stages/chosen.h \
	stages/commands.h \
	stages/compare.c \
	stages/compare.h \
	stages/compare_data.c \
	stages/compare_measure.c \
	stages/compare_options.c \
	stages/compare_peers.c \
	stages/compare_plot.c \
	stages/compare_sum.c \
	stages/compare_table.c \
	stages/conversion.c \
	stages/conversion.h \
	stages/convert.c \
	stages/convert.h \
	stages/drop_cache.c \
	stages/drop_cache.h \
	stages/estimate.c \
	stages/estimate.h \
	stages/faults.c \
	stages/faults.h \
	stages/finish.c \
	stages/finish.h \
	stages/fit_unit.c \
	stages/fit_unit.h \
	stages/footprint.c \
	stages/footprint.h \
	stages/footprint_disk.c \
	stages/footprint_groups.c \
	stages/footprint_groups.h \
	stages/given.c \
	stages/given.h \
	stages/info.c \
	stages/ingest.c \
	stages/ingest.h \
	stages/inspect/classify.c \
	stages/inspect/classify.h \
	stages/inspect/family.c \
	stages/inspect/family.h \
	stages/inspect/family_choose.c \
	stages/inspect/family_choose.h \
	stages/inspect/model_config.c \
	stages/inspect/model_config.h \
	stages/inspect/name_groups.c \
	stages/inspect/name_groups.h \
	stages/inspect/notes.c \
	stages/inspect/notes.h \
	stages/inspect/projection.c \
	stages/inspect/projection.h \
	stages/inspect/refuse.c \
	stages/inspect/refuse.h \
	stages/inspect/report.c \
	stages/inspect/report.h \
	stages/inspect/rule.c \
	stages/inspect/rule.h \
	stages/inspect/units.c \
	stages/inspect/units.h \
	stages/kept.c \
	stages/kept.h \
	stages/like_compare.c \
	stages/make_log.c \
	stages/make_log.h \
	stages/options.c \
	stages/options.h \
	stages/pack.h \
	stages/pack_groups.c \
	stages/pack_parts.c \
	stages/pack_v2.c \
	stages/plan.c \
	stages/plan.h \
	stages/plan_count.c \
	stages/plan_json.c \
	stages/plan_report.c \
	stages/plan_time.c \
	stages/prepare.c \
	stages/prepare.h \
	stages/prepare_print.c \
	stages/prepare_unit.c \
	stages/prepare_unit.h \
	stages/progress.c \
	stages/progress.h \
	stages/quantize/aim.c \
	stages/quantize/aim.h \
	stages/quantize/candidates.c \
	stages/quantize/candidates.h \
	stages/quantize/fit_codebooks.c \
	stages/quantize/fit_libraries.c \
	stages/quantize/fit_rows.c \
	stages/quantize/fit_rows.h \
	stages/quantize/group_row.c \
	stages/quantize/group_row.h \
	stages/quantize/library_train.c \
	stages/quantize/library_train.h \
	stages/quantize/marks.c \
	stages/quantize/marks.h \
	stages/quantize/measure.c \
	stages/quantize/measure.h \
	stages/quantize/rows.c \
	stages/quantize/rows.h \
	stages/quantize/sample.c \
	stages/quantize/sample.h \
	stages/quantize/scan.c \
	stages/quantize/scan.h \
	stages/quantize/select.c \
	stages/quantize/select.h \
	stages/quantize/survey.c \
	stages/quantize/survey.h \
	stages/quantize/threads.h \
	stages/report.c \
	stages/report.h \
	stages/resume.c \
	stages/resume.h \
	stages/room.c \
	stages/run_inspect.c \
	stages/run_inspect.h \
	stages/run_make.c \
	stages/run_make.h \
	stages/run_state.c \
	stages/run_state.h \
	stages/safetensors_write.c \
	stages/safetensors_write.h \
	stages/settings/data.c \
	stages/settings/data.h \
	stages/settings/like.c \
	stages/settings/like.h \
	stages/settings/profile.c \
	stages/settings/profile.h \
	stages/settings/recorded.c \
	stages/settings/recorded.h \
	stages/settings/settings.c \
	stages/settings/settings.h \
	stages/sources.c \
	stages/sources.h \
	stages/stage.c \
	stages/status.c \
	stages/status_print.c \
	stages/status_print.h \
	stages/stray_names.c \
	stages/stray_names.h \
	stages/table.c \
	stages/table.h \
	stages/unchanged.c \
	stages/unchanged.h \
	stages/unpack.c \
	stages/unpack.h \
	stages/unpack_tensor.c \
	stages/verify.c \
	stages/verify.h \
	stages/verify_tensors.c \
	stages/verify_unit.c \
	stages/work/bundle_stamp.c \
	stages/work/bundle_stamp.h \
	stages/work/decided.c \
	stages/work/decided.h \
	stages/work/run_record.c \
	stages/work/run_record.h \
	stages/work/unit_state.h \
	stages/work/verified.c \
	stages/work/verified.h \
	stages/work/work.c \
	stages/work/work.h

if CONVERTER
bin_PROGRAMS += \
	xfp \
	xfp-autoselect \
	xfp-bundle \
	xfp-inspect \
	xfp-libfit \
	xfp-lloyd-fit \
	xfp-outlier-extract \
	xfp-pack \
	xfp-survey \
	xfp-verify
endif

xfp_SOURCES = stages/xfp.c
xfp_LDADD = $(TOOL_LIBS)
xfp_autoselect_SOURCES = stages/autoselect.c stages/no_plugins.c
xfp_autoselect_LDFLAGS = $(unit_ldflags)
xfp_autoselect_LDADD = $(unit_libs)
xfp_bundle_SOURCES = stages/bundle.c
xfp_bundle_LDADD = $(TOOL_LIBS)
xfp_inspect_SOURCES = stages/inspect.c
xfp_inspect_LDADD = $(TOOL_LIBS)
xfp_libfit_SOURCES = stages/libfit.c stages/no_plugins.c
xfp_libfit_LDFLAGS = $(unit_ldflags)
xfp_libfit_LDADD = $(unit_libs)
xfp_lloyd_fit_SOURCES = stages/lloyd_fit.c stages/no_plugins.c
xfp_lloyd_fit_LDFLAGS = $(unit_ldflags)
xfp_lloyd_fit_LDADD = $(unit_libs)
xfp_outlier_extract_SOURCES = stages/outlier_extract.c stages/no_plugins.c
xfp_outlier_extract_LDFLAGS = $(unit_ldflags)
xfp_outlier_extract_LDADD = $(unit_libs)
xfp_pack_SOURCES = stages/pack.c stages/no_plugins.c
xfp_pack_LDFLAGS = $(unit_ldflags)
xfp_pack_LDADD = $(unit_libs)
xfp_survey_SOURCES = stages/survey_unit.c stages/no_plugins.c
xfp_survey_LDFLAGS = $(unit_ldflags)
xfp_survey_LDADD = $(unit_libs)
xfp_verify_SOURCES = stages/verify_main.c
xfp_verify_LDADD = $(TOOL_LIBS)

# Completion for shells, from one table, for xfp and every stage.
completions = stages/completions
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
nodist_bashcompletion_DATA = $(completions)/xfp
nodist_zshcompletion_DATA = $(completions)/_xfp
CLEANFILES += $(completions)/xfp $(completions)/_xfp
EXTRA_DIST += \
	stages/completions/options.table \
	stages/completions/xfp.bash \
	stages/completions/xfp.zsh

put_table = sed -e '/^@TABLE@$$/r $(srcdir)/$(completions)/options.table' -e '/^@TABLE@$$/d'
$(completions)/xfp: $(completions)/xfp.bash $(completions)/options.table
	$(AM_V_GEN)$(MKDIR_P) $(completions) && $(put_table) $(srcdir)/$(completions)/xfp.bash >$@.tmp && mv $@.tmp $@
$(completions)/_xfp: $(completions)/xfp.zsh $(completions)/options.table
	$(AM_V_GEN)$(MKDIR_P) $(completions) && $(put_table) $(srcdir)/$(completions)/xfp.zsh >$@.tmp && mv $@.tmp $@

# bash looks for a file of the command's name.
.PHONY: install-completion-links
install-completion-links:
	cd '$(DESTDIR)$(bashcompletiondir)' && for tool in $(bin_PROGRAMS); do \
		test $$tool = xfp || ln -sf xfp $$tool || exit; done
uninstall-hook:
	cd '$(DESTDIR)$(bashcompletiondir)' && rm -f $(bin_PROGRAMS)
