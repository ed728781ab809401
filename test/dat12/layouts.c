/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* layouts.c - sizes, offsets and numbers of DAT 1.2 (doc/spec/dat-1.2.md), checked by the compiler. Once
 * of the transcription, whole; once, with VIEW, of what the header of include/dat-1.2 defines itself. */
#include <stddef.h>
#include <dat/udat.h>

/* Sizes and offsets are those of 64-bit programs. */
#define ON_64(condition) (sizeof(void *) != 8 || (condition))
#define SIZE(type, bytes) _Static_assert(ON_64(sizeof(type) == (bytes)), #type)
#define AT(type, member, bytes) \
	_Static_assert(ON_64(offsetof(type, member) == (bytes)), #type "." #member)
#define LONG(type, member) \
	_Static_assert(sizeof(((type *)0)->member) == 8, #type "." #member " has 64 bits")
#define IS(name, number) _Static_assert((unsigned long long)(name) == (number), #name)

/* what programs assign and compare in both */
IS(DAT_VERSION_MAJOR, 1);
IS(DAT_VERSION_MINOR, 2);

SIZE(DAT_LMR_TRIPLET, 24);
AT(DAT_LMR_TRIPLET, lmr_context, 0);
AT(DAT_LMR_TRIPLET, pad, 4);
AT(DAT_LMR_TRIPLET, virtual_address, 8);
AT(DAT_LMR_TRIPLET, segment_length, 16);
LONG(DAT_LMR_TRIPLET, segment_length);
SIZE(DAT_RMR_TRIPLET, 24);
AT(DAT_RMR_TRIPLET, rmr_context, 0);
AT(DAT_RMR_TRIPLET, pad, 4);
AT(DAT_RMR_TRIPLET, target_address, 8);
AT(DAT_RMR_TRIPLET, segment_length, 16);
LONG(DAT_RMR_TRIPLET, segment_length);

AT(DAT_DTO_COMPLETION_EVENT_DATA, status, 16);
AT(DAT_DTO_COMPLETION_EVENT_DATA, transfered_length, 24);
LONG(DAT_DTO_COMPLETION_EVENT_DATA, transfered_length);
AT(DAT_EVENT, evd_handle, 8);
AT(DAT_EVENT, event_data, 16);

SIZE(DAT_EP_ATTR, 104);
LONG(DAT_EP_ATTR, max_message_size);
LONG(DAT_EP_ATTR, max_rdma_size);
AT(DAT_EP_ATTR, max_message_size, 8);
AT(DAT_EP_ATTR, max_recv_dtos, 36);
AT(DAT_EP_ATTR, ep_provider_specific, 96);
SIZE(DAT_EP_PARAM, 192);
AT(DAT_EP_PARAM, local_ia_address_ptr, 16);
AT(DAT_EP_PARAM, srq_handle, 80);
AT(DAT_EP_PARAM, ep_attr, 88);
SIZE(DAT_RMR_PARAM, 48);
AT(DAT_RMR_PARAM, mem_priv, 40);
SIZE(DAT_CNO_PARAM, 24);
AT(DAT_CNO_PARAM, agent, 8);
IS(DAT_CNO_FIELD_ALL, 3);

/* equal in both interfaces */
SIZE(DAT_EVD_PARAM, 32);
SIZE(DAT_LMR_PARAM, 80);
SIZE(DAT_PSP_PARAM, 32);
SIZE(DAT_RSP_PARAM, 32);
SIZE(DAT_CR_PARAM, 40);
SIZE(DAT_SRQ_PARAM, 48);
SIZE(DAT_PROVIDER_INFO, 268);
SIZE(DAT_DTO_COOKIE, 8);
SIZE(DAT_IA_HANDLE, 8);

#ifdef VIEW
SIZE(DAT_EVENT, 120);
SIZE(DAT_EVENT, sizeof(DAT_V2_EVENT));
AT(DAT_EVENT, event_data, offsetof(DAT_V2_EVENT, event_data));
#else
SIZE(DAT_EVENT, 48);
SIZE(DAT_CR_ARRIVAL_EVENT_DATA, 32);
SIZE(DAT_PROVIDER_ATTR, 504);
SIZE(DAT_IA_ATTR, 688);
AT(DAT_IA_ATTR, max_message_size, 592);
LONG(DAT_IA_ATTR, max_message_size);
IS(DAT_IA_FIELD_ALL, 0x7ffffffffULL);
IS(DAT_EP_FIELD_ALL, 0x7ffff7ff);
IS(DAT_EP_FIELD_SRQ_HANDLE, 0x400);
IS(DAT_LMR_FIELD_ALL, 0x3ff);
IS(DAT_LMR_FIELD_LMR_CONTEXT, 0x40);
IS(DAT_RMR_FIELD_ALL, 0x1f);
IS(DAT_PROVIDER_FIELD_ALL, 0x3ffffff);
IS(DAT_NOT_IMPLEMENTED, 0x0fff0000);
IS(DAT_INVALID_HANDLE_SRQ, 0x19);
IS(DAT_INVALID_ARG1, 0x24);
IS(DAT_NAME_NOT_REGISTERED, 0x62);
IS(DAT_SRQ_STATE_OPERATIONAL, 0);
IS(DAT_SRQ_STATE_ERROR, 1);
IS(DAT_EP_STATE_COMPLETION_PENDING, 12);
#endif

int main(void)
{
	return 0;
}
