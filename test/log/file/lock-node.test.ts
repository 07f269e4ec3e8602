/** One owner per data directory, whatever the others die of; in this process and in others. */
import { type ChildProcess, spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { NodeFileSystem } from '../../../src/log/file/fs-node.ts'
import { type DirectoryLock, lockDirectory } from '../../../src/log/file/lock-node.ts'
import { codeOf } from '../../support/world.ts'

/** Called instead of the link that takes a number. */
type Link = (from: string, to: string) => Promise<void>
const hooks = vi.hoisted(() => ({
  link: undefined as ((real: Link, from: string, to: string) => Promise<void>) | undefined,
}))
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>()
  const link: Link = (from, to) =>
    hooks.link === undefined ? real.link(from, to) : hooks.link(real.link as Link, from, to)
  return { ...real, link }
})

let directory: string
let children: ChildProcess[]

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'odradek-lock-'))
  children = []
})
afterEach(async () => {
  hooks.link = undefined
  for (const child of children) child.kill('SIGKILL')
  await rm(directory, { recursive: true, force: true })
})

const HOLDER = [process.execPath, '--import', 'tsx', join(import.meta.dirname, 'lock-holder.ts')]

interface Holder {
  readonly pid: number
  readonly child: ChildProcess
  tell(line: string): Promise<string>
}

/** Another process that locks; `adopted`: below a parent that never asks how it ended. */
async function holder(adopted = false): Promise<Holder> {
  const [command = '', ...args] = adopted
    ? ['sh', '-c', 'exec 3<&0; "$@" <&3 & exec sleep 60 >/dev/null 2>&1', 'sh', ...HOLDER]
    : HOLDER
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  children.push(child)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const pid = Number((await lines.next()).value)
  const tell = async (line: string): Promise<string> => {
    child.stdin.write(`${line}\n`)
    return String((await lines.next()).value)
  }
  return { pid, child, tell }
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once('exit', resolve))
}

function turn(): Promise<undefined> {
  return new Promise((resolve) => setImmediate(() => resolve(undefined)))
}

/** R, S, … or Z for a process that is dead, but that its parent has not asked about. */
async function stateOf(pid: number): Promise<string> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8')
  return status.slice(status.lastIndexOf(')') + 2).charAt(0)
}

const lockFiles = async (path = directory): Promise<string[]> =>
  (await readdir(path)).filter((name) => name.startsWith('lock'))

/** Puts a lock there as this process would write it, but for what is said. */
async function forge(number: number, changes: object): Promise<void> {
  const sample = join(directory, 'sample')
  await mkdir(sample, { recursive: true })
  const lock = await lockDirectory(sample)
  const name = (await lockFiles(sample)).find((each) => /^lock\.\d+$/.test(each)) ?? ''
  const owner = JSON.parse(await readFile(join(sample, name), 'utf8')) as object
  await lock.release()
  const { dev, ino } = await stat(directory, { bigint: true })
  const forged = { ...owner, directory: `${dev}:${ino}`, socket: 'lock.00000000.sock', ...changes }
  await writeFile(join(directory, `lock.${number}`), JSON.stringify(forged))
}

describe('a lock on a directory', () => {
  it('refuses a second broker of the same process, and says so', async () => {
    const lock = await lockDirectory(directory)
    await expect(lockDirectory(directory)).rejects.toMatchObject({
      code: 'DATA_LOCKED',
      message: expect.stringMatching(
        /is owned by another broker of this process since \d{4}-\d\d-\d\dT[\d:.]+Z; close it there, or/,
      ),
    })
    await lock.release()
  })

  it('refuses another process, and names the one that owns it', async () => {
    const other = await holder()
    expect(await other.tell(`lock ${directory}`)).toBe('locked')
    await expect(lockDirectory(directory)).rejects.toMatchObject({
      code: 'DATA_LOCKED',
      message: expect.stringContaining(`is owned by process ${other.pid} on `),
    })
    expect(await other.tell('release')).toBe('released')
    const lock = await lockDirectory(directory)
    expect(await other.tell(`lock ${directory}`)).toBe('DATA_LOCKED')
    await lock.release()
  })

  it('can be released, again too, and taken again, and leaves an empty file behind', async () => {
    for (let i = 0; i < 5; i++) {
      const lock = await lockDirectory(directory)
      expect(await codeOf(lockDirectory(directory))).toBe('DATA_LOCKED')
      await lock.release()
      await lock.release()
    }
    expect(await lockFiles()).toEqual(['lock.5'])
    expect((await stat(join(directory, 'lock.5'))).size).toBe(0)
  })

  it('sweeps away what owners before it left', async () => {
    for (const name of ['lock.7', 'lock.6', 'lock.0a1b2c3d.sock', 'lock.0a1b2c3d.new', 'lock.txt']) {
      await writeFile(join(directory, name), '')
    }
    const lock = await lockDirectory(directory)
    const files = await lockFiles()
    expect(files).toEqual([
      expect.stringMatching(/^lock\.[0-9a-f]{8}\.sock$|^lock\.8$/),
      expect.any(String),
      'lock.txt',
    ])
    expect(files).toContain('lock.8')
    expect((await stat(join(directory, 'lock.8'))).mode & 0o777).toBe(0o600)
    await lock.release()
  })

  it('does not keep a process alive', async () => {
    const other = await holder()
    expect(await other.tell(`lock ${directory}`)).toBe('locked')
    const end = ended(other.child)
    other.child.stdin?.end()
    expect(await end).toBe(0)
    await (await lockDirectory(directory)).release()
  })

  it('works where the path is too long for a socket, and leaves nothing in the directory for temporary files', async () => {
    const temporary = join(directory, 't')
    const long = join(directory, 'x'.repeat(60), 'y'.repeat(60))
    await mkdir(temporary)
    await mkdir(long, { recursive: true })
    vi.stubEnv('TMPDIR', temporary)
    const lock = await lockDirectory(long)
    expect(await codeOf(lockDirectory(long))).toBe('DATA_LOCKED')
    await lock.release()
    expect(await lockFiles(long)).toEqual(['lock.1'])
    const again = await lockDirectory(long)
    await again.release()
    expect(await readdir(temporary)).toEqual([])
    vi.unstubAllEnvs()
  })

  it('is released without harm when the directory is gone', async () => {
    const lock = await lockDirectory(directory)
    await rm(directory, { recursive: true })
    await lock.release()
  })

  it('is free even if its file cannot be emptied, which is said', async () => {
    const lock = await lockDirectory(directory)
    await unlink(join(directory, 'lock.1'))
    await mkdir(join(directory, 'lock.1'))
    expect(await codeOf(lock.release())).toBe('STORAGE_ERROR')
    expect(await lockFiles()).toEqual(['lock.1'])
    await rm(join(directory, 'lock.1'), { recursive: true })
    await (await lockDirectory(directory)).release()
  })

  it('is a pipe on Windows, which has no file in the directory', async () => {
    const { platform } = process
    const here = process.cwd()
    try {
      // Elsewhere a pipe's name is that of a socket in the working directory.
      process.chdir(directory)
      Object.defineProperty(process, 'platform', { value: 'win32' })
      const data = join(directory, 'data')
      await NodeFileSystem.at(data)
      const lock = await lockDirectory(data)
      expect(await lockFiles(data)).toEqual(['lock.1'])
      expect(await codeOf(lockDirectory(data))).toBe('DATA_LOCKED')
      await lock.release()
      await (await lockDirectory(data)).release()
    } finally {
      Object.defineProperty(process, 'platform', { value: platform })
      process.chdir(here)
    }
  })

  it('needs a directory, and says what is wrong otherwise', async () => {
    const file = join(directory, 'file')
    await writeFile(file, '')
    await expect(lockDirectory(join(directory, 'nowhere'))).rejects.toMatchObject({
      code: 'STORAGE_ERROR',
      message: expect.stringMatching(/^cannot lock .*nowhere: ENOENT/),
    })
    expect(await codeOf(lockDirectory(file))).toBe('STORAGE_ERROR')
  })
})

describe('a lock whose owner is gone', () => {
  it('is taken over after kill -9', async () => {
    const other = await holder()
    expect(await other.tell(`lock ${directory}`)).toBe('locked')
    expect(await codeOf(lockDirectory(directory))).toBe('DATA_LOCKED')
    const end = ended(other.child)
    other.child.kill('SIGKILL')
    await end
    const lock = await lockDirectory(directory)
    await lock.release()
    expect(await lockFiles()).toEqual(['lock.2'])
  })

  it.runIf(process.platform === 'linux')(
    'is taken over while its parent has not yet asked how it ended',
    async () => {
      const other = await holder(true)
      expect(await other.tell(`lock ${directory}`)).toBe('locked')
      process.kill(other.pid, 'SIGKILL')
      // Its threads end one by one, the socket with the last: until then it is refused, and rightly.
      while ((await stateOf(other.pid)) !== 'Z') await turn()
      let lock: DirectoryLock | undefined
      while (lock === undefined) lock = await lockDirectory(directory).catch(turn)
      expect(await stateOf(other.pid)).toBe('Z')
      await lock.release()
    },
  )

  it.each([
    ['whose process id is another process now', { startTicks: '1' }],
    ['of another boot', { bootId: 'of another boot' }],
    ['of a system that knows no boots', { bootId: undefined }],
    ['of a system that knows no start times', { startTicks: undefined }],
    ['whose process is gone', { pid: 0x3fff_ffff }],
    ['in a copy of the directory', { directory: '1:1' }],
  ])('is taken over: one %s', async (_, changes) => {
    await forge(3, changes)
    const lock = await lockDirectory(directory)
    expect(await lockFiles()).toContain('lock.4')
    await lock.release()
  })

  it.each([
    ['nothing', ''],
    ['zeros', '\0'.repeat(300)],
    ['a part', '{"pid":1,"sock'],
    ['null', 'null'],
    ['another thing', '[1,2]'],
    ['no process', '{"socket":"lock.00000000.sock","sinceMs":1}'],
    ['no time', '{"socket":"lock.00000000.sock","pid":1}'],
  ])('is free when a power loss left %s of it', async (_, left) => {
    await writeFile(join(directory, 'lock.3'), left)
    await (await lockDirectory(directory)).release()
  })

  it.runIf(process.platform === 'linux')(
    'is refused while the process lives, though its socket was removed',
    async () => {
      await forge(3, {})
      expect(await codeOf(lockDirectory(directory))).toBe('DATA_LOCKED')
    },
  )

  it('is refused while its socket answers, whatever its process is called where it runs', async () => {
    const lock = await lockDirectory(directory)
    const path = join(directory, 'lock.1')
    const owner = JSON.parse(await readFile(path, 'utf8')) as object
    await writeFile(path, JSON.stringify({ ...owner, pid: 1, startTicks: '1', host: 'a-container' }))
    await expect(lockDirectory(directory)).rejects.toMatchObject({
      code: 'DATA_LOCKED',
      message: expect.stringContaining('process 1 on a-container since'),
    })
    await lock.release()
  })

  it('is refused while nobody knows whether its socket is listened on', async () => {
    await writeFile(join(directory, 'file'), '')
    await forge(3, { bootId: 'of another boot', socket: 'file/no-socket' })
    expect(await codeOf(lockDirectory(directory))).toBe('DATA_LOCKED')
  })

  it('is not mistaken for one that lives when the directory was copied', async () => {
    const lock = await lockDirectory(directory)
    const copy = `${directory}-copy`
    await cp(directory, copy, { recursive: true, filter: (path) => !path.endsWith('.sock') })
    const other = await lockDirectory(copy)
    await other.release()
    await lock.release()
    await rm(copy, { recursive: true })
  })
})

describe('a race', () => {
  /** How many of the attempts won; all others must have been refused. */
  async function winners(attempts: readonly Promise<DirectoryLock>[]): Promise<DirectoryLock[]> {
    const results = await Promise.allSettled(attempts)
    const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'DATA_LOCKED' })
    }
    return won
  }

  it('for a stale lock has one winner, within a process', async () => {
    for (let round = 1; round <= 60; round++) {
      await forge(round * 10, { startTicks: '1' })
      const won = await winners(Array.from({ length: 8 }, () => lockDirectory(directory)))
      expect(won.length).toBe(1)
      expect((await lockFiles()).filter((name) => name.endsWith('.sock'))).toHaveLength(1)
      await won[0]?.release()
    }
  })

  it('for a stale lock has one winner, between processes', async () => {
    const others = await Promise.all([holder(), holder()])
    for (let round = 1; round <= 40; round++) {
      await forge(round * 10, { startTicks: '1' })
      const answers = await Promise.all(others.map((other) => other.tell(`lock ${directory}`)))
      expect(answers.sort()).toEqual(['DATA_LOCKED', 'locked'])
      await Promise.all(others.map((other) => other.tell('release')))
    }
  })

  it('is lost by who comes late with an old number', async () => {
    await writeFile(join(directory, 'lock.3'), '')
    let owner: DirectoryLock | undefined
    hooks.link = async (real, from, to) => {
      hooks.link = undefined
      // Meanwhile lock.4 was taken and given back, and lock.5 taken, whose owner swept lock.4 away.
      await (await lockDirectory(directory)).release()
      owner = await lockDirectory(directory)
      await real(from, to)
    }
    expect(await codeOf(lockDirectory(directory))).toBe('DATA_LOCKED')
    expect(owner).toBeDefined()
    expect(await lockFiles()).toContain('lock.5')
    await owner?.release()
  })

  it('gives way, and goes on, when a number is higher but its owner is gone again', async () => {
    hooks.link = async (real, from, to) => {
      hooks.link = undefined
      await writeFile(join(directory, 'lock.2'), '')
      await real(from, to)
    }
    const lock = await lockDirectory(directory)
    expect(await lockFiles()).toContain('lock.3')
    await lock.release()
  })

  it('starts over when its socket was swept away by an owner who is gone', async () => {
    hooks.link = async (real, from, to) => {
      hooks.link = undefined
      const sockets = (await lockFiles()).filter((name) => name.endsWith('.sock'))
      for (const name of sockets) await unlink(join(directory, name))
      await real(from, to)
    }
    const lock = await lockDirectory(directory)
    expect(await lockFiles()).toContain('lock.2')
    expect(await codeOf(lockDirectory(directory))).toBe('DATA_LOCKED')
    await lock.release()
  })

  it('leaves nothing when the file system knows no links, and says so', async () => {
    hooks.link = async () => {
      throw Object.assign(new Error('EPERM'), { code: 'EPERM' })
    }
    expect(await codeOf(lockDirectory(directory))).toBe('STORAGE_ERROR')
    expect(await lockFiles()).toEqual([])
  })
})
