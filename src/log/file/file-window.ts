/**
 * A file seen through a window that is moved along it. What it shows lies in memory that is used again: in memory of its own
 * for all of the file, reading it costs six times as much, since the system clears each page first.
 *
 *   file    0 ────────┤ at │ bytes │├──────── sizeBytes
 *
 * Whoever goes on where the window ends finds that read already: there are two buffers, and while one is looked at, what
 * follows is read into the other. What the window is to keep of what it showed, a batch that was cut off by its end, goes
 * in front of that:
 *
 *   one     │            │ a a a b b b c c│
 *   other   │        c c │ c d d d e e e f│     moved to where c begins
 *           0     headroom
 */
import { type DataFile, type FileSystem, unlessMissing } from './fs.ts'

export const WINDOW_BYTES: number = 1024 * 1024
/** What is kept at most, as a share of a window: more is read again. */
const HEADROOM_SHARE = 8
const NOTHING = new Uint8Array(0)

/** What is being read, or was: as many bytes as there were, or none where that failed. */
interface Ahead {
  readonly at: number
  readonly length: Promise<number>
}

export class FileWindow {
  readonly path: string
  /** Of the file, when it was opened. */
  readonly sizeBytes: number
  /** Position of what it shows. */
  at: number = 0
  /** What it shows, until it is moved. */
  bytes: Uint8Array = NOTHING
  readonly #file: DataFile | null
  readonly #windowBytes: number
  readonly #headroomBytes: number
  #buffer: Uint8Array = NOTHING
  #other: Uint8Array = NOTHING
  #ahead: Ahead | null = null

  private constructor(path: string, file: DataFile | null, sizeBytes: number, windowBytes: number) {
    this.path = path
    this.#file = file
    this.sizeBytes = sizeBytes
    this.#windowBytes = windowBytes
    this.#headroomBytes = Math.floor(windowBytes / HEADROOM_SHARE)
  }

  /** A file that is missing is empty. @throws OdradekError STORAGE_ERROR */
  static async open(fs: FileSystem, path: string, windowBytes: number): Promise<FileWindow> {
    const file = await unlessMissing(fs.open(path, 'read'))
    if (file === undefined) return new FileWindow(path, null, 0, windowBytes)
    try {
      return new FileWindow(path, file, await file.size(), windowBytes)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** The first `sizeBytes` of a file that somebody else has open, and closes after `settle`. */
  static over(file: DataFile, sizeBytes: number, windowBytes: number): FileWindow {
    return new FileWindow('', file, sizeBytes, windowBytes)
  }

  /** Position behind what it shows. */
  get end(): number {
    return this.at + this.bytes.length
  }

  /** Whether it shows all from `position` to `end`. */
  shows(position: number, end: number): boolean {
    return position >= this.at && end <= this.end
  }

  /** Moves it to `position`; it shows as much as it can, and everything up to `end` if the file has it. */
  async move(position: number, end: number = position): Promise<void> {
    const goesOn = position >= this.at && position <= this.end
    if (!(await this.#moveAhead(position, end))) await this.#read(position, end)
    if (goesOn) this.#readAhead()
  }

  /** Shows what is read already, if it is what is wanted. */
  async #moveAhead(position: number, end: number): Promise<boolean> {
    const ahead = this.#ahead
    if (ahead === null) return false
    this.#ahead = null
    const length = await ahead.length
    const keptBytes = ahead.at - position
    const isWanted = position >= this.at && keptBytes >= 0 && keptBytes <= this.#headroomBytes
    if (!isWanted || length === 0 || Math.min(end, this.sizeBytes) > ahead.at + length) return false
    const from = this.#headroomBytes - keptBytes
    this.#other.set(this.bytes.subarray(position - this.at), from)
    const shown = this.#buffer
    this.#buffer = this.#other
    this.#other = shown
    this.at = position
    this.bytes = this.#buffer.subarray(from, this.#headroomBytes + length)
    return true
  }

  async #read(position: number, end: number): Promise<void> {
    const wanted = Math.min(Math.max(this.#windowBytes, end - position), this.#leftFrom(position))
    this.#buffer = this.#withRoom(this.#buffer, wanted)
    const into = this.#buffer.subarray(this.#headroomBytes, this.#headroomBytes + wanted)
    const length = this.#file === null || wanted === 0 ? 0 : await this.#file.read(into, position)
    this.at = position
    this.bytes = into.subarray(0, length)
  }

  #readAhead(): void {
    const at = this.end
    const wanted = Math.min(this.#windowBytes, this.#leftFrom(at))
    if (this.#file === null || this.bytes.length === 0 || wanted === 0) return
    this.#other = this.#withRoom(this.#other, wanted)
    const into = this.#other.subarray(this.#headroomBytes, this.#headroomBytes + wanted)
    // A failure is for whoever wants the bytes: they are read again then.
    this.#ahead = { at, length: this.#file.read(into, at).catch(() => 0) }
  }

  #leftFrom(position: number): number {
    return Math.max(this.sizeBytes - position, 0)
  }

  /** A buffer that so many bytes fit into, behind the headroom. */
  #withRoom(buffer: Uint8Array, sizeBytes: number): Uint8Array {
    const neededBytes = this.#headroomBytes + sizeBytes
    return buffer.length < neededBytes ? new Uint8Array(neededBytes) : buffer
  }

  /** Resolves when nothing is being read any more. */
  async settle(): Promise<void> {
    await this.#ahead?.length
    this.#ahead = null
  }

  async close(): Promise<void> {
    await this.settle()
    await this.#file?.close()
  }
}
