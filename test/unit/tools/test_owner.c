/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_owner.c - the cgroup and the Slurm job that a text of /proc/PID/cgroup tells of, and the users of processes
 * (tools/control/owner.c). */
#include "tools/control/owner.h"
#include "test/unit/unit.h"
#include <sys/types.h>
#include <sys/wait.h>

enum { NOBODY = 4200000000u };	/* a user without a name */

static const struct { const char *text, *cgroup; long long job; } texts[] = {
	{ "0::/user.slice/user-1000.slice/session-1.scope\n", "/user.slice/user-1000.slice/session-1.scope", -1 },
	{ "0::/\n", "/", -1 },
	{ "", NULL, -1 },
	{ "nonsense\n0:\n", NULL, -1 },
	{ "0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0\n",
	  "/system.slice/slurmstepd.scope/job_123/step_0/user/task_0", 123 },
	{ "0::/system.slice/node1_slurmstepd.scope/job_7\n", "/system.slice/node1_slurmstepd.scope/job_7", 7 },
	{ "4:memory:/slurm/uid_1000/job_55/step_batch\n"
	  "1:name=systemd:/system.slice/slurmd.service-of-a-long-name\n0::/\n",
	  "/slurm/uid_1000/job_55/step_batch", 55 },
	{ "1:name=systemd:/system.slice/slurmd.service-of-a-long-name\n4:memory:/slurm/uid_1000/job_55/step_batch\n",
	  "/slurm/uid_1000/job_55/step_batch", 55 },
	{ "12:pids:/\n1:name=systemd:/docker/0123456789\n0::/\n", "/docker/0123456789", -1 },
	{ "0::/slurm/job_x/step_0\n", "/slurm/job_x/step_0", -1 },
	{ "0::/slurm/job_12x/step_0\n", "/slurm/job_12x/step_0", -1 },
	{ "0::/slurm/job_\n", "/slurm/job_", -1 },
	{ "0::/batch/job_12/step_0\n", "/batch/job_12/step_0", -1 },
	{ "0::/a:b/c\n", "/a:b/c", -1 },
};

UNIT_TEST(cgroup_and_job_are_found)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		char text[256];
		const char *cgroup;
		long long job = 0;

		snprintf(text, sizeof text, "%s", texts[i].text);
		cgroup = owner_parse_cgroup(text, &job);
		print_message("%s", texts[i].text);
		if (texts[i].cgroup)
			assert_string_equal(cgroup, texts[i].cgroup);
		else
			assert_null(cgroup);
		assert_int_equal(job, texts[i].job);
	}
}

UNIT_TEST(user_without_a_name_is_a_number)
{
	char user[OWNER_NAME];

	assert_string_equal(owner_name(user, NOBODY), "4200000000");
	assert_string_equal(owner_name(user, 0), "root");
	assert_string_equal(owner_name(user, NOBODY), "4200000000");
}

/* Returns a process that has ended, and is no zombie. */
static pid_t ended_process(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

UNIT_TEST(owner_of_a_process_is_added)
{
	json_t *own = json_pack("{s:i}", "pid", (int)getpid());
	json_t *ended = json_pack("{s:i}", "pid", (int)ended_process());
	char user[OWNER_NAME], expected[OWNER_NAME];

	owner_add(own);
	assert_int_equal(json_integer_value(json_object_get(own, "uid")), geteuid());
	assert_string_equal(json_string_value(json_object_get(own, "user")), owner_name(expected, geteuid()));
	assert_string_equal(owner_user(user, getpid()), expected);
	owner_add(ended);
	assert_int_equal(json_object_size(ended), 1);
	assert_string_equal(owner_user(user, (pid_t)json_integer_value(json_object_get(ended, "pid"))), "");
	json_decref(own);
	json_decref(ended);
}

UNIT_MAIN(NULL, NULL)
