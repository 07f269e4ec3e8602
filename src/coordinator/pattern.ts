/**
 * Regular expressions that clients send, matched as a whole. A pattern is somebody else's, and so is the text: where
 * JavaScript's own would go back and forth for minutes, this one takes steps in proportion to text times pattern. It runs
 * all ways through the pattern at once (Thompson's construction), character by character.
 *
 *   a(b|c)*d      char a ─► split ─┬─► char b ─┐        split ─► char d ─► match
 *                   ▲              └─► char c ─┴──────────┘ ▲
 *                   └ states of a step: a set of positions in the program
 *
 * The language is that of RE2 as far as people use it for names: literals, `.`, classes, `\d \w \s` and their opposites,
 * groups (also `(?:…)`), `|`, `*`, `+`, `?` (lazy or not: as a whole it is all the same), `{n,m}`, `^` and `$`. What it
 * does not know it refuses.
 */

export interface Pattern {
  matches(text: string): boolean
}

/** Repetitions are written out, so they count; a longer program is refused. */
const MAX_PROGRAM = 1_000
const MAX_REPEAT = 1_000
const MAX_DEPTH = 100

/** `undefined`: it is no pattern, or none that is understood here. */
export function patternOf(source: string): Pattern | undefined {
  try {
    const program: Step[] = []
    emit(new Parser([...source]).whole(), program)
    put(program, { op: 'match' })
    return { matches: (text) => runs(program, [...text]) }
  } catch (error) {
    if (error instanceof NotUnderstood) return undefined
    throw error
  }
}

class NotUnderstood extends Error {}

// ── the pattern as a tree ───────────────────────────────────────────────────────────────────────

type Test = (character: string) => boolean

type Node =
  | { readonly kind: 'test'; readonly test: Test }
  | { readonly kind: 'edge'; readonly at: 'start' | 'end' }
  | { readonly kind: 'sequence' | 'choice'; readonly parts: readonly Node[] }
  | { readonly kind: 'repeat'; readonly of: Node; readonly min: number; readonly max: number }

/**
 *   choice    sequence ('|' sequence)*
 *   sequence  (atom repeat?)*
 *   atom      '(' choice ')' | '[' class ']' | '.' | '^' | '$' | '\' escape | character
 *   repeat    ('*' | '+' | '?' | '{' n (',' m?)? '}') '?'?
 */
class Parser {
  readonly #source: readonly string[]
  #at = 0
  #depth = 0

  constructor(source: readonly string[]) {
    this.#source = source
  }

  whole(): Node {
    const node = this.#choice()
    if (this.#at < this.#source.length) throw new NotUnderstood()
    return node
  }

  get #next(): string | undefined {
    return this.#source[this.#at]
  }

  #takes(character: string): boolean {
    if (this.#next !== character) return false
    this.#at++
    return true
  }

  #take(): string {
    const character = this.#source[this.#at++]
    if (character === undefined) throw new NotUnderstood()
    return character
  }

  #choice(): Node {
    if (++this.#depth > MAX_DEPTH) throw new NotUnderstood()
    const parts = [this.#sequence()]
    while (this.#takes('|')) parts.push(this.#sequence())
    this.#depth--
    return parts.length === 1 ? (parts[0] as Node) : { kind: 'choice', parts }
  }

  #sequence(): Node {
    const parts: Node[] = []
    while (this.#next !== undefined && this.#next !== '|' && this.#next !== ')') {
      parts.push(this.#repeated(this.#atom()))
    }
    return { kind: 'sequence', parts }
  }

  #atom(): Node {
    const character = this.#take()
    switch (character) {
      case '(':
        return this.#group()
      case '[':
        return { kind: 'test', test: this.#class() }
      case '.':
        return { kind: 'test', test: (each) => each !== '\n' }
      case '^':
        return { kind: 'edge', at: 'start' }
      case '$':
        return { kind: 'edge', at: 'end' }
      case '\\':
        return { kind: 'test', test: escaped(this.#take()) }
      case '*':
      case '+':
      case '?':
      case '{':
        throw new NotUnderstood()
      default:
        return { kind: 'test', test: (each) => each === character }
    }
  }

  #group(): Node {
    if (this.#takes('?') && !this.#takes(':')) throw new NotUnderstood()
    const node = this.#choice()
    if (!this.#takes(')')) throw new NotUnderstood()
    return node
  }

  #class(): Test {
    const negated = this.#takes('^')
    const tests: Test[] = []
    do tests.push(this.#range())
    while (!this.#takes(']'))
    return (each) => tests.some((test) => test(each)) !== negated
  }

  #range(): Test {
    const from = this.#take()
    if (from === '[' && this.#next === ':') throw new NotUnderstood()
    if (from === '\\') return escaped(this.#take())
    if (this.#next !== '-' || this.#source[this.#at + 1] === ']') return (each) => each === from
    this.#at++
    const to = this.#take()
    if (to === '\\' || to < from) throw new NotUnderstood()
    return (each) => each >= from && each <= to
  }

  #repeated(of: Node): Node {
    const bounds = this.#bounds()
    if (bounds === undefined) return of
    this.#takes('?')
    if (this.#next !== undefined && '*+?{'.includes(this.#next)) throw new NotUnderstood()
    return { kind: 'repeat', of, min: bounds[0], max: bounds[1] }
  }

  #bounds(): readonly [min: number, max: number] | undefined {
    if (this.#takes('*')) return [0, Number.POSITIVE_INFINITY]
    if (this.#takes('+')) return [1, Number.POSITIVE_INFINITY]
    if (this.#takes('?')) return [0, 1]
    if (!this.#takes('{')) return undefined
    const min = this.#number()
    let max = min
    if (this.#takes(',')) max = this.#next === '}' ? Number.POSITIVE_INFINITY : this.#number()
    const bounded = max === Number.POSITIVE_INFINITY ? min : max
    if (!this.#takes('}') || max < min || bounded > MAX_REPEAT) throw new NotUnderstood()
    return [min, max]
  }

  #number(): number {
    let digits = ''
    while (this.#next !== undefined && isDigit(this.#next)) digits += this.#take()
    if (digits === '') throw new NotUnderstood()
    return Number(digits)
  }
}

const isDigit: Test = (each) => each >= '0' && each <= '9'
const isWord: Test = (each) => /^\w$/.test(each)
const isSpace: Test = (each) => '\t\n\f\r '.includes(each)

function escaped(character: string): Test {
  switch (character) {
    case 'd':
      return isDigit
    case 'D':
      return (each) => !isDigit(each)
    case 'w':
      return isWord
    case 'W':
      return (each) => !isWord(each)
    case 's':
      return isSpace
    case 'S':
      return (each) => !isSpace(each)
    case 't':
      return (each) => each === '\t'
    case 'n':
      return (each) => each === '\n'
    default:
      // Other letters and digits mean something that is not known here.
      if (isWord(character) && character !== '_') throw new NotUnderstood()
      return (each) => each === character
  }
}

// ── the pattern as a program ────────────────────────────────────────────────────────────────────

type Step =
  | { readonly op: 'test'; readonly test: Test }
  | { readonly op: 'edge'; readonly at: 'start' | 'end' }
  | { readonly op: 'split'; to: readonly number[] }
  | { readonly op: 'match' }

function put<S extends Step>(program: Step[], step: S): S {
  if (program.length >= MAX_PROGRAM) throw new NotUnderstood()
  program.push(step)
  return step
}

function emit(node: Node, program: Step[]): void {
  switch (node.kind) {
    case 'test':
      put(program, { op: 'test', test: node.test })
      return
    case 'edge':
      put(program, { op: 'edge', at: node.at })
      return
    case 'sequence':
      for (const part of node.parts) emit(part, program)
      return
    case 'choice':
      emitChoice(node.parts, program)
      return
    default:
      emitRepeat(node.of, node.min, node.max, program)
  }
}

function emitChoice(parts: readonly Node[], program: Step[]): void {
  const split = put(program, { op: 'split', to: [] as readonly number[] })
  const starts: number[] = []
  const ends: { to: readonly number[] }[] = []
  for (const part of parts) {
    starts.push(program.length)
    emit(part, program)
    ends.push(put(program, { op: 'split', to: [] as readonly number[] }))
  }
  split.to = starts
  for (const end of ends) end.to = [program.length]
}

function emitRepeat(of: Node, min: number, max: number, program: Step[]): void {
  for (let i = 0; i < min; i++) emit(of, program)
  if (max === Number.POSITIVE_INFINITY) {
    const at = program.length
    const split = put(program, { op: 'split', to: [] as readonly number[] })
    emit(of, program)
    put(program, { op: 'split', to: [at] })
    split.to = [at + 1, program.length]
    return
  }
  const exits: { to: readonly number[] }[] = []
  for (let i = min; i < max; i++) {
    const split = put(program, { op: 'split', to: [program.length + 1] as readonly number[] })
    exits.push(split)
    emit(of, program)
  }
  for (const exit of exits) exit.to = [...exit.to, program.length]
}

// ── running it ──────────────────────────────────────────────────────────────────────────────────

function runs(program: readonly Step[], text: readonly string[]): boolean {
  let states = reached(program, [0], 0, text.length)
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string
    const next: number[] = []
    for (const state of states) {
      const step = program[state] as Step
      if (step.op === 'test' && step.test(character)) next.push(state + 1)
    }
    if (next.length === 0) return false
    states = reached(program, next, at + 1, text.length)
  }
  return states.has(program.length - 1)
}

/** All that is reached from `from` without a character. */
function reached(program: readonly Step[], from: number[], at: number, end: number): Set<number> {
  const states = new Set<number>()
  const todo = from
  for (let state = todo.pop(); state !== undefined; state = todo.pop()) {
    if (states.has(state)) continue
    states.add(state)
    const step = program[state] as Step
    if (step.op === 'split') todo.push(...step.to)
    else if (step.op === 'edge' && at === (step.at === 'start' ? 0 : end)) todo.push(state + 1)
  }
  return states
}
