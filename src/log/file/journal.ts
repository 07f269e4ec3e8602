/**
 * The journal: where everything is written first, group after group. Two files are used in turn, so that one can be
 * written while what is in the other is on its way into segments and a checkpoint.
 *
 *   journal/a   │ group 8 │ group 9 │ 0…0 │ group 3 … │ group 4 │ 0 0 0 0 0 0 0 0 0 0 │
 *                                   ▲used  stale: lower sequences          allocated ▲     ◄─ capacity
 *   journal/b   │ group 5 │ group 6 │ group 7 │ 0…0 │ 0 0 0 0 0 0 │
 *
 * Invariants:
 *  - A group goes into the allocated part only: bytes that are on the disk as zeros, or as a group nobody needs. So
 *    a sync writes data alone, never the size of the file, and a full disk is met by `grow`, where nothing has been
 *    promised yet.
 *  - A fence of zeros follows the newest group, written along with it. So the end of what is valid looks the same in
 *    a file that is used again as in a new one, and anything else there was cut off.
 *  - Groups that lie behind the fence from earlier turns have lower sequences, which never count.
 *  - The file that is left was synced whole before the first group goes into the other one.
 *  - The first write or sync of groups that fails ends the journal. The kernel forgets what it could not write, so
 *    a second try would lie.
 *
 * All handles are opened at the start: later on the process may have none to spare. Growing has a handle of its own
 * for each file: the system reports a failure once per handle, and whoever waits for a group must not miss it.
 *
 * One owner. `append` one at a time; `sync` and `grow` may run beside it; `rotate` alone.
 */

import { assert, OdradekError } from '../../model/errors.ts'
import { MiB } from '../../model/limits.ts'
import { closeAll, closeQuietly } from './close-all.ts'
import { type DataFile, type FileSystem, totalBytes } from './fs.ts'
import { GROUP_HEADER_BYTES, sequenceOf } from './group.ts'

export const JOURNAL_DIRECTORY = 'journal'
export const JOURNAL_FILES: readonly [string, string] = [`${JOURNAL_DIRECTORY}/a`, `${JOURNAL_DIRECTORY}/b`]
/** The most that a file can hold, and so a group: what can be read into memory again. */
export const MAX_FILE_BYTES: number = 1024 * MiB

const DEFAULT_FILE_BYTES = 32 * MiB
/** Allocated first, and synced at a time: a group that is synced meanwhile waits for no more than this. */
const STEP_BYTES = MiB
/** What follows the newest group. */
const FENCE = new Uint8Array(GROUP_HEADER_BYTES)

export interface JournalOptions {
  /** Size that a file grows to. */
  readonly fileBytes?: number
  /** Sequence of the first group; every later one is one more. */
  readonly firstSequence: number
}

interface JournalFile {
  /** For groups. */
  readonly file: DataFile
  /** For zeros. */
  readonly growing: DataFile
  allocatedBytes: number
}

export class Journal {
  /** What a file grows to. */
  readonly capacityBytes: number
  #current: JournalFile
  #other: JournalFile
  #usedBytes = 0
  #next: number
  #appending = false
  #failure: OdradekError | undefined
  /** `grow` and `rotate` wait for each other. */
  #layout: Promise<unknown> = Promise.resolve()

  private constructor(a: JournalFile, b: JournalFile, capacityBytes: number, firstSequence: number) {
    this.#current = a
    this.#other = b
    this.capacityBytes = capacityBytes
    this.#next = firstSequence
  }

  /**
   * An empty journal, also where there was one before: a checkpoint that covers its groups, up to the sequence before
   * the first, must be on the disk. What was allocated stays so; a full disk leaves the journal without room, for
   * `grow` to try again.
   */
  static async create(fs: FileSystem, options: JournalOptions): Promise<Journal> {
    const { fileBytes = DEFAULT_FILE_BYTES, firstSequence } = options
    const handles: DataFile[] = []
    try {
      await fs.makeDirectory(JOURNAL_DIRECTORY)
      const a = await openFile(fs, JOURNAL_FILES[0], fileBytes, handles)
      const b = await openFile(fs, JOURNAL_FILES[1], fileBytes, handles)
      await fs.syncDirectory(JOURNAL_DIRECTORY)
      await fs.syncDirectory('')
      const journal = new Journal(a, b, fileBytes, firstSequence)
      await journal.#allocateFirst()
      return journal
    } catch (error) {
      await closeQuietly(handles.map((handle) => () => handle.close()))
      throw error
    }
  }

  /** Bytes that groups may take without `grow` or `rotate`. */
  get roomBytes(): number {
    return this.#current.allocatedBytes - this.#usedBytes
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  /**
   * Allocates more of the file: 1 MiB first, then twice as much, up to the capacity, and beyond it only if a group of
   * `groupBytes` does not fit otherwise.
   * @throws OdradekError STORAGE_FULL, and everything is as it was. TOO_LARGE when no file can take such a group.
   */
  grow(groupBytes: number = 0): Promise<void> {
    return this.#inTurn(() => this.#allocate(groupBytes))
  }

  /**
   * Writes a finished group behind the one before, into the room there is. It is not on the disk before `sync`.
   * @throws OdradekError OUTCOME_UNKNOWN: the group may be there or not, and the journal takes no more.
   */
  async append(pieces: readonly Uint8Array[]): Promise<void> {
    this.#check()
    const [header] = pieces
    const sizeBytes = totalBytes(pieces)
    const leftBytes = this.roomBytes - sizeBytes
    assert(!this.#appending, 'groups are appended one at a time')
    assert(leftBytes >= 0, `a group of ${sizeBytes} bytes in ${this.roomBytes} bytes of room`)
    assert(header !== undefined && sequenceOf(header) === this.#next, `group ${this.#next} is the next one`)
    const fence = leftBytes < FENCE.length ? FENCE.subarray(0, leftBytes) : FENCE
    this.#appending = true
    try {
      await this.#current.file.writeAll(leftBytes === 0 ? pieces : [...pieces, fence], this.#usedBytes)
    } catch (cause) {
      throw this.#fail(cause)
    } finally {
      this.#appending = false
    }
    this.#usedBytes += sizeBytes
    this.#next++
  }

  /**
   * Resolves when every group whose `append` had resolved is on the disk.
   * @throws OdradekError OUTCOME_UNKNOWN: they may be there or not, and the journal takes no more.
   */
  async sync(): Promise<void> {
    this.#check()
    try {
      await this.#current.file.sync()
    } catch (cause) {
      throw this.#fail(cause)
    }
    this.#check()
  }

  /**
   * Syncs, and goes on in the other file. Only when a checkpoint is on the disk that covers what is in that one. Where
   * the disk is too full for it there is no room afterwards, for `grow` to try again.
   */
  rotate(): Promise<void> {
    return this.#inTurn(async () => {
      assert(!this.#appending, 'nothing is appended during rotation')
      await this.sync()
      await giveBack(this.#other, this.capacityBytes)
      const full = this.#current
      this.#current = this.#other
      this.#other = full
      this.#usedBytes = 0
      await this.#allocateFirst()
    })
  }

  /** Syncs nothing. */
  async close(): Promise<void> {
    await this.#layout
    const files = [this.#current, this.#other].flatMap(({ file, growing }) => [growing, file])
    await closeAll(files.map((each) => () => each.close()))
  }

  async #allocateFirst(): Promise<void> {
    if (this.#current.allocatedBytes > 0) return
    try {
      await this.#allocate(0)
    } catch (error) {
      if (!(error instanceof OdradekError && error.code === 'STORAGE_FULL')) throw error
    }
  }

  async #allocate(groupBytes: number): Promise<void> {
    this.#check()
    const current = this.#current
    const from = current.allocatedBytes
    const doubled = Math.min(Math.max(from * 2, STEP_BYTES), this.capacityBytes)
    const to = Math.max(doubled, this.#usedBytes + groupBytes)
    if (to > MAX_FILE_BYTES) {
      throw new OdradekError(
        'TOO_LARGE',
        `${groupBytes} bytes at once behind ${this.#usedBytes}; a file of the journal holds ${MAX_FILE_BYTES} bytes, whatever \`journalBytes\` says`,
      )
    }
    try {
      for (let at = from; at < to; at += STEP_BYTES) {
        await current.growing.write(new Uint8Array(Math.min(STEP_BYTES, to - at)), at)
        await this.#syncZeros(current)
      }
    } catch (error) {
      await cut(current, from)
      throw error
    }
    current.allocatedBytes = Math.max(from, to)
  }

  /** A sync that fails may have been about a group just as well. */
  async #syncZeros({ growing }: JournalFile): Promise<void> {
    try {
      await growing.sync()
    } catch (cause) {
      this.#fail(cause)
      throw cause
    }
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const done = this.#layout.then(step)
    // Whoever asked for the step hears of its failure.
    this.#layout = done.catch(() => undefined)
    return done
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  #fail(cause: unknown): OdradekError {
    this.#failure ??= new OdradekError(
      'OUTCOME_UNKNOWN',
      'the journal could not be written; what of it is on the disk is known when the directory is opened again',
      { cause },
    )
    return this.#failure
  }
}

async function openFile(
  fs: FileSystem,
  path: string,
  capacityBytes: number,
  handles: DataFile[],
): Promise<JournalFile> {
  const file = await fs.open(path, (await fs.exists(path)) ? 'write' : 'create')
  handles.push(file)
  const growing = await fs.open(path, 'write')
  handles.push(growing)
  const opened = { file, growing, allocatedBytes: await file.size() }
  await giveBack(opened, capacityBytes)
  // What was torn is not to be found again.
  await file.write(new Uint8Array(Math.min(opened.allocatedBytes, GROUP_HEADER_BYTES)), 0)
  // Also for zeros that a process which was killed did not sync.
  await file.sync()
  return opened
}

/** Empties a file that is so large because of one huge group. */
async function giveBack(stale: JournalFile, capacityBytes: number): Promise<void> {
  if (stale.allocatedBytes <= capacityBytes) return
  await stale.file.truncate(0)
  stale.allocatedBytes = 0
}

/** Frees what was allocated in vain: the disk is full, and others could use it. */
async function cut(current: JournalFile, sizeBytes: number): Promise<void> {
  try {
    await current.growing.truncate(sizeBytes)
  } catch {
    // Zeros that stay allocated hurt nobody, and why there are no more of them is told by the first error.
  }
}
