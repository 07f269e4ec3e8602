/**
 * Wrong on purpose: each marked line must fail to compile. A type test that is never compiled passes
 * silently; this file is compiled in the same run, so its complaints show that the checker looked.
 */
import { expectTypeOf } from 'vitest'

const text: string = 1 // wrong
expectTypeOf(text).toEqualTypeOf<number>() // wrong
expectTypeOf<{ a?: number }>().toEqualTypeOf<{ a?: number | undefined }>() // wrong
