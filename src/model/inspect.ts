/**
 * What `console.log` shows of our classes, whose state is private and would show as `{}`. It is the symbol that Node, Bun
 * and Deno look for, a plain one of the language: in a browser it is a method that nobody calls.
 */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom')
