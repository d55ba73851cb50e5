# SPDX-License-Identifier: Apache-2.0
#
# schemas/: the layouts of artifacts, manifest and bundle, and the C that writes them.

if CONVERTER
noinst_LIBRARIES += schemas/libschemas.a
endif
schemas_libschemas_a_SOURCES = \
	schemas/artifact.c \
	schemas/artifact.h \
	schemas/assignment.c \
	schemas/assignment.h \
	schemas/bundle.c \
	schemas/bundle.h \
	schemas/bundle_index.c \
	schemas/bundle_plan.h \
	schemas/bundle_writer.c \
	schemas/bundle_writer.h \
	schemas/calibration.c \
	schemas/calibration.h \
	schemas/choice.c \
	schemas/choice.h \
	schemas/digest.c \
	schemas/digest.h \
	schemas/envelope.c \
	schemas/envelope.h \
	schemas/fit.c \
	schemas/fit.h \
	schemas/goal.c \
	schemas/goal.h \
	schemas/h5.c \
	schemas/h5.h \
	schemas/inputs.c \
	schemas/inputs.h \
	schemas/json_print.c \
	schemas/json_print.h \
	schemas/ledger.h \
	schemas/ledger/read.c \
	schemas/ledger/recipes.c \
	schemas/ledger/recipes.h \
	schemas/ledger/slice.c \
	schemas/ledger/slice.h \
	schemas/ledger/tables.c \
	schemas/ledger/tables.h \
	schemas/ledger/write.c \
	schemas/outliers.c \
	schemas/outliers.h \
	schemas/packed.c \
	schemas/packed.h \
	schemas/parameters.c \
	schemas/parameters.h \
	schemas/parameters_json.c \
	schemas/parameters_policy.c \
	schemas/policy.c \
	schemas/policy.h \
	schemas/policy_check.c \
	schemas/receipt.h \
	schemas/recipe/recipe.c \
	schemas/recipe/recipe.h \
	schemas/recipe/source_file.h \
	schemas/setting.c \
	schemas/setting.h \
	schemas/surveyed.c \
	schemas/surveyed.h

runtime_libruntime_la_SOURCES += \
	schemas/layout/bundle_layout.c \
	schemas/layout/bundle_layout.h \
	schemas/layout/classes.c \
	schemas/layout/classes.h \
	schemas/layout/tar.c

# The manifest's SQL, as a C string.
schemas/manifest_sql.h: $(srcdir)/schemas/embed.sh $(srcdir)/schemas/manifest.sql
	$(AM_V_GEN)$(MKDIR_P) schemas && \
		$(SHELL) $(srcdir)/schemas/embed.sh $(srcdir)/schemas/manifest.sql xfp_manifest_sql >$@.new && mv $@.new $@

BUILT_SOURCES += schemas/manifest_sql.h
CLEANFILES += schemas/manifest_sql.h
EXTRA_DIST += \
	schemas/README.md \
	schemas/embed.sh \
	schemas/manifest.sql
