/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as tables and as CSV: which fields are printed, how, and in what order.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/ui/record.h"
#include "schemas/json_print.h"
#include "tests/unit/unit.h"

static FILE *captured;
static int output;

/* Standard output goes to a file until `printed`. */
static void capture(void)
{
	captured = tmpfile();
	assert_non_null(captured);
	fflush(stdout);
	output = dup(STDOUT_FILENO);
	assert_int_equal(dup2(fileno(captured), STDOUT_FILENO), STDOUT_FILENO);
}

static void assert_printed(const char *expected)
{
	char text[600];

	fflush(stdout);
	dup2(output, STDOUT_FILENO);
	close(output);
	rewind(captured);
	text[fread(text, 1, sizeof text - 1, captured)] = '\0';
	fclose(captured);
	assert_string_equal(text, expected);
}

static json_t *two_records(void)
{
	json_t *first = XFP_JSON({ "name", xfp_json_text("a\n") }, { "shape", json_pack("[i,i]", 4096, 10) },
				 { "bytes", xfp_json_count(1500) }, { "share", json_real(.125) },
				 { "roles", json_pack("[s,s]", "gate", "up") }, { "class", json_string("x") });
	json_t *second =
		XFP_JSON({ "name", xfp_json_text("b") }, { "shape", json_array() }, { "bytes", json_integer(-2000000) },
			 { "share", json_real(2) }, { "class", json_null() }, { "remark", json_string(": odd") },
			 { "stats", XFP_JSON({ "sigma", json_real(1234) }, { "mean", json_null() }) });

	return json_pack("[o,o]", first, second);
}

static void columns_of_a_table(void **state)
{
	struct xfp_error err;

	(void)state;
	capture();
	assert_int_equal(xfp_record_table("class,size=bytes%B,bytes,shape,share%.1f %%,sigma%#.4g,mean?,roles?", NULL,
					  two_records(), &err),
			 XFP_OK);
	assert_printed("class      size     bytes    shape    share  sigma     roles\n"
		       "x       1.50 kB      1500  4096x10   12.5 %      -  gate, up\n"
		       "-      -2.00 MB  -2000000   scalar  200.0 %   1234         -\n");
	capture();
	assert_int_equal(xfp_record_table("share%.2f", "one=name", two_records(), &err), XFP_OK);
	assert_printed("share  one\n"
		       " 0.12  a\\x0a\n"
		       " 2.00  b: odd\n");
	assert_int_equal(xfp_record_table("share", NULL, NULL, &err), XFP_FAILED);
}

static void columns_of_csv(void **state)
{
	struct xfp_record_columns columns;
	struct xfp_error err;

	(void)state;
	capture();
	columns = xfp_csv_header("roles%q,name%q,shape,bytes,third%.3g,mean,sigma");
	assert_int_equal(xfp_csv_row(&columns,
				     XFP_JSON({ "name", json_string("a \"b\", c") }, { "roles", json_array() },
					      { "bytes", json_integer(-7) }, { "third", json_real(1 / 3.) },
					      { "stats", XFP_JSON({ "sigma", json_real(.1) }) }),
				     &err),
			 XFP_OK);
	assert_int_equal(xfp_csv_row(&columns,
				     XFP_JSON({ "mean", json_null() }, { "shape", json_pack("[i,i,i]", 2, 3, 4) },
					      { "roles", json_pack("[s,s]", "q", "k") }),
				     &err),
			 XFP_OK);
	assert_printed("roles,name,shape,bytes,third,mean,sigma\n"
		       "\"\",\"a \"\"b\"\", c\",,-7,0.333,,0.1\n"
		       "\"q, k\",,2x3x4,,,,\n");
	assert_int_equal(xfp_csv_row(&columns, NULL, &err), XFP_FAILED);
}

/* Columns are constants of the source: an invalid one ends the process. */
static void invalid_columns(void **state)
{
	static const char *const invalid[] = { "run,,seconds",
					       "=key",
					       "a_heading_of_25_characters,run",
					       "run=a_key_of_twentyfive_chars,b",
					       "seconds%123456789.123f",
					       "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,1,2,3,4,5,6,7" };

	(void)state;
	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (!child) {
			signal(SIGABRT, SIG_DFL);
			if (freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr))
				xfp_csv_header(invalid[i]);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
			fail_msg("%s is accepted", invalid[i]);
	}
}

PROGRAM("test_record")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_of_a_table),
		cmocka_unit_test(columns_of_csv),
		cmocka_unit_test(invalid_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
