import { afterEach, describe, expect, it } from 'vitest'
import { RequestMemory } from '../../src/server/request-memory.ts'

const CHUNK_BYTES = 65_536
const prototype = ArrayBuffer.prototype as { transfer?: unknown }
const { transfer } = prototype

afterEach(() => {
  if (transfer === undefined) delete prototype.transfer
  else prototype.transfer = transfer
})

describe('a chunk that is dropped', () => {
  it('is empty at once, and its memory free before any garbage is collected', async () => {
    const memory = new RequestMemory()
    // The port of Node 20 is closed in the next turn.
    memory.drop(new Uint8Array(CHUNK_BYTES))
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    const before = process.memoryUsage().arrayBuffers
    for (let i = 0; i < 100; i++) {
      const chunk = new Uint8Array(CHUNK_BYTES)
      memory.drop(chunk)
      expect(chunk.length).toBe(0)
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50 * CHUNK_BYTES)
  })

  it('is so on a Node that has no transfer of its own', () => {
    delete prototype.transfer
    const memory = new RequestMemory()
    const [first, second] = [new Uint8Array(CHUNK_BYTES), new Uint8Array(CHUNK_BYTES)]
    memory.drop(first)
    memory.drop(second)
    expect([first.length, second.length]).toEqual([0, 0])
  })

  it('is so by transfer where there is one', () => {
    const asked: unknown[] = []
    prototype.transfer = function (this: ArrayBuffer, length: number) {
      asked.push([this.byteLength, length])
    }
    new RequestMemory().drop(new Uint8Array(CHUNK_BYTES))
    expect(asked).toEqual([[CHUNK_BYTES, 0]])
  })

  it('stays as it is where it is small, or only a part of what somebody else may have', () => {
    const memory = new RequestMemory()
    const small = new Uint8Array(16_383)
    const part = new Uint8Array(new ArrayBuffer(CHUNK_BYTES + 1), 0, CHUNK_BYTES)
    memory.drop(small)
    memory.drop(part)
    expect([small.length, part.length]).toEqual([16_383, CHUNK_BYTES])
  })
})
