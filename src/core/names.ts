/** Which names topics, groups and readers may have, and what to tell who chose another. */
import { OdradekError } from '../model/errors.ts'
import { MAX_TOPIC_NAME } from '../model/limits.ts'

/** Kafka's bound for topic names, used for ids, groups and dead letters. Other topics leave room for `dlq.`. */
const MAX_NAME = 249

/** What the default name of a dead-letter topic begins with. */
export const DLQ_PREFIX = 'dlq.'

/** What nobody can see or type: controls, format characters, line breaks, lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

/** The name, if a topic may have it. @throws OdradekError INVALID_TOPIC */
export function checkTopicName(name: unknown): string {
  const bad = (why: string): OdradekError =>
    new OdradekError('INVALID_TOPIC', `topic ${showName(name)}: ${why}`)
  if (typeof name !== 'string') throw bad('a name must be a string')
  if (name === '') throw bad('a name must not be empty')
  const most = name.startsWith(DLQ_PREFIX) ? MAX_NAME : MAX_TOPIC_NAME
  if (name.length > most) throw bad(`a name has at most ${most} characters, not ${name.length}`)
  if (name === '.' || name === '..') throw bad('"." and ".." are taken by file systems, choose another name')
  const strange = /[^a-zA-Z0-9._-]/u.exec(name)?.[0]
  if (strange === '*' || strange === '#') {
    throw bad(`"${strange}" makes a pattern, which can be subscribed to but is not a topic`)
  }
  if (strange !== undefined)
    throw bad(`${showName(strange)} is not allowed, use letters, digits, ".", "_" and "-"`)
  return name
}

/** Equal for names that differ in `.` and `_` only: as in Kafka, metrics could not tell them apart. */
export function collisionKey(name: string): string {
  return name.replaceAll('.', '_')
}

/** The id or group name, if it may be one. `what` begins the message. @throws OdradekError INVALID_ARGUMENT */
export function checkName(what: string, name: unknown): string {
  const bad = (why: string): OdradekError =>
    new OdradekError('INVALID_ARGUMENT', `${what} ${showName(name)}: ${why}`)
  if (typeof name !== 'string') throw bad('it must be a string')
  if (name === '') throw bad('it must not be empty')
  if (name.length > MAX_NAME) throw bad(`it has at most ${MAX_NAME} characters, not ${name.length}`)
  if (UNPRINTABLE.test(name)) throw bad('it has characters that cannot be printed')
  return name
}

/** A name as messages show it: quoted, escaped where needed, and short. */
export function showName(name: unknown): string {
  if (typeof name !== 'string') return name === null ? 'null' : typeof name
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name)
}
