/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_status.c - errno values, completion statuses and endpoint states as DAT codes. */
#include "common/log.h"
#include "dapl/core/base/status.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

#define RESOURCE(subtype) DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, subtype)

UNIT_TEST(errno_values_have_their_codes)
{
	static const struct { int err; DAT_RETURN_TYPE type; DAT_RETURN_SUBTYPE subtype; } cases[] = {
		{ EOPNOTSUPP, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE },
		{ ENOSYS, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE },
		{ EACCES, DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE },
		{ EPERM, DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE },
		{ EFAULT, DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE },
		{ EADDRINUSE, DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE },
		{ ENETUNREACH, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE },
		{ EHOSTUNREACH, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE },
		{ EADDRNOTAVAIL, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE },
		{ EAFNOSUPPORT, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED },
		{ ENODEV, DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED },
		{ ENXIO, DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED },
		{ EIO, DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE },
	};

	assert_int_equal(dapl_status(0, DAT_RESOURCE_MEMORY), DAT_SUCCESS);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int sign = -1; sign <= 1; sign += 2)
			assert_int_equal(dapl_status(sign * cases[i].err, DAT_RESOURCE_MEMORY),
					 DAT_ERROR(cases[i].type, cases[i].subtype));
}

UNIT_TEST(shortages_have_the_subtype_of_the_caller)
{
	static const int shortages[] = { ENOMEM, EAGAIN, ENOSPC, EMFILE, ENFILE, ENOBUFS, EMLINK };

	for (size_t i = 0; i < sizeof shortages / sizeof *shortages; i++) {
		assert_int_equal(dapl_status(shortages[i], DAT_RESOURCE_TEP), RESOURCE(DAT_RESOURCE_TEP));
		assert_int_equal(dapl_status(-shortages[i], DAT_RESOURCE_SRQ), RESOURCE(DAT_RESOURCE_SRQ));
	}
}

UNIT_TEST(completion_statuses_have_their_dto_status)
{
	static const struct { enum ibv_wc_status verbs; DAT_DTO_COMPLETION_STATUS dat; } cases[] = {
		{ IBV_WC_SUCCESS, DAT_DTO_SUCCESS },
		{ IBV_WC_WR_FLUSH_ERR, DAT_DTO_ERR_FLUSHED },
		{ IBV_WC_LOC_LEN_ERR, DAT_DTO_ERR_LOCAL_LENGTH },
		{ IBV_WC_LOC_QP_OP_ERR, DAT_DTO_ERR_LOCAL_EP },
		{ IBV_WC_LOC_PROT_ERR, DAT_DTO_ERR_LOCAL_PROTECTION },
		{ IBV_WC_LOC_ACCESS_ERR, DAT_DTO_ERR_LOCAL_PROTECTION },
		{ IBV_WC_MW_BIND_ERR, DAT_RMR_OPERATION_FAILED },
		{ IBV_WC_BAD_RESP_ERR, DAT_DTO_ERR_BAD_RESPONSE },
		{ IBV_WC_REM_ACCESS_ERR, DAT_DTO_ERR_REMOTE_ACCESS },
		{ IBV_WC_REM_INV_REQ_ERR, DAT_DTO_ERR_REMOTE_RESPONDER },
		{ IBV_WC_REM_OP_ERR, DAT_DTO_ERR_REMOTE_RESPONDER },
		{ IBV_WC_REM_INV_RD_REQ_ERR, DAT_DTO_ERR_REMOTE_RESPONDER },
		{ IBV_WC_RNR_RETRY_EXC_ERR, DAT_DTO_ERR_RECEIVER_NOT_READY },
		{ IBV_WC_RETRY_EXC_ERR, DAT_DTO_ERR_TRANSPORT },
		{ IBV_WC_FATAL_ERR, DAT_DTO_ERR_TRANSPORT },
		{ IBV_WC_GENERAL_ERR, DAT_DTO_ERR_TRANSPORT },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(dapl_status_dto(cases[i].verbs), cases[i].dat);
}

/* No status but IBV_WC_SUCCESS may count as a success, known to this file or not. */
UNIT_TEST(no_failure_becomes_a_success)
{
	for (int status = -1; status < 64; status++)
		if (status != IBV_WC_SUCCESS)
			assert_int_not_equal(dapl_status_dto((enum ibv_wc_status)status),
					     DAT_DTO_SUCCESS);
}

static void translate(void *status) { dapl_status_dto(*(enum ibv_wc_status *)status); }

UNIT_TEST(status_that_is_not_known_is_reported_with_its_number)
{
	enum ibv_wc_status status = (enum ibv_wc_status)(IBV_WC_TM_RNDV_INCOMPLETE + 1);
	char wanted[100];

	log_init("t", NULL, NULL, NULL, 3);
	snprintf(wanted, sizeof wanted, "t: completion status %d is not known to this provider, and is taken as a "
		 "transport error\n", status);
	assert_string_equal(printed_by(translate, &status), wanted);
	for (int known = IBV_WC_SUCCESS; known <= IBV_WC_TM_RNDV_INCOMPLETE; known++)
		assert_string_equal(printed_by(translate, &known), "");
}

UNIT_TEST(each_endpoint_state_has_its_subtype_and_name)
{
	for (int a = 0; a <= DAT_EP_STATE_COMPLETION_PENDING; a++) {
		assert_int_equal(DAT_GET_TYPE(dapl_status_bad_ep_state((DAT_EP_STATE)a)), DAT_INVALID_STATE);
		for (int b = 0; b < a; b++) {
			assert_int_not_equal(dapl_status_bad_ep_state((DAT_EP_STATE)a),
					     dapl_status_bad_ep_state((DAT_EP_STATE)b));
			assert_string_not_equal(dapl_status_ep_state_name((DAT_EP_STATE)a),
						dapl_status_ep_state_name((DAT_EP_STATE)b));
		}
	}
	assert_int_equal(dapl_status_bad_ep_state(DAT_EP_STATE_CONNECTED),
			 DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED));
	assert_string_equal(dapl_status_ep_state_name(DAT_EP_STATE_DISCONNECT_PENDING), "disconnect_pending");
	assert_string_equal(dapl_status_ep_state_name((DAT_EP_STATE)99), "?");
}

UNIT_MAIN(NULL, NULL)
