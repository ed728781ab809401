/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* api_handle.c - the calls that take any kind of handle: its type, its context, extensions; and the
 * conversion of IA handles for providers. */
#include "dat/api.h"

/* Returns the provider's object, or NULL for an integer that is no open IA. HND-2, 9. */
static inline DAT_HANDLE object_from(DAT_HANDLE handle)
{
	return no_object(handle) ? ia_from(handle) : handle;
}

EXPORT DAT_RETURN dat_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	DAT_HANDLE object = object_from(handle);

	if (!object)
		return BAD_HANDLE(1);
	return provider_of(object)->get_handle_type_func(object, type);
}

EXPORT DAT_RETURN dat_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context)
{
	DAT_HANDLE object = object_from(handle);

	if (!object)
		return BAD_HANDLE(1);
	return provider_of(object)->set_consumer_context_func(object, context);
}

EXPORT DAT_RETURN dat_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context)
{
	DAT_HANDLE object = object_from(handle);

	if (!object)
		return BAD_HANDLE(1);
	return provider_of(object)->get_consumer_context_func(object, context);
}

static DAT_RETURN extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	DAT_HANDLE object;

	if (op == DAT_CLOSE_EXTENSION_BASE)
		return ia_query_close(handle, args);
	if (!handle)
		return op == DAT_OPEN_EXTENSION_BASE ? ia_query_open(args) : BAD_HANDLE(1);
	if (!ia_extensions_seen())
		return NOT_IMPLEMENTED;
	object = object_from(handle);
	if (!object)
		return BAD_HANDLE(1);
	if (!provider_of(object)->handle_extendedop_func)
		return NOT_IMPLEMENTED;
	return provider_of(object)->handle_extendedop_func(object, op, args);
}

/* calls.md 2, registry.md 9. EXT-1, 2. */
EXPORT DAT_RETURN dat_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, ...)
{
	DAT_RETURN ret;
	va_list args;

	va_start(args, op);
	ret = extension_op(handle, op, args);
	va_end(args);
	return ret;
}

/* Converts both ways, for providers (registry.md 3): an integer to the provider's IA, the
 * provider's IA to its integer. REG-40, 41. */
EXPORT DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *result)
{
	DAT_IA_HANDLE other = is_ia_handle(handle) ? ia_from(handle) : ia_handle_of(handle);

	if (!other)
		return BAD_HANDLE(_IA);
	if (!result)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*result = other;
	return DAT_SUCCESS;
}
