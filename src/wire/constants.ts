/** Values that several messages share. */

export const MAX_INT32: number = 2 ** 31 - 1
/** Authorized operations that were not asked for. */
export const UNKNOWN_OPERATIONS: number = -(2 ** 31)
