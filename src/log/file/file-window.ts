/**
 * A file seen through a window that is moved along it. What it shows lies in memory that is used again: in memory of its own
 * for all of the file, reading it costs six times as much, since the system clears each page first.
 *
 *   file    0 ────────┤ at │ bytes │├──────── sizeBytes
 */
import { type DataFile, type FileSystem, isMissing } from './fs.ts'

export const WINDOW_BYTES: number = 1024 * 1024
const NOTHING = new Uint8Array(0)

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
  #buffer: Uint8Array = NOTHING

  private constructor(path: string, file: DataFile | null, sizeBytes: number, windowBytes: number) {
    this.path = path
    this.#file = file
    this.sizeBytes = sizeBytes
    this.#windowBytes = windowBytes
  }

  /** A file that is missing is empty. @throws OdradekError STORAGE_ERROR */
  static async open(fs: FileSystem, path: string, windowBytes: number): Promise<FileWindow> {
    let file: DataFile
    try {
      file = await fs.open(path, 'read')
    } catch (error) {
      if (isMissing(error)) return new FileWindow(path, null, 0, windowBytes)
      throw error
    }
    try {
      return new FileWindow(path, file, await file.size(), windowBytes)
    } catch (error) {
      await file.close()
      throw error
    }
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
    const left = Math.max(this.sizeBytes - position, 0)
    const wanted = Math.min(Math.max(this.#windowBytes, end - position), left)
    if (this.#buffer.length < wanted) this.#buffer = new Uint8Array(wanted)
    const into = this.#buffer.subarray(0, wanted)
    const length = this.#file === null || wanted === 0 ? 0 : await this.#file.read(into, position)
    this.at = position
    this.bytes = into.subarray(0, length)
  }

  async close(): Promise<void> {
    await this.#file?.close()
  }
}
