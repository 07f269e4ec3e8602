/**
 * The index of a segment in the file beside it: a cache, and nothing waits for the disk because of it. Where it cannot be
 * written there is none, or an old one; whoever reads it sees what it was made of (segment-index.ts).
 */
import { odradekError } from '../../model/errors.ts'
import type { Crc32c } from '../format/crc32c.ts'
import type { FilePool } from './file-pool.ts'
import { type FileSystem, unlessMissing } from './fs.ts'
import {
  decodeIndex,
  type Extract,
  encodeIndex,
  type SavedIndex,
  type SegmentIndex,
} from './segment-index.ts'

export class IndexFile {
  readonly path: string
  readonly #fs: FileSystem
  readonly #pool: FilePool
  readonly #crc32c: Crc32c
  readonly #base: number
  /** How much of the segment it covers; for what a former process left, how much it may. */
  coveredBytes = 0
  #writing: Promise<void> = Promise.resolve()
  #removed = false

  constructor(
    path: string,
    base: number,
    { fs, pool, crc32c }: { readonly fs: FileSystem; readonly pool: FilePool; readonly crc32c: Crc32c },
  ) {
    this.path = path
    this.#base = base
    this.#fs = fs
    this.#pool = pool
    this.#crc32c = crc32c
  }

  /** What it says, if it is an index. */
  async read(): Promise<SavedIndex | undefined> {
    const reading = this.#pool.use(this.path, 'read', async (file) => {
      const all = new Uint8Array(await file.size())
      return all.subarray(0, await file.read(all, 0))
    })
    const bytes = await unlessMissing(reading)
    if (bytes === undefined) return undefined
    // Read once, and perhaps replaced later.
    await this.#pool.forget(this.path)
    return decodeIndex(bytes, this.#base, this.#crc32c)
  }

  /** Replaces it, unless it was removed. Never fails; one write after the other. */
  async write(index: SegmentIndex, of: Extract): Promise<void> {
    if (this.#removed) return
    const bytes = encodeIndex(index, this.#base, of, this.#crc32c)
    const { sizeBytes } = of
    this.#writing = this.#writing.then(() => this.#write(bytes, sizeBytes))
    await this.#writing
  }

  /** For good: whoever is making it meanwhile must not leave it behind. */
  async remove(): Promise<void> {
    this.#removed = true
    await this.#writing
    await this.#fs.remove(this.path)
  }

  async #write(bytes: Uint8Array, coveredBytes: number): Promise<void> {
    try {
      await this.#fs.remove(this.path)
      const file = await this.#fs.open(this.path, 'create')
      try {
        await file.write(bytes, 0)
      } finally {
        await file.close()
      }
      this.coveredBytes = coveredBytes
    } catch (error) {
      // What is there now is no index, and it is made again when it is needed. The disk tells of itself elsewhere.
      odradekError(error)
    }
  }
}
