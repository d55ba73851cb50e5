/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --drop-cache during a run: which artifacts are removed, and which may still be needed. Other runs' needs and lock
 * holders are simulated by replaced functions; removals are recorded.
 */
#include "conversion/drop_cache.h"

#include "cache/drop.h"
#include "cache/lock.h"
#include "conversion/state/prepare_unit.h"
#include "conversion/state/receipts.h"
#include "stages/work/moving.h"
#include "tests/unit/scratch.h"

#define KEY "0123456789abcdef0123456789abcdef"
#define UNITS 3u

static struct {
	bool shared;        /* others share the cache */
	bool unknown;       /* the needs of others are unknown */
	const char *needed; /* keys that others need; NULL: none */
	int64_t version;    /* version of the manifest */
	bool unfinished;    /* the latest run into another output has not succeeded */
	unsigned asked;     /* number of queries for the needs of other outputs */
	int alone;          /* number of exclusive locks, minus the number of times they were shared again */
	char gone[256];     /* removed keys in order, each followed by a space */
} world;

enum xfp_status __wrap_xfp_prepare_unit(struct xfp_conversion *c, uint32_t number, bool check, struct xfp_error *err);
enum xfp_status __wrap_xfp_prepare_unit(struct xfp_conversion *c, uint32_t number, bool check, struct xfp_error *err)
{
	(void)c, (void)number, (void)check, (void)err;
	return XFP_OK;
}

enum xfp_status __wrap_xfp_receipt_make(struct xfp_conversion *c, uint32_t unit,
					const struct xfp_parameters *parameters, const struct xfp_policy *policy,
					struct xfp_error *err);
enum xfp_status __wrap_xfp_receipt_make(struct xfp_conversion *c, uint32_t unit,
					const struct xfp_parameters *parameters, const struct xfp_policy *policy,
					struct xfp_error *err)
{
	(void)parameters, (void)policy, (void)err;
	c->units.state[unit].receipt = true;
	return XFP_OK;
}

bool __wrap_xfp_lock_try_upgrade(const struct xfp_store *store, int fd, int *guard);
bool __wrap_xfp_lock_try_upgrade(const struct xfp_store *store, int fd, int *guard)
{
	(void)store, (void)fd;
	*guard = -1;
	world.alone += !world.shared;
	return !world.shared;
}

enum xfp_status __wrap_xfp_lock_downgrade(const struct xfp_store *store, int fd, int guard, struct xfp_error *err);
enum xfp_status __wrap_xfp_lock_downgrade(const struct xfp_store *store, int fd, int guard, struct xfp_error *err)
{
	(void)store, (void)fd, (void)guard, (void)err;
	world.alone--;
	return XFP_OK;
}

enum xfp_status __wrap_xfp_lock_exclusive(const struct xfp_store *store, const char *what, int *fd,
					  struct xfp_error *err);
enum xfp_status __wrap_xfp_lock_exclusive(const struct xfp_store *store, const char *what, int *fd,
					  struct xfp_error *err)
{
	(void)store;
	assert_string_equal(what, "xfp convert -o out.xfp");
	*fd = -1;
	if (world.shared)
		return xfp_fail(err, XFP_FAILED, "in use");
	world.alone++;
	*fd = dup(STDERR_FILENO);
	return XFP_OK;
}

bool __wrap_xfp_store_has(const struct xfp_store *store, const char *key);
bool __wrap_xfp_store_has(const struct xfp_store *store, const char *key)
{
	(void)store;
	return *key == 'i';
}

bool __wrap_xfp_manifest_has_unfinished(struct xfp_manifest *manifest, const char *output, const char *tokens);
bool __wrap_xfp_manifest_has_unfinished(struct xfp_manifest *manifest, const char *output, const char *tokens)
{
	(void)manifest, (void)output;
	assert_string_equal(tokens, "tokens");
	return world.unfinished;
}

int64_t __wrap_xfp_manifest_version(struct xfp_manifest *manifest);
int64_t __wrap_xfp_manifest_version(struct xfp_manifest *manifest)
{
	(void)manifest;
	return world.version;
}

enum xfp_status __wrap_xfp_manifest_output_keys(struct xfp_manifest *manifest, const char *output, bool others,
						struct xfp_key_list *list, struct xfp_error *err);
enum xfp_status __wrap_xfp_manifest_output_keys(struct xfp_manifest *manifest, const char *output, bool others,
						struct xfp_key_list *list, struct xfp_error *err)
{
	(void)manifest, (void)output;
	assert_true(others);
	world.asked++;
	if (world.unknown)
		return xfp_fail(err, XFP_FAILED, "it cannot be told");
	return world.needed ? xfp_key_list_add(list, world.needed, err) : XFP_OK;
}

enum xfp_status __wrap_xfp_store_drop_one(const struct xfp_store *store, struct xfp_manifest *manifest, const char *key,
					  uint64_t *bytes, struct xfp_error *err);
enum xfp_status __wrap_xfp_store_drop_one(const struct xfp_store *store, struct xfp_manifest *manifest, const char *key,
					  uint64_t *bytes, struct xfp_error *err)
{
	(void)store, (void)manifest, (void)err;
	assert_int_equal(world.alone, 1);
	assert_true(strlen(world.gone) + strlen(key) + 2 < sizeof world.gone);
	strcat(strcat(world.gone, key), " ");
	*bytes += 100;
	return XFP_OK;
}

/* Three units of one shape and with different weights, all of them fitted; the first two are packed. Their keys are
 * like "o0", "p2". */
struct subject {
	struct xfp_conversion c;
	struct xfp_request request;
	struct xfp_ledger ledger;
	struct xfp_ledger_unit units[UNITS];
	struct xfp_unit_state states[UNITS];
	uint8_t source[UNITS][1][16];
};

static void begin(struct subject *s, void **state)
{
	static const char letters[XFP_STAMPS] = {
		[XFP_STAMP_SURVEY] = 's', [XFP_STAMP_OUTLIERS] = 'o', [XFP_STAMP_FIT] = 'f',
		[XFP_STAMP_CHOICE] = 'c', [XFP_STAMP_PACKED] = 'p',
	};

	memset(s, 0, sizeof *s);
	memset(&world, 0, sizeof world);
	for (uint32_t u = 0; u < UNITS; u++) {
		s->units[u] = (struct xfp_ledger_unit){ .experts = 1, .rows = 4, .cols = 4 };
		s->source[u][0][0] = (uint8_t)u;
		s->states[u] = (struct xfp_unit_state){ .known = true, .done = u < 2, .source = s->source[u] };
		for (int i = 0; i < XFP_STAMPS; i++)
			if (letters[i]) {
				s->states[u].in_store |= u < 2 || i < XFP_STAMP_CHOICE ? 1u << i : 0;
				snprintf(s->states[u].key[i], sizeof s->states[u].key[i], "%c%u", letters[i],
					 (unsigned)u);
			}
	}
	s->ledger = (struct xfp_ledger){ .units = s->units, .unit_count = UNITS };
	s->c.request = &s->request;
	s->c.units.ledger = &s->ledger;
	s->c.units.state = s->states;
	s->request.drop_cache = true;
	s->request.jobs = 2;
	s->request.work = *state;
	s->c.place.manifest = (struct xfp_manifest *)s; /* never dereferenced */
}

/* Expect these removals when the fits of a unit may be removed. */
static void expect_fits(struct subject *s, uint32_t unit, const char *gone)
{
	*world.gone = '\0';
	xfp_drop_fits_of(&s->c, unit);
	assert_string_equal(world.gone, gone);
	assert_int_equal(world.alone, 0);
}

/* ------------------------------------------------------------------------------------------------ */

static void fits_go_once_the_unit_is_packed(void **state)
{
	struct subject s;

	begin(&s, state);
	expect_fits(&s, 2, "");
	expect_fits(&s, 0, "o0 f0 ");
	assert_true(s.states[0].receipt);
	assert_int_equal(xfp_dropped_bytes(&s.c), 200);
	/* Existing ones, with or without a receipt. */
	s.states[0].in_store &= ~(1u << XFP_STAMP_OUTLIERS | 1u << XFP_STAMP_FIT);
	expect_fits(&s, 0, "");
	xfp_drop_fits(&s.c);
	assert_string_equal(world.gone, "o1 f1 ");
	xfp_drop_units_end(&s.c);
	assert_null(s.c.drop.dropping);
}

static void fits_that_another_unit_needs_stay(void **state)
{
	struct subject s;

	begin(&s, state);
	s.source[2][0][0] = 0; /* equal to the first unit's */
	expect_fits(&s, 0, "");
	expect_fits(&s, 1, "o1 f1 ");
	s.states[2].known = false; /* its artifacts are unknown, and it makes its own */
	expect_fits(&s, 0, "o0 f0 ");
	s.states[2].known = true;
	s.units[2].rows = 8;
	expect_fits(&s, 0, "o0 f0 ");
	s.units[2].rows = 4;
	expect_fits(&s, 0, "");
	s.states[2].done = true;
	expect_fits(&s, 0, "o0 f0 ");
	xfp_drop_units_end(&s.c);
}

static void what_other_outputs_need_stays(void **state)
{
	struct subject s;

	begin(&s, state);
	expect_fits(&s, 0, "o0 f0 ");
	expect_fits(&s, 0, "o0 f0 ");
	assert_int_equal(world.asked, 1); /* nobody has written to the manifest since */
	world.needed = "f0";
	world.version++;
	expect_fits(&s, 0, "o0 ");
	world.needed = NULL;
	world.version++;
	expect_fits(&s, 0, "o0 f0 ");
	assert_int_equal(world.asked, 3);
	/* If the needs are unknown, all artifacts may be needed; and they are queried again. */
	world.unknown = true;
	world.version++;
	expect_fits(&s, 0, "");
	expect_fits(&s, 0, "");
	world.unknown = false;
	expect_fits(&s, 0, "o0 f0 ");
	/* Other running conversions may need artifacts that are not recorded yet. */
	world.shared = true;
	expect_fits(&s, 0, "");
	xfp_drop_units_end(&s.c);
}

static void a_run_that_drops_nothing_drops_nothing(void **state)
{
	struct subject s;

	begin(&s, state);
	s.request.goal.kind = XFP_GOAL_SIZE;
	expect_fits(&s, 0, "");
	s.request.goal.kind = XFP_GOAL_NONE;
	s.request.dry_run = true;
	expect_fits(&s, 0, "");
	s.request.dry_run = false;
	s.c.place.store.read_only = true;
	expect_fits(&s, 0, "");
	s.c.place.store.read_only = false;
	s.c.events.leftovers = true; /* the results of an earlier run are not in the manifest yet */
	expect_fits(&s, 0, "");
	s.c.events.leftovers = false;
	s.request.drop_cache = false;
	expect_fits(&s, 0, "");
	s.request.drop_cache = true;
	expect_fits(&s, 0, "o0 f0 ");
	xfp_drop_units_end(&s.c);
}

/* xfp-bundle reports that this many units are in the pending bundle. */
static void expect_moved(struct subject *s, uint32_t units, const char *sha256, const char *gone)
{
	struct xfp_moving moving = { .layout = KEY, .decided = KEY, .units = units };

	strcpy(moving.sha256, sha256);
	*world.gone = '\0';
	assert_int_equal(xfp_moving_write(s->request.work, &moving, NULL), XFP_OK);
	xfp_drop_moved(&s->c);
	assert_string_equal(world.gone, gone);
	assert_int_equal(world.alone, 0);
}

static void packed_artifacts_go_as_units_move(void **state)
{
	struct subject s;

	begin(&s, state);
	for (uint32_t u = 0; u < UNITS; u++)
		s.states[u].receipt = true;
	strcpy(s.states[2].key[XFP_STAMP_PACKED], "p0"); /* equal to the first unit's */
	assert_int_equal(xfp_drop_moved_begin(&s.c, NULL), XFP_OK);
	expect_moved(&s, 1, "", "");
	assert_true(xfp_moving_acknowledged(*state, 1));
	expect_moved(&s, 2, "", "p1 ");
	expect_moved(&s, 2, "", "");
	expect_moved(&s, 3, KEY KEY, ""); /* complete: the rest is removed with the cache */
	expect_moved(&s, 4, "", "");      /* more units than exist */
	expect_moved(&s, 3, "", "p0 ");
	assert_true(xfp_moving_acknowledged(*state, 3));
	/* A unit without a receipt could not be distinguished from a lost one. */
	s.states[1].receipt = false;
	assert_int_equal(xfp_drop_moved_begin(&s.c, NULL), XFP_OK);
	world.needed = "p0";
	world.version++;
	expect_moved(&s, 3, "", "");
	world.needed = NULL;
	world.version++;
	assert_int_equal(xfp_drop_moved_begin(&s.c, NULL), XFP_OK);
	world.shared = true; /* xfp-bundle does not wait for others */
	expect_moved(&s, 1, "", "");
	assert_true(xfp_moving_acknowledged(*state, 1));
	world.shared = false;
	expect_moved(&s, 3, "", "p0 p0 "); /* a missing artifact is not an error */
	xfp_drop_units_end(&s.c);
}

/* Layer 0 has units 0 and 1, layer 1 has unit 2, which is not packed. */
static void begin_layers(struct subject *s, void **state, struct xfp_layer_state *layers)
{
	static const struct xfp_layer_state all[3] = { { .in_store = true, .needed = true, .key = "i0" },
						       { .in_store = true, .needed = true, .key = "i1" },
						       { .needed = true } };
	static uint32_t of_unit[UNITS] = { 0, 0, 1 };

	begin(s, state);
	memcpy(layers, all, sizeof all);
	s->c.layers.count = 3;
	s->c.layers.state = layers;
	s->c.layers.of_unit = of_unit;
	strcpy(s->c.layers.calibration.sha256, "tokens");
	s->request.drop_cache = false;
	s->request.out = "out.xfp";
	s->c.place.cache_lock = -1;
}

static void inputs_go_once_their_units_are_packed(void **state)
{
	struct xfp_layer_state layers[3];
	struct subject s;

	begin_layers(&s, state, layers);
	s.states[1].done = false;
	xfp_drop_layers(&s.c);
	assert_string_equal(world.gone, "");
	s.states[1].done = true;
	world.shared = true; /* another conversion may be fitting the same units */
	xfp_drop_layer_of(&s.c, 1);
	assert_string_equal(world.gone, "");
	world.shared = false;
	world.unfinished = true; /* an interrupted one resumes with them */
	xfp_drop_layer_of(&s.c, 1);
	assert_string_equal(world.gone, "");
	world.unfinished = false;
	world.needed = "i0"; /* another one has fitted them */
	xfp_drop_layer_of(&s.c, 1);
	assert_string_equal(world.gone, "i0 ");
	assert_false(layers[0].in_store);
	/* The next layer is computed from the inputs of this one. */
	s.states[2].done = true;
	xfp_drop_layer_of(&s.c, 2);
	assert_string_equal(world.gone, "i0 ");
	layers[2].in_store = true;
	s.request.goal.kind = XFP_GOAL_SIZE;
	xfp_drop_layers(&s.c);
	s.request.goal.kind = XFP_GOAL_NONE;
	s.request.survey = true;
	xfp_drop_layers(&s.c);
	assert_string_equal(world.gone, "i0 ");
	s.request.survey = false;
	xfp_drop_layers(&s.c);
	assert_string_equal(world.gone, "i0 i1  ");
	assert_int_equal(world.alone, 0);
	xfp_drop_units_end(&s.c);
}

/* At the end of a run, the inputs that stayed: of a goal, or after another conversion shared the cache. */
static void inputs_go_at_the_end(void **state)
{
	struct xfp_layer_state layers[3];
	struct subject s;

	begin_layers(&s, state, layers);
	s.request.goal.kind = XFP_GOAL_SIZE;
	s.c.place.store.read_only = true;
	xfp_drop_layers_end(&s.c);
	s.c.place.store.read_only = false;
	world.shared = true;
	xfp_drop_layers_end(&s.c);
	world.shared = false;
	world.unfinished = true;
	xfp_drop_layers_end(&s.c);
	assert_string_equal(world.gone, "");
	world.unfinished = false;
	world.alone = 0;
	layers[1].in_store = false; /* made since by another conversion */
	xfp_drop_layers_end(&s.c);
	assert_string_equal(world.gone, "i0 i1 ");
	close(s.c.place.cache_lock);
	xfp_drop_units_end(&s.c);
}

static void the_outlook_says_what_stays(void **state)
{
	struct subject s;

	begin(&s, state);
	assert_int_equal(xfp_drop_predict(&s.c), 0);
	assert_int_equal(s.c.drop.units, 2);
	world.needed = "p1";
	world.version++;
	assert_int_equal(xfp_drop_predict(&s.c), 1);
	assert_true(s.states[1].stays && !s.states[0].stays && !s.states[2].stays);
	s.request.goal.kind = XFP_GOAL_SIZE;
	assert_int_equal(xfp_drop_predict(&s.c), UNITS);
	assert_int_equal(s.c.drop.units, 0);
	s.request.goal.kind = XFP_GOAL_NONE;
	s.c.place.store.read_only = true;
	assert_int_equal(xfp_drop_predict(&s.c), UNITS);
	s.request.drop_cache = false;
	assert_int_equal(xfp_drop_predict(&s.c), 0);
	assert_int_equal(s.c.drop.units, 0);
	xfp_drop_units_end(&s.c);
}

PROGRAM("test_dropping")
{
	const struct CMUnitTest tests[] = {
		scratch_test(fits_go_once_the_unit_is_packed),
		scratch_test(fits_that_another_unit_needs_stay),
		scratch_test(what_other_outputs_need_stays),
		scratch_test(a_run_that_drops_nothing_drops_nothing),
		scratch_test(packed_artifacts_go_as_units_move),
		scratch_test(the_outlook_says_what_stays),
		scratch_test(inputs_go_once_their_units_are_packed),
		scratch_test(inputs_go_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
