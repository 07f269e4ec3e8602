/** What tests of the codec share. */
import { OdradekError } from '../../src/model/errors.ts'
import { WireReader } from '../../src/wire/reader.ts'
import { type Struct, StructType, type ValueOf } from '../../src/wire/schema.ts'
import { WireWriter } from '../../src/wire/writer.ts'

export function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
}

export function hexOf(pieces: readonly Uint8Array[]): string {
  return Buffer.concat(pieces).toString('hex')
}

export function written(write: (to: WireWriter) => void): string {
  const to = new WireWriter()
  write(to)
  return hexOf(to.pieces())
}

/** The message of the PROTOCOL_ERROR that must come. */
export function refusal(read: () => unknown): string {
  try {
    read()
  } catch (error) {
    if (error instanceof OdradekError && error.code === 'PROTOCOL_ERROR') return error.message
    throw error
  }
  throw new Error('it was not refused')
}

export interface Version {
  readonly version?: number
  readonly flexible?: boolean
}

/** A struct in one version, from and to hexadecimal digits. */
export class InVersion<S extends Struct> {
  readonly #codec

  constructor(fields: S, { version = 0, flexible = false }: Version = {}) {
    this.#codec = new StructType(fields).codec({ version, flexible, nullable: false })
  }

  read(hex: string): ValueOf<S> {
    return this.readFrom(new WireReader(bytesOf(hex)))
  }

  readFrom(from: WireReader): ValueOf<S> {
    return this.#codec.read(from) as ValueOf<S>
  }

  write(value: { readonly [Name in keyof S]?: unknown }): string {
    return written((to) => this.#codec.write(to, value))
  }
}
