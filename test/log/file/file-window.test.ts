import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FileWindow } from '../../../src/log/file/file-window.ts'
import type { DataFile, FileSystem } from '../../../src/log/file/fs.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { filled, turns } from './engine-kit.ts'

const WINDOW_BYTES = 64

/** A file that is only read, which notes where. */
class Readable implements Pick<DataFile, 'read' | 'size' | 'close'> {
  readonly reads: number[] = []
  /** Reads from here on fail. */
  failsFrom = Number.POSITIVE_INFINITY
  /** What a read waits for. */
  gate: Promise<unknown> = Promise.resolve()
  underWay = 0
  closed = false
  readonly #content: Uint8Array

  constructor(content: Uint8Array) {
    this.#content = content
  }

  async read(into: Uint8Array, position: number): Promise<number> {
    expect(this.closed).toBe(false)
    this.reads.push(position)
    this.underWay++
    if (position > WINDOW_BYTES) await this.gate
    this.underWay--
    if (position >= this.failsFrom) throw new OdradekError('STORAGE_ERROR', 'it cannot be read')
    const bytes = this.#content.subarray(position, position + into.length)
    into.set(bytes)
    return bytes.length
  }

  async size(): Promise<number> {
    return this.#content.length
  }

  async close(): Promise<void> {
    expect(this.underWay).toBe(0)
    this.closed = true
  }
}

function opened(file: Readable): Promise<FileWindow> {
  const fs = { open: async () => file as unknown as DataFile } as unknown as FileSystem
  return FileWindow.open(fs, 'journal/a', WINDOW_BYTES)
}

describe('a window on a file', () => {
  it('shows what is in the file, wherever it is moved, and at least what was asked for', async () => {
    const moves = fc.array(fc.tuple(fc.constantFrom('on', 'back', 'anywhere'), fc.nat(40), fc.nat(200)))
    await fc.assert(
      fc.asyncProperty(fc.nat(400), moves, async (sizeBytes, steps) => {
        const content = filled(sizeBytes)
        const file = new Readable(content)
        const window = await opened(file)
        for (const [how, by, length] of steps) {
          const position = how === 'on' ? window.end : how === 'back' ? Math.max(window.end - by, 0) : by * 10
          await window.move(position, position + length)
          expect(window.at).toBe(position)
          expect(window.bytes).toEqual(content.subarray(position, position + window.bytes.length))
          const least = Math.min(Math.max(WINDOW_BYTES, length), Math.max(sizeBytes - position, 0))
          expect(window.bytes.length).toBeGreaterThanOrEqual(least)
          expect(window.shows(position, position + least)).toBe(true)
        }
        await window.close()
        expect(file.closed).toBe(true)
      }),
    )
  })

  it('reads what follows while what it shows is looked at, each byte once', async () => {
    const content = filled(4 * WINDOW_BYTES)
    const file = new Readable(content)
    const window = await opened(file)
    await window.move(0)
    expect(file.reads).toEqual([0, WINDOW_BYTES])
    // The last bytes are wanted with those that follow.
    await window.move(WINDOW_BYTES - 5, WINDOW_BYTES + 9)
    expect(window.bytes).toEqual(content.subarray(WINDOW_BYTES - 5, 2 * WINDOW_BYTES))
    await window.move(2 * WINDOW_BYTES)
    await window.move(3 * WINDOW_BYTES)
    expect(window.bytes).toEqual(content.subarray(3 * WINDOW_BYTES))
    expect(file.reads).toEqual([0, 1, 2, 3].map((piece) => piece * WINDOW_BYTES))
    await window.close()
  })

  it('leaves what it shows alone until it is moved', async () => {
    const content = filled(3 * WINDOW_BYTES)
    const window = await opened(new Readable(content))
    await window.move(0)
    await window.move(WINDOW_BYTES)
    const { bytes } = window
    await window.settle()
    expect(bytes).toEqual(content.subarray(WINDOW_BYTES, 2 * WINDOW_BYTES))
    await window.close()
  })

  it('reads nothing ahead for whoever looks here and there', async () => {
    const file = new Readable(filled(10 * WINDOW_BYTES))
    const window = await opened(file)
    await window.move(300)
    await window.move(100)
    expect(file.reads).toEqual([300, 100])
    await window.close()
  })

  it('tells of a failure when the bytes are wanted, and not before', async () => {
    const file = new Readable(filled(3 * WINDOW_BYTES))
    file.failsFrom = 1
    const window = await opened(file)
    await window.move(0)
    await expect(window.move(WINDOW_BYTES)).rejects.toMatchObject({ code: 'STORAGE_ERROR' })
    expect(file.reads).toEqual([0, WINDOW_BYTES, WINDOW_BYTES])
    await window.close()
  })

  it('closes the file when nothing is being read any more', async () => {
    const file = new Readable(filled(3 * WINDOW_BYTES))
    const window = await opened(file)
    await window.move(0)
    await window.settle()
    file.gate = turns(3)
    await window.move(WINDOW_BYTES)
    expect(file.underWay).toBe(1)
    await window.close()
    expect(file.closed).toBe(true)
    expect(file.underWay).toBe(0)
  })
})
