/** Compressed batches in memory: kept as they are, and opened for who reads rows, once there is what it takes. */
import { describe, expect, it } from 'vitest'
import { PoisonValue } from '../../../src/log/contract.ts'
import type { CompressionPort } from '../../../src/log/format/compression.ts'
import { memoryEngine } from '../../../src/log/memory/memory-engine.ts'
import { MemoryLog } from '../../../src/log/memory/memory-log.ts'
import { compressionWith } from '../../../src/node/compression.ts'
import { keeping, specOf } from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { batchOf, START_MS } from '../../support/record-batches.ts'
import { watch } from '../../support/world.ts'

const GZIP = 1

/** A port that has gzip from the moment on in which `load` is called. */
async function latePort(): Promise<{ port: CompressionPort; load: () => void; asked: number[] }> {
  const codecs = await compressionWith()
  const asked: number[] = []
  let loaded = false
  let resolve: () => void = () => undefined
  const loading = new Promise<void>((done) => {
    resolve = done
  })
  const port: CompressionPort = {
    compress: (type, bytes) => codecs.compress(type, bytes),
    decompress(type, bytes, maxBytes) {
      if (!loaded) throw new Error('it is not loaded yet')
      return codecs.decompress(type, bytes, maxBytes)
    },
    ready(type) {
      asked.push(type)
      return loaded ? undefined : loading
    },
  }
  const load = (): void => {
    loaded = true
    resolve()
  }
  return { port, load, asked }
}

function append(log: MemoryLog, bytes: Uint8Array, count: number): void {
  log.tryAppend({ count, sizeBytes: bytes.length, columns: null, bytes, producer: null })
}

async function filled() {
  const late = await latePort()
  const log = new MemoryLog(specOf(keeping({})), { clock: new ManualClock(), compression: late.port })
  append(log, batchOf({ values: ['plain'], timestamp: 5 }), 1)
  append(log, batchOf({ values: ['a', 'b'], timestamp: 10, compression: { type: GZIP, port: late.port } }), 2)
  return { ...late, log }
}

describe('a compressed batch in memory', () => {
  it('is loaded when its codec is there, and not spoiled by who asked before', async () => {
    const { log, load } = await filled()
    const loading = watch(log.load(1, 1_000_000, 'committed'))
    await Promise.resolve()
    expect(loading.state).toBe('waiting')
    load()
    const { columns, row, count } = await log.load(1, 1_000_000, 'committed')
    expect(columns.values.slice(row, row + count).map(String)).toEqual(
      ['a', 'b'].map((text) => String(new TextEncoder().encode(text))),
    )
  })

  it('is found by time when its codec is there', async () => {
    const { log, load } = await filled()
    const found = watch(log.offsetAt(11))
    const newest = watch(log.newest())
    await Promise.resolve()
    expect([found.state, newest.state]).toEqual(['waiting', 'waiting'])
    load()
    expect(await log.offsetAt(11)).toEqual({ offset: 2, timestamp: 11 })
    expect(await log.newest()).toEqual({ offset: 2, timestamp: 11 })
  })

  it('ends a load where the log was closed while the codec was loaded', async () => {
    const { log, load } = await filled()
    const loading = log.load(1, 1_000_000, 'committed')
    loading.catch(() => undefined)
    await log.close()
    load()
    await expect(loading).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('is one poison value where there is no such codec', async () => {
    const port = await compressionWith()
    const log = new MemoryLog(specOf(keeping({})), { clock: new ManualClock() })
    append(log, batchOf({ values: ['a', 'b'], compression: { type: GZIP, port } }), 2)
    const { columns, row, count } = await log.load(0, 1_000_000, 'committed')
    expect([count, columns.values[row]]).toEqual([1, expect.any(PoisonValue)])
  })

  it('asks for no codec where nothing is compressed', async () => {
    const { port, asked } = await latePort()
    const log = new MemoryLog(specOf(keeping({})), { clock: new ManualClock(), compression: port })
    append(log, batchOf({ values: ['plain'], timestamp: START_MS }), 1)
    await log.load(0, 1_000_000, 'committed')
    await log.newest()
    expect(asked).toEqual([])
  })
})

describe('an engine', () => {
  it('says which codecs it was given', async () => {
    const port = await compressionWith()
    expect(memoryEngine({ clock: new ManualClock(), compression: port }).codecs?.compression).toBe(port)
  })
})
