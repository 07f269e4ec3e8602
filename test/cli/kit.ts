/** Data directories that the engine has made on a real disk, and the command line on them. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, lstat, mkdtemp, open, readdir, readFile, readlink, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Io, Output } from '../../src/cli/command.ts'
import { run } from '../../src/cli/run.ts'
import { type Broker, openBroker } from '../../src/index.ts'

export const ROOT: string = join(import.meta.dirname, '..', '..')
export const MAIN: string = join(ROOT, 'src', 'cli', 'main.ts')

const folders: string[] = []

/** An empty directory; `forgetFolders` removes all of them. */
export async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'odradek-cli-'))
  folders.push(path)
  return path
}

export async function forgetFolders(): Promise<void> {
  for (const path of folders.splice(0)) await rm(path, { recursive: true, force: true })
}

export const OPTIONS = { segmentBytes: 4_096, journalBytes: 1_048_576 } as const

/** 120 records over two partitions, a group that reads them, a transaction. */
export async function publishSome(broker: Broker): Promise<void> {
  const orders = await broker.createTopic<{ id: number; text: string }>('orders', { partitions: 2 })
  await using _ = await orders.subscribe(() => {}, { group: 'shippers' })
  for (let id = 0; id < 118; id++) {
    await orders.publish({ id, text: 'x'.repeat(60) }, { key: `k${id % 5}`, partition: id % 2 })
  }
  await broker.transaction(async (tx) => {
    tx.publish('orders', { id: 118, text: 'both' }, { partition: 0 })
    tx.publish('orders', { id: 119, text: 'or none' }, { partition: 1 })
  })
  await broker.idle()
}

/** A directory whose broker was closed: 60 records in each partition, in segments. */
export async function closedDirectory(): Promise<string> {
  const path = await folder()
  const broker = await openBroker(`file:${path}`, OPTIONS)
  await publishSome(broker)
  await broker.close()
  return path
}

/** What a process leaves that is killed, a copy of its directory while it is open: as many records again, in the journal. */
export async function leftDirectory(): Promise<string> {
  const path = await closedDirectory()
  const copy = await folder()
  const broker = await openBroker(`file:${path}`, OPTIONS)
  await publishSome(broker)
  await cp(path, copy, { recursive: true, filter: (source) => !source.endsWith('.sock') })
  await broker.close()
  return copy
}

export async function copyOf(path: string): Promise<string> {
  const copy = await folder()
  await cp(path, copy, { recursive: true, preserveTimestamps: true })
  return copy
}

export async function flipBit(path: string, position: number): Promise<void> {
  const file = await open(path, 'r+')
  try {
    const byte = new Uint8Array(1)
    await file.read(byte, 0, 1, position)
    await file.write(Uint8Array.of((byte[0] as number) ^ 4), 0, 1, position)
  } finally {
    await file.close()
  }
}

export async function cutAt(path: string, sizeBytes: number): Promise<void> {
  await truncate(path, sizeBytes)
}

/** All that is known of every file below `path` but when it was read last. */
export async function stateOf(path: string): Promise<ReadonlyMap<string, string>> {
  const state = new Map<string, string>()
  for (const name of ['', ...(await readdir(path, { recursive: true }))]) {
    const at = join(path, name)
    const { mode, size, mtimeNs, ctimeNs, ino, nlink } = await lstat(at, { bigint: true })
    state.set(name, `${mode} ${size} ${mtimeNs} ${ctimeNs} ${ino} ${nlink} ${await contentOf(at)}`)
  }
  return state
}

async function contentOf(path: string): Promise<string> {
  const stats = await lstat(path)
  if (stats.isSymbolicLink()) return readlink(path)
  return stats.isFile()
    ? createHash('sha256')
        .update(await readFile(path))
        .digest('hex')
    : ''
}

/** The segments of the partition, in order. */
export async function segmentsOf(path: string, partition = 0): Promise<string[]> {
  const directories = await readdir(join(path, 'logs'))
  const directory = directories.find((name) => name.endsWith(`-${partition}`)) as string
  const names = (await readdir(join(path, 'logs', directory))).filter((name) => name.endsWith('.log'))
  return names.sort().map((name) => `logs/${directory}/${name}`)
}

/** Of the first segment, which is sealed. */
export async function indexOf(path: string): Promise<string> {
  const [first] = await segmentsOf(path)
  return (first as string).replace(/log$/, 'index')
}

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export class Captured implements Output {
  text = ''
  readonly isTTY: boolean
  readonly #colors: boolean
  readonly #fail: Error | undefined

  constructor({ tty = false, colors = false, fail }: { tty?: boolean; colors?: boolean; fail?: Error } = {}) {
    this.isTTY = tty
    this.#colors = colors
    this.#fail = fail
  }

  write(text: string | Uint8Array, done: (error?: Error | null) => void): void {
    if (this.#fail === undefined) this.text += typeof text === 'string' ? text : Buffer.from(text).toString()
    done(this.#fail ?? null)
  }

  hasColors(): boolean {
    return this.#colors
  }
}

/** Runs the command in this process. */
export async function odradek(...args: readonly string[]): Promise<Ran> {
  return odradekWith({}, ...args)
}

export async function odradekWith(io: Partial<Io>, ...args: readonly string[]): Promise<Ran> {
  const [stdout, stderr] = [new Captured(), new Captured()]
  const code = await run(args, {
    stdout,
    stderr,
    stdin: async function* () {},
    env: {},
    monotonic: () => 0,
    interrupted: () => new AbortController().signal,
    ...io,
  })
  return { code, stdout: stdout.text, stderr: stderr.text }
}

/** Runs the program, from its source. `meanwhile` gets hold of the process. */
export function program(
  args: readonly string[],
  meanwhile: (child: ReturnType<typeof spawn>) => void = () => {},
  env: Readonly<Record<string, string>> = {},
): Promise<Ran & { readonly signal: NodeJS.Signals | null }> {
  const child = spawn(process.execPath, ['--import', 'tsx', MAIN, ...args], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  meanwhile(child)
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
}
