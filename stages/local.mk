# SPDX-License-Identifier: Apache-2.0
#
# stages/: one file a stage executable, the front end, and what they share.

if CONVERTER
noinst_LIBRARIES += stages/libstages.a
endif
stages_libstages_a_SOURCES = \
	stages/aim.c \
	stages/aim.h \
	stages/bundle_stamp.c \
	stages/bundle_stamp.h \
	stages/cache.c \
	stages/cache.h \
	stages/cache_check.c \
	stages/cache_common.c \
	stages/cache_explain.c \
	stages/cache_gc.c \
	stages/cache_ls.c \
	stages/cache_rebuild.c \
	stages/cache_stats.c \
	stages/candidates.c \
	stages/candidates.h \
	stages/chosen.c \
	stages/chosen.h \
	stages/classify.c \
	stages/classify.h \
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
	stages/data.c \
	stages/data.h \
	stages/decided.c \
	stages/decided.h \
	stages/drop_cache.c \
	stages/drop_cache.h \
	stages/estimate.c \
	stages/estimate.h \
	stages/family.c \
	stages/family.h \
	stages/family_choose.c \
	stages/family_choose.h \
	stages/faults.c \
	stages/faults.h \
	stages/finish.c \
	stages/finish.h \
	stages/fit_codebooks.c \
	stages/fit_libraries.c \
	stages/fit_rows.c \
	stages/fit_rows.h \
	stages/fit_unit.c \
	stages/fit_unit.h \
	stages/footprint.c \
	stages/footprint.h \
	stages/footprint_disk.c \
	stages/footprint_groups.c \
	stages/footprint_groups.h \
	stages/given.c \
	stages/given.h \
	stages/group_row.c \
	stages/group_row.h \
	stages/info.c \
	stages/ingest.c \
	stages/ingest.h \
	stages/inspect_report.c \
	stages/inspect_report.h \
	stages/kept.c \
	stages/kept.h \
	stages/library_train.c \
	stages/library_train.h \
	stages/like.c \
	stages/like.h \
	stages/like_compare.c \
	stages/make_log.c \
	stages/make_log.h \
	stages/marks.c \
	stages/marks.h \
	stages/measure.c \
	stages/measure.h \
	stages/model_config.c \
	stages/model_config.h \
	stages/name_groups.c \
	stages/name_groups.h \
	stages/notes.c \
	stages/notes.h \
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
	stages/profile.c \
	stages/profile.h \
	stages/progress.c \
	stages/progress.h \
	stages/projection.c \
	stages/projection.h \
	stages/recorded.c \
	stages/recorded.h \
	stages/refuse.c \
	stages/refuse.h \
	stages/report.c \
	stages/report.h \
	stages/resume.c \
	stages/resume.h \
	stages/room.c \
	stages/rows.c \
	stages/rows.h \
	stages/rule.c \
	stages/rule.h \
	stages/run_inspect.c \
	stages/run_inspect.h \
	stages/run_make.c \
	stages/run_make.h \
	stages/run_record.c \
	stages/run_record.h \
	stages/run_state.c \
	stages/run_state.h \
	stages/safetensors_write.c \
	stages/safetensors_write.h \
	stages/sample.c \
	stages/sample.h \
	stages/scan.c \
	stages/scan.h \
	stages/select.c \
	stages/select.h \
	stages/settings.c \
	stages/settings.h \
	stages/sources.c \
	stages/sources.h \
	stages/stage.c \
	stages/status.c \
	stages/status_print.c \
	stages/status_print.h \
	stages/stray_names.c \
	stages/stray_names.h \
	stages/survey.c \
	stages/survey.h \
	stages/table.c \
	stages/table.h \
	stages/threads.h \
	stages/unchanged.c \
	stages/unchanged.h \
	stages/unit_state.h \
	stages/units.c \
	stages/units.h \
	stages/unpack.c \
	stages/unpack.h \
	stages/unpack_tensor.c \
	stages/verified.c \
	stages/verified.h \
	stages/verify.c \
	stages/verify.h \
	stages/verify_tensors.c \
	stages/verify_unit.c \
	stages/work.c \
	stages/work.h

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
