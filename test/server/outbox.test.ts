/** Pieces on their way: in order, uncopied, few writes, never much at once. */
import { Duplex } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { MiB } from '../../src/model/limits.ts'
import { Outbox } from '../../src/server/outbox.ts'

/** A socket that takes a write only when it is told to. */
class SlowSocket extends Duplex {
  /** The chunks of each write that reached the system. */
  readonly writes: Uint8Array[][] = []
  #done: ((error?: Error) => void) | undefined

  override _read(): void {
    // Nothing to read.
  }

  override _write(chunk: Uint8Array, _: string, done: (error?: Error | null) => void): void {
    this.writes.push([chunk])
    this.#done = done
  }

  override _writev(chunks: { chunk: Uint8Array }[], done: (error?: Error | null) => void): void {
    this.writes.push(chunks.map(({ chunk }) => chunk))
    this.#done = done
  }

  async accept(error?: Error): Promise<void> {
    this.#done?.(error)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function started(): { socket: SlowSocket; outbox: Outbox; written: number[] } {
  const socket = new SlowSocket()
  const written: number[] = []
  return { socket, written, outbox: new Outbox(socket, (sizeBytes) => written.push(sizeBytes)) }
}

describe('an outbox', () => {
  it('hands all pieces over in one write, as they are', () => {
    const { socket, outbox } = started()
    const pieces = [Buffer.from('a'), Buffer.from('bc'), Buffer.from('d')]
    outbox.push(pieces.slice(0, 2))
    outbox.push(pieces.slice(2))
    outbox.flush()
    expect(socket.writes).toHaveLength(1)
    expect(socket.writes[0]?.map((chunk) => chunk.buffer === pieces[0]?.buffer)).toEqual([true, true, true])
    expect(Buffer.concat(socket.writes[0] ?? []).toString()).toBe('abcd')
  })

  it('begins no other write while one is under way, and then takes all that came meanwhile', async () => {
    const { socket, outbox, written } = started()
    outbox.push([Buffer.from('a')])
    outbox.flush()
    for (const letter of 'bcd') {
      outbox.push([Buffer.from(letter)])
      outbox.flush()
    }
    expect([socket.writes.length, outbox.bytes]).toEqual([1, 4])
    await socket.accept()
    expect(written).toEqual([1])
    expect(socket.writes.map((chunks) => Buffer.concat(chunks).toString())).toEqual(['a', 'bcd'])
    await socket.accept()
    expect([written, outbox.bytes]).toEqual([[1, 3], 0])
  })

  it('cuts what is large, so that progress is seen', async () => {
    const { socket, outbox, written } = started()
    const large = Buffer.alloc(2 * MiB + 10, 'x')
    outbox.push([Buffer.from('head'), large, Buffer.from('tail')])
    outbox.flush()
    while (outbox.bytes > 0) await socket.accept()
    expect(written).toEqual([MiB, MiB, 18])
    const all = Buffer.concat(socket.writes.flat())
    expect(all.equals(Buffer.concat([Buffer.from('head'), large, Buffer.from('tail')]))).toBe(true)
  })

  it('tells those who are concerned when all up to theirs is written, and not before', async () => {
    const { socket, outbox } = started()
    socket.on('error', () => {})
    const told: string[] = []
    const tell = (name: string) => (): void => void told.push(name)
    outbox.push([Buffer.alloc(MiB + 1)], [tell('a'), tell('b')])
    outbox.flush()
    outbox.push([Buffer.alloc(1)])
    outbox.push([Buffer.alloc(1)], [tell('c')])
    await socket.accept()
    expect(told).toEqual([])
    outbox.push([], [tell('d')])
    outbox.push([Buffer.alloc(1)], [tell('e')])
    await socket.accept(new Error('gone'))
    expect(told).toEqual([])
  })

  it('tells them in order', async () => {
    const { socket, outbox } = started()
    const told: string[] = []
    const tell = (name: string) => (): void => void told.push(name)
    outbox.push([Buffer.alloc(MiB)], [tell('a')])
    outbox.push([Buffer.alloc(MiB)], [tell('b'), tell('c')])
    outbox.push([], [tell('d')])
    outbox.push([Buffer.alloc(1)], [tell('e')])
    outbox.flush()
    const seen: string[][] = []
    while (outbox.bytes > 0) {
      await socket.accept()
      seen.push([...told])
    }
    expect(seen).toEqual([['a'], ['a', 'b', 'c', 'd'], ['a', 'b', 'c', 'd', 'e']])
  })

  it('counts nothing as written that was not', async () => {
    const { socket, outbox, written } = started()
    socket.on('error', () => {})
    outbox.push([Buffer.from('a')])
    outbox.flush()
    await socket.accept(new Error('gone'))
    expect([written, outbox.bytes]).toEqual([[], 1])
  })

  it('does nothing where there is nothing', () => {
    const { socket, outbox } = started()
    outbox.flush()
    expect(socket.writes).toEqual([])
  })
})
