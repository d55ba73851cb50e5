/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several hosts in one work folder: whose file a stage appends to, the order in which the files are read, and the lock
 * that stages share.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "cache/lock.h"
#include "cache/seal.h"
#include "cache/steps.h"
#include "stages/work/events.h"
#include "stages/work/host_check.h"
#include "stages/work/hosts.h"
#include "stages/work/stage_progress.h"
#include "stages/work/work.h"
#include "tests/unit/scratch.h"

static struct xfp_error err;

static char *read_all(void **state, struct xfp_events_reader *reader)
{
	char *text;

	if (xfp_events_read(*state, reader, &text, &err))
		fail_msg("%s", err.text);
	return text;
}

/* The units of all lines, as in "0 3 1"; "?" for a line that is damaged. */
static void read_units(void **state, struct xfp_events_reader *reader, const char *want)
{
	char *text = read_all(state, reader), *rest = text, *line, got[400] = "";
	struct xfp_event event;

	while ((line = strsep(&rest, "\n")))
		if (*line) {
			bool good = xfp_event_parse(line, &event);

			snprintf(got + strlen(got), sizeof got - strlen(got), good ? "%s%u" : "%s?", *got ? " " : "",
				 (unsigned)event.unit);
		}
	free(text);
	assert_string_equal(got, want);
}

static void append(void **state, const char *name, const void *bytes, size_t size)
{
	char *path = scratch_path(state, name);
	FILE *file = fopen(path, "ab");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
	free(path);
}

/* A line as a host writes it at a time; 0: as earlier versions wrote it. */
static void format_line(char line[200], unsigned unit, long long time)
{
	char seal[17], when[32] = "";

	if (time)
		snprintf(when, sizeof when, "\t%lld", time);
	snprintf(line, 160, "u%06u\tpack\tmade\t-\t1000\t0\t%s", unit, when);
	xfp_seal_line(line, strlen(line), seal);
	snprintf(line + strlen(line), 30, "\t%s\n", seal);
}

static void add(void **state, const char *name, unsigned unit, long long time)
{
	char line[200];

	format_line(line, unit, time);
	append(state, name, line, strlen(line));
}

static void hosts(void **state)
{
	scratch_mkdir(state, "hosts");
	scratch_mkdir(state, "hosts/a-00000000");
	scratch_mkdir(state, "hosts/b-00000000");
}
#define RUN "events"
#define A "hosts/a-00000000/events"
#define B "hosts/b-00000000/events"

/* ---- files ------------------------------------------------------------------------------------- */

static void a_tag_is_a_file_name(void **state)
{
	char tag[XFP_HOST_TAG], again[XFP_HOST_TAG];
	size_t length;
	int status;
	pid_t child;

	(void)state;
	xfp_host_tag(tag);
	xfp_host_tag(again);
	assert_string_equal(tag, again);
	length = strlen(tag);
	assert_true(length > 9 && tag[length - 9] == '-' && strspn(tag + length - 8, "0123456789abcdef") == 8);
	child = fork();
	if (!child) {
		static const char hostile[] = "../a b\n\x1b[31m\xff";
		char longest[XFP_HOST_NAME] = "";

		if (unshare(CLONE_NEWUTS) || sethostname(hostile, sizeof hostile - 1))
			_exit(77);
		xfp_host_tag(again);
		if (!strcmp(tag, again) || strncmp(again, "_._a_b__", 8) || strpbrk(again, "/ \n\x1b\xff"))
			_exit(1);
		memset(longest, 'n', sizeof longest - 1);
		if (sethostname(longest, sizeof longest - 1))
			_exit(77);
		xfp_host_tag(again);
		_exit(strncmp(again, longest, sizeof longest - 1) ? 2 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		print_message("a host name was not set: not permitted\n");
	else
		assert_int_equal(status, 0);
}

static void each_host_has_its_own_files(void **state)
{
	struct xfp_event event = { .unit = 3, .stage = "pack", .outcome = "started" };
	struct xfp_stage_progress progress;
	struct xfp_stage_slots slots;
	struct xfp_events_reader reader = { 0 };
	char tag[XFP_HOST_TAG], name[200];

	xfp_host_tag(tag);
	assert_false(xfp_is_remote()); /* started by hand */
	assert_int_equal(xfp_event_append(*state, &event, &err), XFP_OK);
	setenv(XFP_RUN_HOST, tag, 1);
	assert_false(xfp_is_remote());
	assert_int_equal(xfp_event_append(*state, &event, &err), XFP_OK);
	assert_false(scratch_has(state, "hosts"));

	setenv(XFP_RUN_HOST, "elsewhere-00000000", 1);
	assert_true(xfp_is_remote());
	event.unit = 4;
	assert_int_equal(xfp_event_append(*state, &event, &err), XFP_OK);
	snprintf(name, sizeof name, "hosts/%s/events", tag);
	assert_true(scratch_has(state, name));
	read_units(state, &reader, "3 3 4");
	xfp_events_reader_free(&reader);
	xfp_stage_progress_begin(&progress, *state, 4, "pack", 100);
	progress.written -= 1;
	progress.watcher.done(&progress.watcher, 25);
	snprintf(name, sizeof name, "hosts/%s/pulses", tag);
	assert_true(scratch_has(state, name) && !scratch_has(state, "pulses"));
	slots = xfp_stage_progress_open(*state);
	assert_true(xfp_stage_progress_read(&slots, 4, "pack") == 0.25);
	xfp_stage_progress_close(&slots);

	assert_true(xfp_events_exist(*state));
	assert_int_equal(xfp_events_remove(*state, &err), XFP_OK);
	assert_false(xfp_events_exist(*state) || scratch_has(state, "hosts"));
	unsetenv(XFP_RUN_HOST);
}

/* A host where the work folder is not mounted must not create one. */
static void no_work_folder_is_created(void **state)
{
	struct xfp_event event = { .unit = 3, .stage = "pack", .outcome = "started" };
	char *work = scratch_path(state, "missing");

	setenv(XFP_RUN_HOST, "elsewhere-00000000", 1);
	assert_int_equal(xfp_event_append(work, &event, &err), XFP_FAILED);
	assert_false(scratch_has(state, "missing"));
	unsetenv(XFP_RUN_HOST);
	free(work);
}

/* ---- order ------------------------------------------------------------------------------------- */

static void lines_are_ordered_by_time(void **state)
{
	struct xfp_events_reader reader = { 0 };

	hosts(state);
	add(state, RUN, 0, 100);
	add(state, RUN, 3, 400);
	add(state, B, 1, 200);
	add(state, B, 5, 600);
	add(state, A, 2, 300);
	add(state, A, 4, 400); /* the run's host first */
	read_units(state, &reader, "0 1 2 3 4 5");
	read_units(state, &reader, "");
	add(state, B, 6, 700);
	read_units(state, &reader, "6");
	assert_false(reader.restarted);
	scratch_mkdir(state, "hosts/0-00000000"); /* a host that appears later */
	add(state, "hosts/0-00000000/events", 8, 900);
	add(state, B, 7, 800);
	read_units(state, &reader, "7 8");
	xfp_events_reader_free(&reader);
}

/* A clock that was set back does not change the order of its host's lines; neither do lines without a time. */
static void the_order_of_a_host_is_kept(void **state)
{
	struct xfp_events_reader reader = { 0 };

	hosts(state);
	add(state, A, 1, 500);
	add(state, A, 2, 100);
	add(state, A, 3, 0);
	add(state, A, 4, 700);
	add(state, B, 9, 600);
	add(state, RUN, 0, 0);
	read_units(state, &reader, "0 1 2 3 9 4");
	xfp_events_reader_free(&reader);
}

static void torn_and_foreign_files(void **state)
{
	struct xfp_events_reader reader = { 0 };
	char line[200];

	hosts(state);
	scratch_mkdir(state, "hosts/empty-00000000");
	scratch_write(state, "hosts/file", "x", 1);
	add(state, RUN, 0, 100);
	format_line(line, 1, 200);
	append(state, A, line, 20); /* the host writes */
	add(state, B, 2, 300);
	read_units(state, &reader, "0 2");
	append(state, A, line + 20, strlen(line) - 20);
	read_units(state, &reader, "1");
	xfp_events_reader_free(&reader);
}

static void overwrite(const char *path, size_t at, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "r+b");

	assert_non_null(file);
	assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* A host's file has NULs until all its bytes have arrived, or for ever if the host has crashed. */
static void lines_that_have_not_arrived(void **state)
{
	struct xfp_events_reader reader = { 0 };
	char line[200], *path = scratch_path(state, B);

	hosts(state);
	add(state, B, 1, 100);
	format_line(line, 2, 200);
	append(state, B, (const char[300]){ 0 }, strlen(line));
	add(state, B, 3, 300);
	add(state, A, 4, 400);
	read_units(state, &reader, "1 4");
	read_units(state, &reader, "");
	overwrite(path, strlen(line), line, 30);
	read_units(state, &reader, "");
	append(state, B, "\0\n", 2);
	overwrite(path, strlen(line), line, strlen(line));
	read_units(state, &reader, "2 3");
	add(state, B, 5, 500);
	read_units(state, &reader, "");
	reader.final = true;
	read_units(state, &reader, "? 5");
	xfp_events_reader_free(&reader);
	free(path);
}

static void a_new_run_starts_new_files(void **state)
{
	struct xfp_events_reader reader = { 0 };

	hosts(state);
	add(state, RUN, 0, 100);
	add(state, A, 1, 200);
	read_units(state, &reader, "0 1");
	assert_true(reader.written_ns > 0);
	assert_int_equal(xfp_events_remove(*state, &err), XFP_OK);
	read_units(state, &reader, "");
	assert_true(reader.restarted);
	assert_int_equal(reader.written_ns, 0);
	hosts(state);
	add(state, B, 2, 300);
	read_units(state, &reader, "2");
	scratch_write(state, B, "", 0); /* replaced */
	add(state, RUN, 3, 400);
	read_units(state, &reader, "3");
	assert_true(reader.restarted);
	read_units(state, &reader, "");
	assert_false(reader.restarted);
	xfp_events_reader_free(&reader);
}

/* Remove the events as a user who may not remove the file of host a. */
static int remove_as_another_user(const char *work, const char *host)
{
	const uid_t other = 65534;

	if (!geteuid() && (chown(work, other, other) || setuid(other)))
		return 77;
	if (access(host, R_OK | X_OK) || access(work, W_OK))
		return 77;
	if (xfp_events_remove(work, &err) || xfp_events_exist(work))
		return 1;
	return 0;
}

/* As over NFS, if another process reads it. */
static void a_file_that_cannot_be_removed(void **state)
{
	char *host = scratch_path(state, "hosts/a-00000000"), *folder = scratch_path(state, "hosts");
	int status, open_host;
	pid_t child;

	hosts(state);
	add(state, A, 1, 200);
	open_host = open(host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(chmod(*state, 0777) | chmod(folder, 0777) | chmod(host, 0555), 0);
	if (!(child = fork()))
		_exit(remove_as_another_user(*state, host));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(fchmod(open_host, 0777) | close(open_host), 0); /* wherever it is now */
	free(host);
	free(folder);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("events were not removed as another user: not permitted\n");
		return;
	}
	assert_int_equal(status, 0);
	assert_false(scratch_has(state, "hosts"));
}

/* However the events of a run are divided among hosts, and however often they are read, they are the same. */
static void any_division_reads_as_one_file(void **state)
{
	enum { LINES = 300, HOSTS = 7, TRIALS = 40 };
	uint64_t random = 12345;
	char line[200], name[64];

	scratch_mkdir(state, "hosts");
	for (int h = 1; h < HOSTS; h++) {
		snprintf(name, sizeof name, "hosts/n%d-00000000", h);
		scratch_mkdir(state, name);
	}
	for (int trial = 0; trial < TRIALS; trial++) {
		struct xfp_events_reader once = { 0 };
		char *want = calloc(LINES, sizeof line), *got;

		for (int i = 0; i < LINES; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			format_line(line, (unsigned)(random >> 40) % 50, 1000 + i);
			strcat(want, line);
			snprintf(name, sizeof name, (random >> 33) % HOSTS ? "hosts/n%d-00000000/events" : RUN,
				 (int)((random >> 33) % HOSTS));
			append(state, name, line, strlen(line));
		}
		got = read_all(state, &once);
		assert_string_equal(got, want);
		xfp_events_reader_free(&once);
		free(got);
		free(want);
		for (int h = 0; h < HOSTS; h++) {
			snprintf(name, sizeof name, h ? "hosts/n%d-00000000/events" : RUN, h);
			scratch_write(state, name, "", 0);
		}
	}
}

/* ---- locks and versions ------------------------------------------------------------------------ */

static void a_stage_protects_the_folder(void **state)
{
	char *cache = scratch_path(state, "cache");
	struct xfp_store store;
	int lock, alone, guard, step, status;
	pid_t child;

	assert_int_equal(xfp_store_open(cache, &store, &err), XFP_OK);
	assert_int_equal(xfp_steps_share(cache), -1); /* no conversion has used it */
	assert_false(xfp_steps_are_running(cache));
	assert_int_equal(xfp_lock_shared(&store, "xfp convert", &lock, &err), XFP_OK);
	step = xfp_steps_share(cache);
	assert_true(step >= 0 && xfp_steps_are_running(cache));
	/* the conversion's own stages do not keep it from removing artifacts */
	assert_true(xfp_lock_try_upgrade(&store, lock, &guard));
	assert_int_equal(xfp_lock_downgrade(&store, lock, guard, &err), XFP_OK);
	xfp_lock_release(lock);
	/* a stage that outlives its conversion does */
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &alone, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, ": in use by "));
	child = fork();
	if (!child)
		_exit(xfp_steps_share(cache) < 0); /* shared by all */
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(step);
	assert_false(xfp_steps_are_running(cache));
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &alone, &err), XFP_OK);
	xfp_lock_release(alone);
	xfp_store_close(&store);
	free(cache);
}

static void the_version_must_be_the_same(void **state)
{
	(void)state;
	assert_int_equal(xfp_run_version_check(&err), XFP_OK);
	setenv(XFP_RUN_VERSION, PACKAGE_VERSION, 1);
	assert_int_equal(xfp_run_version_check(&err), XFP_OK);
	setenv(XFP_RUN_VERSION, "0.0.1\x1b[31m", 1);
	assert_int_equal(xfp_run_version_check(&err), XFP_FAILED);
	assert_non_null(strstr(err.text, "xfp " PACKAGE_VERSION " is installed here, but xfp 0.0.1"));
	assert_null(strchr(err.text, '\x1b'));
	unsetenv(XFP_RUN_VERSION);
}

/* Both hosts are this one. */
static void a_check_of_hosts(void **state)
{
	char *work = scratch_path(state, "work"), *cache = scratch_path(state, "cache"),
	     *moved = scratch_path(state, "x");
	struct xfp_host_check check = { .work = work, .cache = cache }, other;
	int locks[2];

	scratch_mkdir(state, "work");
	scratch_mkdir(state, "cache");
	for (int i = 0; i < 2; i++) {
		char *path = xfp_path(i ? cache : work, "lock");

		locks[i] = open(path, O_RDWR | O_CREAT, 0666);
		assert_int_equal(flock(locks[i], i ? LOCK_SH : LOCK_EX), 0);
		free(path);
	}
	assert_int_equal(xfp_host_check_ask(&check, &err), XFP_OK);
	assert_int_equal(xfp_host_check_conclude(&check, &err), XFP_FAILED); /* no answer yet */
	assert_non_null(strstr(err.text, "work: no node has answered there"));
	assert_int_equal(xfp_host_check_answer(&check, &err), XFP_OK);
	assert_int_equal(xfp_host_check_conclude(&check, &err), XFP_OK);

	other = check; /* another conversion's, or in another folder */
	other.name[0] = other.name[0] == '0' ? '1' : '0';
	assert_int_equal(xfp_host_check_answer(&other, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "work: is not the folder of the conversion's host"));
	assert_int_equal(rename(work, moved), 0);
	assert_int_equal(xfp_host_check_answer(&check, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "work: does not exist on this host"));
	assert_int_equal(rename(moved, work), 0);
	strcpy(other.name, "../../x");
	assert_int_equal(xfp_host_check_answer(&other, &err), XFP_USAGE);

	/* locks that another host does not see */
	assert_int_equal(flock(locks[0], LOCK_UN), 0);
	assert_int_equal(xfp_host_check_answer(&check, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "work: locks of the conversion's host are not seen"));
	assert_int_equal(flock(locks[0], LOCK_EX), 0);
	assert_int_equal(flock(locks[1], LOCK_UN), 0);
	assert_int_equal(xfp_host_check_answer(&check, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "cache: locks of the conversion's host are not seen"));

	xfp_host_check_remove(&check);
	assert_int_equal(close(locks[0]) | close(locks[1]), 0);
	/* nothing else is left */
	for (int i = 0; i < 2; i++) {
		char *path = xfp_path(i ? cache : work, "lock");

		assert_int_equal(unlink(path), 0);
		assert_int_equal(rmdir(i ? cache : work), 0);
		free(path);
	}
	free(work);
	free(cache);
	free(moved);
}

PROGRAM("test_hosts")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tag_is_a_file_name),
		scratch_test(each_host_has_its_own_files),
		scratch_test(no_work_folder_is_created),
		scratch_test(lines_are_ordered_by_time),
		scratch_test(the_order_of_a_host_is_kept),
		scratch_test(torn_and_foreign_files),
		scratch_test(lines_that_have_not_arrived),
		scratch_test(a_new_run_starts_new_files),
		scratch_test(a_file_that_cannot_be_removed),
		scratch_test(any_division_reads_as_one_file),
		scratch_test(a_stage_protects_the_folder),
		cmocka_unit_test(the_version_must_be_the_same),
		scratch_test(a_check_of_hosts),
	};

	unsetenv(XFP_RUN_HOST);
	unsetenv(XFP_RUN_VERSION);
	return cmocka_run_group_tests_name("hosts", tests, NULL, NULL);
}
