/** What only the real disk shows: access modes, short reads and writes of the system's, the way to a new directory. */
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Handle, NodeFile, NodeFileSystem } from '../../../src/log/file/fs-node.ts'
import { codeOf } from '../../support/world.ts'

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'odradek-node-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const modeOf = async (path: string): Promise<string> =>
  ((await stat(join(directory, path))).mode & 0o777).toString(8)

describe('the data directory', () => {
  it('is made with its parents, and again without harm', async () => {
    const fs = await NodeFileSystem.at(join(directory, 'x/y/data'))
    await fs.makeDirectory('logs')
    const again = await NodeFileSystem.at(join(directory, 'x/y/data'))
    expect(await again.list('')).toEqual(['logs'])
  })

  it('is refused where a file is in the way', async () => {
    await writeFile(join(directory, 'file'), '')
    expect(await codeOf(NodeFileSystem.at(join(directory, 'file')))).toBe('STORAGE_ERROR')
    expect(await codeOf(NodeFileSystem.at(join(directory, 'file/data')))).toBe('STORAGE_ERROR')
  })

  it('keeps others out: directories are 0700, files 0600', async () => {
    const fs = await NodeFileSystem.at(join(directory, 'x/data'))
    await fs.makeDirectory('logs/a')
    await (await fs.open('logs/a/b', 'create')).close()
    expect(await Promise.all(['x', 'x/data', 'x/data/logs', 'x/data/logs/a'].map(modeOf))).toEqual(
      Array.from({ length: 4 }, () => '700'),
    )
    expect(await modeOf('x/data/logs/a/b')).toBe('600')
  })

  it('is not left by any path', async () => {
    const fs = await NodeFileSystem.at(directory)
    await expect(fs.open('logs/../../a', 'create')).rejects.toThrow('leads out of the data directory')
    expect(() => fs.syncDirectory('..')).toThrow('leads out of the data directory')
  })
})

describe('a system that reads and writes less than it was asked to', () => {
  /** A handle that takes and gives at most `most` bytes at a time, over bytes in memory. */
  function stingy(
    most: number,
    content: Uint8Array = new Uint8Array(64),
  ): { handle: Handle; calls: number[]; content: Uint8Array } {
    const calls: number[] = []
    const copy = (bytes: Uint8Array, position: number): number => {
      const bytesWritten = Math.min(most, bytes.length)
      content.set(bytes.subarray(0, bytesWritten), position)
      calls.push(bytesWritten)
      return bytesWritten
    }
    const handle = {
      write: async (bytes: Uint8Array, offset: number, length: number, position: number) => ({
        bytesWritten: copy(bytes.subarray(offset, offset + length), position),
        buffer: bytes,
      }),
      writev: async (pieces: Uint8Array[], position: number) => ({
        bytesWritten: copy(Buffer.concat(pieces), position),
        buffers: pieces,
      }),
      read: async (into: Uint8Array, offset: number, length: number, position: number) => {
        const part = content.subarray(position, position + Math.min(most, length))
        into.set(part, offset)
        calls.push(part.length)
        return { bytesRead: part.length, buffer: into }
      },
    }
    return { handle: handle as unknown as Handle, calls, content }
  }

  const counted = (sizeBytes: number): Uint8Array => Uint8Array.from({ length: sizeBytes }, (_, i) => i + 1)

  it('is asked for the rest of a write', async () => {
    const { handle, calls, content } = stingy(3)
    await new NodeFile(handle, 'a').write(counted(10), 5)
    expect(content.subarray(5, 15)).toEqual(counted(10))
    expect(calls).toEqual([3, 3, 3, 1])
  })

  it.each([1, 2, 3, 4, 5, 9, 10])('is asked for the rest of pieces, %i bytes at a time', async (most) => {
    const { handle, content } = stingy(most)
    const all: Uint8Array = counted(10)
    const pieces = [all.subarray(0, 4), new Uint8Array(0), all.subarray(4, 5), all.subarray(5)]
    await new NodeFile(handle, 'a').writeAll(pieces, 7)
    expect(content.subarray(7, 17)).toEqual(all)
    expect(content[17]).toBe(0)
  })

  it('is asked for the rest of a read, up to the end of the file', async () => {
    const { handle, calls } = stingy(3, counted(8))
    const into = new Uint8Array(20)
    expect(await new NodeFile(handle, 'a').read(into, 1)).toBe(7)
    expect(into.subarray(0, 7)).toEqual(counted(8).subarray(1))
    expect(calls).toEqual([3, 3, 1, 0])
  })

  it('is not asked for ever when it takes nothing', async () => {
    const file = new NodeFile(stingy(0).handle, 'a')
    expect(await codeOf(file.write(counted(1), 0))).toBe('STORAGE_ERROR')
    expect(await codeOf(file.writeAll([counted(1)], 0))).toBe('STORAGE_ERROR')
  })
})

it.runIf(process.platform === 'linux')(
  'a full disk is STORAGE_FULL, with the system’s error as the cause',
  async () => {
    const fs = new NodeFileSystem('/dev')
    const file = await fs.open('full', 'write')
    await expect(file.write(new Uint8Array(10), 0)).rejects.toMatchObject({
      code: 'STORAGE_FULL',
      message: 'cannot write to full: ENOSPC; free space on the disk, or lower the retention',
      cause: { code: 'ENOSPC' },
    })
    await file.close()
  },
)
