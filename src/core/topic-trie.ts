/**
 * Which patterns match a topic, found level by level instead of pattern by pattern.
 *
 *   orders.*  →  orders ─ * {audit}          a topic's levels are walked once; at each node at most two
 *   orders.#  →  orders {# billing}          ways go on (the literal child and `*`), and `#` is looked
 *   orders.eu →  orders ─ eu {mirror}        at where it stands, since it is always last
 *
 * `*` is exactly one level, `#` the rest, none included. Dead letters (`dlq.`) and internal topics (`__`)
 * are matched only by patterns whose first level names them, so that `#` does not read its own failures.
 */
import { OdradekError } from '../model/errors.ts'
import { MAX_TOPIC_NAME } from '../model/limits.ts'
import { showName } from './names.ts'

const LITERAL_LEVEL = /^[a-zA-Z0-9_-]+$/

/** Whether a name to subscribe to means more than one topic. */
export function isPattern(name: string): boolean {
  return typeof name === 'string' && (name.includes('*') || name.includes('#'))
}

/** @throws OdradekError INVALID_TOPIC for what is neither a name nor a well-formed pattern. */
export function checkPattern(pattern: string): void {
  if (pattern.length > MAX_TOPIC_NAME) {
    throw refused(pattern, `is longer than ${MAX_TOPIC_NAME} characters`)
  }
  const levels = pattern.split('.')
  for (const [index, level] of levels.entries()) {
    if (level === '*' || LITERAL_LEVEL.test(level)) continue
    if (level === '#') {
      if (index === levels.length - 1) continue
      throw refused(pattern, '"#" stands for all remaining levels, so it can only be the last one')
    }
    if (level === '') throw refused(pattern, 'has an empty level')
    if (isPattern(level)) throw refused(pattern, `a wildcard must be a level of its own, unlike "${level}"`)
    throw refused(pattern, `"${level}" has characters other than letters, digits, "_" and "-"`)
  }
}

function refused(pattern: string, why: string): OdradekError {
  return new OdradekError('INVALID_TOPIC', `pattern ${showName(pattern)}: ${why}`)
}

/** Topics that a wildcard in the first level does not reach. */
function isReserved(topic: string): boolean {
  return topic.startsWith('dlq.') || topic.startsWith('__')
}

class Node<T> {
  readonly children = new Map<string, Node<T>>()
  /** Values of patterns that end here, `#` among the children included. */
  readonly values = new Set<T>()

  get isEmpty(): boolean {
    return this.children.size === 0 && this.values.size === 0
  }
}

export class TopicTrie<T> {
  readonly #root = new Node<T>()
  #size = 0

  /** Pairs of pattern and value. */
  get size(): number {
    return this.#size
  }

  /** Adds a pair; adding it again changes nothing. @throws OdradekError INVALID_TOPIC */
  add(pattern: string, value: T): void {
    checkPattern(pattern)
    let node = this.#root
    for (const level of pattern.split('.')) {
      let child = node.children.get(level)
      if (child === undefined) {
        child = new Node()
        node.children.set(level, child)
      }
      node = child
    }
    if (node.values.has(value)) return
    node.values.add(value)
    this.#size++
  }

  /** Takes a pair out, and the nodes only it needed; says whether it was there. */
  remove(pattern: string, value: T): boolean {
    const removed = removeBelow(this.#root, pattern.split('.'), 0, value)
    if (removed) this.#size--
    return removed
  }

  /** The values of all patterns that match, each once, in no particular order. */
  match(topic: string): T[] {
    const found = new Set<T>()
    const levels = topic.split('.')
    if (isReserved(topic)) {
      const first = this.#root.children.get(levels[0] as string)
      if (first !== undefined) collect(first, levels, 1, found)
    } else {
      collect(this.#root, levels, 0, found)
    }
    return [...found]
  }
}

function collect<T>(node: Node<T>, levels: readonly string[], depth: number, found: Set<T>): void {
  const rest = node.children.get('#')
  if (rest !== undefined) for (const value of rest.values) found.add(value)
  if (depth === levels.length) {
    for (const value of node.values) found.add(value)
    return
  }
  const literal = node.children.get(levels[depth] as string)
  if (literal !== undefined) collect(literal, levels, depth + 1, found)
  const any = node.children.get('*')
  if (any !== undefined) collect(any, levels, depth + 1, found)
}

function removeBelow<T>(node: Node<T>, levels: readonly string[], depth: number, value: T): boolean {
  if (depth === levels.length) return node.values.delete(value)
  const level = levels[depth] as string
  const child = node.children.get(level)
  if (child === undefined || !removeBelow(child, levels, depth + 1, value)) return false
  if (child.isEmpty) node.children.delete(level)
  return true
}
