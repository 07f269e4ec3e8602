/**
 * Open handles by path, a bounded number of them. Opening costs more than reading, and a broker has more segments
 * than a process may have handles.
 *
 *   #open     least recently used ──► most recently used      each: how many use it, and whether bytes are not synced
 *             │ closed first, never while it is used
 *   #closing  on their way out: still handles of the system's
 *
 * A handle with unsynced bytes is synced before it is closed, and closed after all others. The kernel tells of a
 * failed write only to a sync, and once no handle holds the file it may forget even that; whoever opens the file
 * later and syncs it would be told that all is well. For the same reason a file whose sync failed never syncs again
 * until it is forgotten.
 *
 * A body must not use the pool itself, nor its `fs`: with every handle in use it would wait for its own.
 */
import { assert, OdradekError } from '../../model/errors.ts'
import type { DataFile, FileSystem } from './fs.ts'
import { isOutOfHandles } from './fs.ts'

export type PoolMode = 'read' | 'write'

/** Half of the smallest limit that is usual; a process that has fewer left is told so, and the pool gives way. */
const DEFAULT_MAX_OPEN = 512

export class FilePool {
  /** The file system for what needs a handle beside the pool, for a moment: it is given one of the pool's if need be. */
  readonly fs: FileSystem
  readonly #maxOpen: number
  /** By mode and path, least recently used first. */
  readonly #open = new Map<string, PooledFile>()
  readonly #closing = new Set<PooledFile>()
  /** By path: the first failure of a sync. */
  readonly #failures = new Map<string, unknown>()
  /** Wait for a handle to become idle, or to be gone. */
  #waiting: (() => void)[] = []
  #closed = false

  constructor(fs: FileSystem, maxOpen: number = DEFAULT_MAX_OPEN) {
    this.#maxOpen = maxOpen
    this.fs = sparing(fs, (operation) => this.#spared(operation))
  }

  /** Handles of the system's that the pool has now. */
  get size(): number {
    return this.#open.size + this.#closing.size
  }

  /**
   * Runs `body` with the file, which exists and stays open meanwhile. Waits while all handles are in use.
   * @throws OdradekError CLOSED, or what opening it or `body` throws.
   */
  async use<T>(path: string, mode: PoolMode, body: (file: DataFile) => Promise<T>): Promise<T> {
    const file = await this.#borrow(path, mode)
    try {
      await file.opened
      return await body(file)
    } finally {
      this.#giveBack(file)
    }
  }

  async #borrow(path: string, mode: PoolMode): Promise<PooledFile> {
    for (;;) {
      if (this.#closed)
        throw new OdradekError('CLOSED', `the broker is closed: ${path} is not read or written`)
      const file = this.#find(path, mode) ?? this.#add(path, mode)
      if (file !== undefined) {
        file.users++
        this.#open.delete(file.key)
        this.#open.set(file.key, file)
        return file
      }
      await this.#lessHandles(this.#idle().slice(0, 1))
    }
  }

  /** A handle that writes reads too. */
  #find(path: string, mode: PoolMode): PooledFile | undefined {
    const writer = this.#open.get(keyOf(path, 'write'))
    return mode === 'write' ? writer : (writer ?? this.#open.get(keyOf(path, 'read')))
  }

  #add(path: string, mode: PoolMode): PooledFile | undefined {
    if (this.size >= this.#maxOpen) return undefined
    const file = new PooledFile(path, mode, this.fs.open(path, mode), this.#failures)
    this.#open.set(file.key, file)
    file.opened.catch(() => this.#gone(file))
    return file
  }

  /** Handles are closed for it where the process, or the system, has none left. */
  async #spared<T>(operation: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await operation()
      } catch (error) {
        if (!isOutOfHandles(error) || this.#held() === 0) throw error
        await this.#lessHandles(this.#idle())
      }
    }
  }

  #giveBack(file: PooledFile): void {
    file.users--
    if (file.users > 0) return
    if (this.#closing.has(file)) void this.#shut(file)
    else this.#wake()
  }

  /** Those that nobody uses, in the order in which to close them. */
  #idle(): PooledFile[] {
    const idle = [...this.#open.values()].filter(({ users }) => users === 0)
    return [...idle.filter(({ unsynced }) => !unsynced), ...idle.filter(({ unsynced }) => unsynced)]
  }

  /** Handles that are open, or about to be closed: each of them will be idle, or gone, some day. */
  #held(): number {
    return [...this.#open.values(), ...this.#closing].filter(({ isOpen }) => isOpen).length
  }

  /** Resolves when there may be fewer handles than now, or more of them idle. */
  async #lessHandles(idle: readonly PooledFile[]): Promise<void> {
    if (idle.length > 0) await Promise.all(idle.map((file) => this.#retire(file)))
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Lets nobody in any more, and closes it when the last one is out. */
  #retire(file: PooledFile): Promise<void> {
    this.#open.delete(file.key)
    this.#closing.add(file)
    if (file.users === 0) void this.#shut(file)
    return file.gone
  }

  async #shut(file: PooledFile): Promise<void> {
    await file.shut()
    this.#gone(file)
  }

  #gone(file: PooledFile): void {
    this.#closing.delete(file)
    if (this.#open.get(file.key) === file) this.#open.delete(file.key)
    file.setGone()
    this.#wake()
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resume of waiting) resume()
  }

  /**
   * Closes what is open of a file that is removed, or that starts anew; resolves when nobody uses it any more.
   * Nothing is synced, and a failure of its sync is forgotten.
   */
  async forget(path: string): Promise<void> {
    for (const file of [...this.#open.values(), ...this.#closing]) {
      if (file.path !== path) continue
      file.unsynced = false
      void this.#retire(file)
    }
    await Promise.all([...this.#closing].filter((file) => file.path === path).map(({ gone }) => gone))
    this.#failures.delete(path)
  }

  /** Closes all; resolves when the last body is done. Nobody is let in any more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#wake()
    for (const file of [...this.#open.values()]) void this.#retire(file)
    await Promise.all([...this.#closing].map(({ gone }) => gone))
  }
}

class PooledFile implements DataFile {
  readonly key: string
  readonly path: string
  readonly opened: Promise<void>
  /** The handle is closed, or could not be opened. */
  readonly gone: Promise<void>
  setGone: () => void = () => {}
  users = 0
  isOpen = false
  /** Bytes were written since a sync of them last began. */
  unsynced = false
  readonly #failures: Map<string, unknown>
  #file: DataFile | undefined

  constructor(path: string, mode: PoolMode, opening: Promise<DataFile>, failures: Map<string, unknown>) {
    this.key = keyOf(path, mode)
    this.path = path
    this.#failures = failures
    this.gone = new Promise((resolve) => {
      this.setGone = resolve
    })
    this.opened = opening.then((file) => {
      this.#file = file
      this.isOpen = true
    })
  }

  /** Whoever has the file waited for `opened`. */
  get #handle(): DataFile {
    assert(this.#file !== undefined, `${this.path} is used before it is open`)
    return this.#file
  }

  read(into: Uint8Array, position: number): Promise<number> {
    return this.#handle.read(into, position)
  }

  write(bytes: Uint8Array, position: number): Promise<void> {
    return this.#change(this.#handle.write(bytes, position))
  }

  writeAll(pieces: readonly Uint8Array[], position: number): Promise<void> {
    return this.#change(this.#handle.writeAll(pieces, position))
  }

  truncate(sizeBytes: number): Promise<void> {
    return this.#change(this.#handle.truncate(sizeBytes))
  }

  /** Marked at its end: a sync that began meanwhile may not have seen it. A failed one may have left a part. */
  async #change(change: Promise<void>): Promise<void> {
    try {
      await change
    } finally {
      this.unsynced = true
    }
  }

  async sync(): Promise<void> {
    if (this.#failures.has(this.path)) throw this.#failures.get(this.path)
    this.unsynced = false
    try {
      await this.#handle.sync()
    } catch (error) {
      this.#failures.set(this.path, error)
      throw error
    }
  }

  size(): Promise<number> {
    return this.#handle.size()
  }

  /** The pool closes. */
  async close(): Promise<void> {}

  async shut(): Promise<void> {
    try {
      if (this.unsynced) await this.sync()
    } catch {
      // Remembered: the next sync of the file throws it.
    }
    try {
      await this.#handle.close()
    } catch {
      // What mattered was synced; the handle is gone in any case.
    }
    this.isOpen = false
  }
}

/** `fs`, with what takes a handle of the process run by `spared`. */
function sparing(fs: FileSystem, spared: <T>(operation: () => Promise<T>) => Promise<T>): FileSystem {
  return {
    open: (path, mode) => spared(() => fs.open(path, mode)),
    list: (directory) => spared(() => fs.list(directory)),
    syncDirectory: (path) => spared(() => fs.syncDirectory(path)),
    makeDirectory: (path) => fs.makeDirectory(path),
    rename: (from, to) => fs.rename(from, to),
    remove: (path) => fs.remove(path),
    removeDirectory: (path) => fs.removeDirectory(path),
    exists: (path) => fs.exists(path),
  }
}

function keyOf(path: string, mode: PoolMode): string {
  return `${mode} ${path}`
}
