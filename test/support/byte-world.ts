/** A broker on an engine of bytes, with a hand on the engine: what is stored, when it is durable, what is refused. */
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { type ByteEngine, type ByteEngineOptions, byteEngine } from './byte-engine.ts'
import type { ByteLog } from './byte-log.ts'
import { World } from './world.ts'

const utf8 = new TextEncoder()

export class ByteWorld extends World {
  readonly engine: ByteEngine

  constructor(options: Omit<ByteEngineOptions, 'clock'> = {}) {
    const clock = new ManualClock()
    const engine = byteEngine({ clock, ...options })
    super({}, engine, clock)
    this.engine = engine
  }

  /** A record as the disk has it: text where its bytes are that. */
  stored(topic: string, offset: number, partition = 0): { value: unknown; headers: [string, unknown][] } {
    const { value, headers } = (this.logs.get(`${topic}/${partition}`) as ByteLog).stored(offset)
    const shown = value instanceof Uint8Array ? new TextDecoder().decode(value) : value
    return { value: shown, headers: headers.map(([name, each]) => [name, each]) }
  }
}

export function bytes(text: string): Uint8Array {
  return utf8.encode(text)
}
