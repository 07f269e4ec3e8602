/**
 * One process owns a data directory, and in it one broker.
 *
 *   lock.6                  of an owner before, who is gone; removed by the next
 *   lock.7                  JSON of the owner, or empty after a release: the highest number decides
 *   lock.4f1c09ab.sock      the socket that the owner listens on, named in its JSON
 *
 * A lock is taken in three steps, of which the second is atomic: listen on a socket of one's own, link a complete
 * file as the next number, look whether a higher one is there. So of all who find an owner dead one gets the next
 * number, and a lock whose owner lives never shows without its socket. The file with the highest number is never
 * removed, only emptied: who looked long ago and comes late with an old number finds a higher one, and gives way.
 *
 * An owner lives while its socket answers. The kernel closes that with the last thread of a process, however it
 * ended, writes under way included, while a process id is soon another's, or always 1 in containers. In case only
 * the socket's file was removed, a process of this boot with the same id and start time counts as the owner too,
 * unless the directory is a copy. A socket in the directory is seen from other containers that share it, not from
 * other machines: a data directory belongs on a disk of one machine.
 */
import { randomBytes } from 'node:crypto'
import {
  link,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { createConnection, createServer, type Server } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { SystemClock } from '../../model/clock.ts'
import { OdradekError } from '../../model/errors.ts'
import { closeQuietly } from './close-all.ts'
import { storageError, systemCode } from './fs.ts'

export interface DirectoryLock {
  /** Gives the directory free; harmless when it is. */
  release(): Promise<void>
}

export interface LockOwner {
  readonly pid: number
  readonly host: string
  /** Milliseconds since the epoch. */
  readonly sinceMs: number
}

interface Owner extends LockOwner {
  /** Since the machine started, in the kernel's ticks; with it a process id is no other's. */
  readonly startTicks: string | undefined
  readonly bootId: string | undefined
  readonly socket: string
  /** Device and number of the directory: a copy has another. */
  readonly directory: string
}

/** A path of a socket holds 108 bytes, on macOS 104, with a zero at the end. */
const MAX_SOCKET_PATH_BYTES = 100
/** Windows has named pipes instead, which live as long as their process. */
const PIPES = '\\\\.\\pipe\\'

/**
 * Takes the directory, which exists.
 * @throws OdradekError DATA_LOCKED while somebody owns it, STORAGE_ERROR, STORAGE_FULL.
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const path = resolve(directory)
  try {
    for (;;) {
      const newest = await newestNumber(path)
      await refuseIfOwned(path, newest)
      const lock = await take(path, newest + 1)
      if (lock !== undefined) return lock
    }
  } catch (error) {
    if (error instanceof OdradekError) throw error
    throw storageError('lock', path, error)
  }
}

// ── Who owns it ────────────────────────────────────────────────────────────────────────────────────────

async function newestNumber(path: string): Promise<number> {
  return Math.max(0, ...(await numbers(path)))
}

async function numbers(path: string): Promise<number[]> {
  const names = await readdir(path)
  return names
    .filter((name) => /^lock\.\d{1,15}$/.test(name))
    .map((name) => Number(name.slice('lock.'.length)))
}

function fileOf(path: string, number: number): string {
  return join(path, `lock.${number}`)
}

/** Who owns the directory now, if anybody does. Nothing in it is changed. @throws OdradekError STORAGE_ERROR */
export async function lockOwner(directory: string): Promise<LockOwner | undefined> {
  const path = resolve(directory)
  try {
    return await livingOwner(path, await newestNumber(path))
  } catch (error) {
    throw storageError('exists', path, error)
  }
}

async function livingOwner(path: string, number: number): Promise<Owner | undefined> {
  const owner = await readOwner(path, number)
  return owner !== undefined && (await lives(path, owner)) ? owner : undefined
}

async function refuseIfOwned(path: string, number: number): Promise<void> {
  const owner = await livingOwner(path, number)
  if (owner === undefined) return
  const own = owner.pid === process.pid && owner.startTicks === (await startTicks(process.pid))
  const who = own ? 'another broker of this process' : `process ${owner.pid} on ${owner.host}`
  throw new OdradekError(
    'DATA_LOCKED',
    `${path} is owned by ${who} since ${new Date(owner.sinceMs).toISOString()}; close it there, or take another directory`,
  )
}

/** What is no whole JSON has no owner: a released lock is empty, and a power loss leaves anything. */
async function readOwner(path: string, number: number): Promise<Owner | undefined> {
  const text = await unlessGone(readFile(fileOf(path, number), 'utf8'))
  try {
    const owner = JSON.parse(text ?? '') as Partial<Owner> | null
    const whole =
      typeof owner?.socket === 'string' && Number.isSafeInteger(owner.pid) && Number.isFinite(owner.sinceMs)
    return whole ? (owner as Owner) : undefined
  } catch {
    return undefined
  }
}

async function lives(path: string, owner: Owner): Promise<boolean> {
  if (await answers(path, owner.socket)) return true
  if (owner.bootId === undefined || owner.bootId !== (await bootId())) return false
  if (owner.startTicks === undefined || owner.startTicks !== (await startTicks(owner.pid))) return false
  return owner.directory === (await identity(path))
}

/** Whether somebody listens. Only a refusal says no: a listener may be too busy, or another user's. */
function answers(path: string, socket: string): Promise<boolean> {
  return withShortPath(path, socket, (address) => {
    return new Promise<boolean>((resolve) => {
      const connection = createConnection(address)
      connection.on('connect', () => {
        connection.destroy()
        resolve(true)
      })
      connection.on('error', (error) =>
        resolve(!['ECONNREFUSED', 'ENOENT'].includes(systemCode(error) ?? '')),
      )
    })
  })
}

async function bootId(): Promise<string | undefined> {
  return (await procFile('sys/kernel/random/boot_id'))?.trim()
}

/** Undefined when there is no such process, when it is dead and only not yet fetched, or without /proc. */
async function startTicks(pid: number): Promise<string | undefined> {
  const status = await procFile(`${pid}/stat`)
  // The name in brackets may hold anything, brackets too. After it: state, and start time as the 20th.
  const fields = status?.slice(status.lastIndexOf(')') + 2).split(' ')
  return fields === undefined || 'ZX'.includes(fields[0] ?? 'X') ? undefined : fields[19]
}

async function procFile(name: string): Promise<string | undefined> {
  try {
    return await readFile(join('/proc', name), 'utf8')
  } catch {
    // No Linux, or no such process: the socket alone decides.
    return undefined
  }
}

async function identity(path: string): Promise<string> {
  const { dev, ino } = await stat(path, { bigint: true })
  return `${dev}:${ino}`
}

// ── Taking it ──────────────────────────────────────────────────────────────────────────────────────────

/** Undefined when somebody else was faster. */
async function take(path: string, number: number): Promise<DirectoryLock | undefined> {
  const nonce = randomBytes(4).toString('hex')
  const socket = process.platform === 'win32' ? `${PIPES}odradek-${nonce}` : `lock.${nonce}.sock`
  const server = await listen(path, socket)
  let lock = new HeldLock(path, socket, server, undefined)
  try {
    if (await linked(path, number, nonce, await ourselves(path, socket))) {
      lock = new HeldLock(path, socket, server, number)
      if (await stands(path, number, socket)) {
        await removeOld(path, number, socket)
        return lock
      }
    }
  } catch (error) {
    await closeQuietly([() => lock.release()])
    throw error
  }
  await lock.release()
  return undefined
}

async function listen(path: string, socket: string): Promise<Server> {
  const server = createServer((connection) => connection.destroy())
  try {
    await withShortPath(path, socket, (address) => {
      return new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(address, resolve)
      })
    })
  } catch (error) {
    // It may listen already, and would keep the process.
    server.close()
    throw error
  }
  // One who asks was not let in, for want of handles say: he was answered all the same.
  server.on('error', () => {})
  return server.unref()
}

async function ourselves(path: string, socket: string): Promise<Owner> {
  return {
    pid: process.pid,
    startTicks: await startTicks(process.pid),
    bootId: await bootId(),
    host: hostname(),
    sinceMs: new SystemClock().now(),
    socket,
    directory: await identity(path),
  }
}

/** A link appears with all that it holds, or fails when the name is taken. */
async function linked(path: string, number: number, nonce: string, owner: Owner): Promise<boolean> {
  const aside = join(path, `lock.${nonce}.new`)
  await writeFile(aside, `${JSON.stringify(owner)}\n`, { flag: 'wx', mode: 0o600 })
  try {
    await link(aside, fileOf(path, number))
    return true
  } catch (error) {
    // Taken; or the owner of it has already swept away what we put aside.
    if (['EEXIST', 'ENOENT'].includes(systemCode(error) ?? '')) return false
    throw error
  } finally {
    await unlessGone(unlink(aside))
  }
}

/** Whether ours is the newest number, and the socket was not swept away by an owner of before. */
async function stands(path: string, number: number, socket: string): Promise<boolean> {
  if ((await newestNumber(path)) !== number) return false
  return socket.startsWith(PIPES) || (await unlessGone(stat(join(path, socket)))) !== undefined
}

/** What owners before left, and those that came second, who find out by themselves. */
async function removeOld(path: string, number: number, socket: string): Promise<void> {
  for (const old of await numbers(path)) if (old < number) await unlessGone(unlink(fileOf(path, old)))
  for (const name of await readdir(path)) {
    if (/^lock\.[0-9a-f]{8}\.(?:sock|new)$/.test(name) && name !== socket)
      await unlessGone(unlink(join(path, name)))
  }
}

class HeldLock implements DirectoryLock {
  readonly #path: string
  readonly #socket: string
  readonly #server: Server
  readonly #number: number | undefined
  #released: Promise<void> | undefined

  /** Without a number: not yet more than a socket. */
  constructor(path: string, socket: string, server: Server, number: number | undefined) {
    this.#path = path
    this.#socket = socket
    this.#server = server
    this.#number = number
  }

  release(): Promise<void> {
    this.#released ??= this.#release()
    return this.#released
  }

  async #release(): Promise<void> {
    try {
      if (this.#number !== undefined) await unlessGone(truncate(fileOf(this.#path, this.#number)))
    } catch (error) {
      throw storageError('lock', this.#path, error)
    } finally {
      await new Promise((resolve) => this.#server.close(resolve))
      if (!this.#socket.startsWith(PIPES)) await rm(join(this.#path, this.#socket), { force: true })
    }
  }
}

// ── Small things ───────────────────────────────────────────────────────────────────────────────────────

/** The address of a socket in the directory, by a link of a short name if its path is too long for a socket. */
async function withShortPath<T>(
  path: string,
  socket: string,
  work: (address: string) => Promise<T>,
): Promise<T> {
  const address = socket.startsWith(PIPES) ? socket : join(path, socket)
  if (Buffer.byteLength(address) <= MAX_SOCKET_PATH_BYTES || address === socket) {
    return work(address)
  }
  const directory = await mkdtemp(join(tmpdir(), 'odradek-'))
  try {
    await symlink(path, join(directory, 'd'))
    return await work(join(directory, 'd', socket))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function unlessGone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw error
  }
}
