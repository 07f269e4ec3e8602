/**
 * What must hold of any frame: it is refused with PROTOCOL_ERROR, or it is read and what was read can be written and
 * read again. And of a frame that lies about one length: it is refused at that length, before anything behind it is
 * looked at, so that nothing is made for what cannot be there.
 */
import { isDeepStrictEqual } from 'node:util'
import { OdradekError } from '../../../src/model/errors.ts'
import { WireReader } from '../../../src/wire/reader.ts'
import { WireWriter } from '../../../src/wire/writer.ts'
import type { Dice } from '../dice.ts'
import { readFrame, type Sample } from './corpus.ts'
import { int32, mutated, replaced, varint } from './mutate.ts'

/** Far beyond what a frame of a few kilobytes takes. */
const SLOW_MS = 1_000

export class Verdicts {
  frames = 0
  refused = 0
  readonly faults: string[] = []

  fault(what: string, frame: Uint8Array): void {
    this.faults.push(`${what}: ${Buffer.from(frame).toString('hex')}`)
  }
}

export function judgeMutated(sample: Sample, other: Sample, dice: Dice, verdicts: Verdicts): void {
  const frame = mutated(sample.frame, other.frame, dice)
  verdicts.frames++
  const from = performance.now()
  try {
    const value = readFrame(sample, frame)
    if (!isDeepStrictEqual(again(sample, value), value)) {
      verdicts.fault(`${sample.name} is read otherwise when it is written again`, frame)
    }
  } catch (error) {
    if (isProtocolError(error)) verdicts.refused++
    else verdicts.fault(`${sample.name}: ${String(error)}`, frame)
  }
  if (performance.now() - from > SLOW_MS) verdicts.fault(`${sample.name} took long`, frame)
}

function again({ message, version }: Sample, value: unknown): unknown {
  const to = new WireWriter()
  message.write(version, to, value as never)
  return message.read(version, new WireReader(new Uint8Array(Buffer.concat(to.pieces()))))
}

function isProtocolError(error: unknown): error is OdradekError {
  return error instanceof OdradekError && error.code === 'PROTOCOL_ERROR'
}

interface Mark {
  readonly at: number
  readonly sizeBytes: number
  readonly lies: readonly Uint8Array[]
}

const INT16_LIES = [Uint8Array.of(0x7f, 0xff), Uint8Array.of(0x80, 0x00)]
const INT32_LIES = [int32(2 ** 31 - 1), int32(-(2 ** 31)), int32(2 ** 20)]
const UVARINT_LIES = [varint('ffffffff0f'), varint('8080808008'), varint('ffff7f')]

/** Notes where everything stood that may be a length or a count. */
class Tracer extends WireReader {
  readonly marks: Mark[] = []

  #noted<T>(lies: readonly Uint8Array[], at: number, value: T): T {
    this.marks.push({ at, sizeBytes: this.at - at, lies })
    return value
  }

  override int16(): number {
    return this.#noted(INT16_LIES, this.at, super.int16())
  }

  override int32(): number {
    return this.#noted(INT32_LIES, this.at, super.int32())
  }

  override uvarint(): number {
    return this.#noted(UVARINT_LIES, this.at, super.uvarint())
  }
}

/** Every number of the body that may be a length, replaced by each lie. What was no length is read as it is. */
export function judgeLies(
  { name, message, version, frame, bodyAt }: Sample,
  verdicts: Verdicts,
  Reader: typeof WireReader = WireReader,
): void {
  if (bodyAt < 0) return
  const tracer = new Tracer(frame, bodyAt)
  message.read(version, tracer)
  for (const { at, sizeBytes, lies } of tracer.marks) {
    for (const lie of lies) {
      const from = new Reader(replaced(frame, at, sizeBytes, lie), bodyAt)
      verdicts.frames++
      try {
        message.read(version, from)
      } catch (error) {
        verdicts.refused++
        if (!isProtocolError(error)) verdicts.fault(`${name}: ${String(error)}`, from.bytes)
        // A number of a tag is no length: that it is too large shows at the next one.
        else if (from.at !== at + lie.length && !/tag \d+ follows/.test(error.message)) {
          verdicts.fault(`${name}: a lie at ${at} was refused at ${from.at}, ${error.message}`, from.bytes)
        }
      }
    }
  }
}
