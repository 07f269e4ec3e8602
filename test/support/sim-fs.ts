/**
 * A strict simulated machine with a disk: it gives nothing that the seam (src/log/file/fs.ts) does not promise.
 *
 *   new SimFs() ─ a process works on it ─┬─ kill()   every write survives, synced or not ──► the next process's SimFs
 *                                        └─ crash()  power loss: what was not synced survives or vanishes,
 *                                                    by chance, piece by piece, in any order ──► the next boot's SimFs
 *
 * The process that was killed learns nothing: what it awaits never settles, what it still starts has no effect. Both
 * can be asked again, with other seeds, from the same moment.
 *
 * Without a clock an operation takes microtasks. With one it takes turns of it, so that a manual clock's `settle`
 * waits for the disk, and code runs between the start and the end of an operation, as with a real one. It acts at
 * its end: bytes that the caller changes meanwhile are written changed.
 */
import type { DataFile, FileSystem, OpenMode, Operation } from '../../src/log/file/fs.ts'
import { storageError, totalBytes } from '../../src/log/file/fs.ts'
import type { Clock } from '../../src/model/clock.ts'
import { assert } from '../../src/model/errors.ts'
import { Dice } from '../torture/dice.ts'
import { inOrder, SimFile, type Survival, scattered, Ticks } from './sim-file.ts'
import { SimDirectory, SimNames, SystemFailure } from './sim-names.ts'

/** What becomes of one operation. */
export interface Fault {
  /** It fails with this code of the system's, such as EIO, and has no effect. A sync that fails forgets. */
  readonly fail?: string
  /** The system writes only so many bytes (at least 1), and the rest is an operation of its own. */
  readonly shortBytes?: number
  /** It takes so long on the clock, which there must be. */
  readonly delayMs?: number
  /** The machine stands still: without this operation, or with it but without telling anybody. */
  readonly halt?: 'before' | 'after'
  /** Called when it has had its effect, before anybody is told. */
  readonly done?: () => void
}

export interface SimOptions {
  /** Of the turns that operations take. Default 0. */
  readonly seed?: number
  readonly clock?: Clock
  /** Turns of the clock that an operation takes at most, by chance. Default 1. */
  readonly turns?: number
  readonly capacityBytes?: number
  readonly maxOpenFiles?: number
  /** Negative control: a sync of a file does nothing. */
  readonly missingSync?: boolean
  /** Negative control: a sync of a directory does nothing. */
  readonly missingDirectorySync?: boolean
}

export interface CrashOptions extends SimOptions {
  readonly seed: number
  /** How likely each change survives, independent of the others. Default: chance decides, order too. */
  readonly share?: number
}

/** What an operation does at its end. `moment`: the last change of the machine when it started. */
type Effect<T> = (fault: Fault, moment: number) => T

/** What handles need of the machine. */
interface System {
  readonly handles: Set<SimHandle>
  readonly ticks: Ticks
  readonly missingSync: boolean
  run<T>(operation: Operation, path: string, effect: Effect<T>): Promise<T>
  free(): number
}

type Hook = (operation: Operation, path: string, ordinal: number) => Fault | undefined

/** What a process that is no more waits for. */
const NEVER = new Promise<never>(() => {})

export class SimFs implements FileSystem {
  /** Called at the start of each operation, counted from 1 for each process; answers what goes wrong. */
  onOperation: Hook = () => undefined
  readonly #options: SimOptions
  readonly #names: SimNames
  readonly #ticks: Ticks
  readonly #dice: Dice
  readonly #handles = new Set<SimHandle>()
  readonly #system: System
  #operations = 0
  #halted = false

  constructor(options: SimOptions = {}, names: SimNames = new SimNames(), ticks: Ticks = new Ticks()) {
    this.#options = options
    this.#names = names
    this.#ticks = ticks
    this.#dice = new Dice(options.seed ?? 0)
    this.#system = {
      handles: this.#handles,
      ticks,
      missingSync: options.missingSync === true,
      run: (operation, path, effect) => this.#run(operation, path, effect),
      // What is used is counted by going over all files: only where there is an end to it.
      free: () =>
        options.capacityBytes === undefined
          ? Number.POSITIVE_INFINITY
          : options.capacityBytes - this.usedBytes,
    }
  }

  // ── The seam ─────────────────────────────────────────────────────────────────────────────────────────

  open(path: string, mode: OpenMode): Promise<DataFile> {
    return this.#named('open', path, () => {
      if (this.#handles.size >= (this.#options.maxOpenFiles ?? Number.POSITIVE_INFINITY)) {
        throw new SystemFailure('EMFILE')
      }
      const file = mode === 'create' ? this.#create(path) : this.#names.file(path)
      const handle = new SimHandle(this.#system, file, path, mode)
      this.#handles.add(handle)
      return handle
    })
  }

  #create(path: string): SimFile {
    if (this.#names.at(path) !== undefined) throw new SystemFailure('EEXIST')
    const file = new SimFile()
    this.#names.add(path, file, this.#ticks.next())
    return file
  }

  list(directory: string): Promise<string[]> {
    return this.#named('list', directory, () => {
      if (this.#names.at(directory) === undefined) return []
      return [...this.#names.directory(directory).now.keys()].sort()
    })
  }

  makeDirectory(path: string): Promise<void> {
    return this.#named('makeDirectory', path, () => this.#makeDirectory(path))
  }

  #makeDirectory(path: string): void {
    const parts = path.split('/')
    for (let i = 1; i <= parts.length; i++) {
      const part = parts.slice(0, i).join('/')
      const node = this.#names.at(part)
      if (node instanceof SimFile) throw new SystemFailure('EEXIST')
      if (node === undefined) this.#names.add(part, new SimDirectory(), this.#ticks.next())
    }
  }

  rename(from: string, to: string): Promise<void> {
    return this.#named('rename', from, () => this.#names.rename(from, to, this.#ticks.next()))
  }

  remove(path: string): Promise<void> {
    return this.#named('remove', path, () => {
      if (this.#names.at(path) === undefined) return
      this.#names.file(path)
      this.#names.remove(path, this.#ticks.next())
    })
  }

  removeDirectory(path: string): Promise<void> {
    return this.#named('removeDirectory', path, () => {
      if (this.#names.at(path) === undefined) return
      if (this.#names.directory(path).now.size > 0) throw new SystemFailure('ENOTEMPTY')
      this.#names.remove(path, this.#ticks.next())
    })
  }

  syncDirectory(path: string): Promise<void> {
    return this.#named('syncDirectory', path, (_, moment) => {
      const directory = this.#names.directory(path)
      if (!this.#options.missingDirectorySync) this.#names.sync(directory, moment)
    })
  }

  exists(path: string): Promise<boolean> {
    return this.#named('exists', path, () => this.#names.at(path) !== undefined)
  }

  #named<T>(operation: Operation, path: string, effect: Effect<T>): Promise<T> {
    return this.#run(operation, path, (fault, moment) => {
      check(fault.fail)
      return effect(fault, moment)
    })
  }

  // ── Life and death ───────────────────────────────────────────────────────────────────────────────────

  /** Nothing of this process reaches the machine any more. */
  halt(): void {
    this.#halted = true
  }

  get halted(): boolean {
    return this.#halted
  }

  /** The process is killed; the machine stays up. */
  kill(options: SimOptions = {}): SimFs {
    this.halt()
    return new SimFs({ ...this.#options, ...options }, this.#names.copy(), this.#ticks)
  }

  /** Power loss, and the next boot. Prints nothing: print the seed. */
  crash({ share, ...options }: CrashOptions): SimFs {
    this.halt()
    const names = this.#names.survivor(this.#survival(new Dice(options.seed), share))
    return new SimFs({ ...this.#options, ...options }, names)
  }

  /** An independent copy of this machine, which goes on. */
  copy(options: SimOptions = {}): SimFs {
    return new SimFs({ ...this.#options, ...options }, this.#names.copy(), new Ticks(this.#ticks.last))
  }

  #survival(dice: Dice, share: number | undefined): Survival {
    if (share !== undefined) return scattered(dice, share)
    const way = dice.share()
    if (way < 1 / 8) return scattered(dice, 0)
    if (way < 1 / 4) return scattered(dice, 1)
    if (way < 5 / 8) return scattered(dice, dice.share())
    const oldest = [...this.#names.pending()].reduce((a, b) => Math.min(a, b), this.#ticks.last)
    return inOrder(oldest - 1 + dice.below(this.#ticks.last - oldest + 2))
  }

  // ── What tests look at, and break; at once, outside of any operation ─────────────────────────────────

  /** Operations that this process has started. */
  get operations(): number {
    return this.#operations
  }

  get openFiles(): number {
    return this.#handles.size
  }

  /** What files take, those included that are removed but open. */
  get usedBytes(): number {
    const files = new Set([...this.#handles].map(({ file }) => file))
    for (const [, file] of this.#names.list()) files.add(file)
    let usedBytes = 0
    for (const file of files) usedBytes += file.allocatedBytes
    return usedBytes
  }

  /** Changes that a power loss could undo now. */
  get pending(): number {
    return [...this.#names.pending()].length
  }

  /** Paths of all files, sorted. */
  files(): string[] {
    return this.#names.list().map(([path]) => path)
  }

  bytesOf(path: string): Uint8Array {
    return this.#names.file(path).bytes()
  }

  /** Puts a file there, durable with its directories, in place of what was there. */
  put(path: string, bytes: Uint8Array): void {
    const directory = path.split('/').slice(0, -1).join('/')
    if (directory !== '') this.#makeDirectory(directory)
    if (this.#names.at(path) !== undefined) this.#names.remove(path, this.#ticks.next())
    this.#names.add(path, SimFile.of(bytes), this.#ticks.next())
    for (let parts = path.split('/').slice(0, -1); ; parts = parts.slice(0, -1)) {
      this.#names.sync(this.#names.directory(parts.join('/')), this.#ticks.last)
      if (parts.length === 0) break
    }
  }

  /** Cuts a file, or extends it with zeros, durably. */
  resize(path: string, sizeBytes: number): void {
    const bytes = new Uint8Array(sizeBytes)
    bytes.set(this.bytesOf(path).subarray(0, sizeBytes))
    this.put(path, bytes)
  }

  /** Appends to a file, durably. */
  append(path: string, tail: Uint8Array): void {
    const bytes = this.bytesOf(path)
    this.resize(path, bytes.length + tail.length)
    const grown = this.bytesOf(path)
    grown.set(tail, bytes.length)
    this.put(path, grown)
  }

  flipBit(path: string, position: number, bit = 0): void {
    this.#names.file(path).flipBit(position, bit)
  }

  /** Removes a file, durably. */
  erase(path: string): void {
    this.#names.remove(path, this.#ticks.next())
    this.#names.sync(this.#names.directory(path.split('/').slice(0, -1).join('/')), this.#ticks.last)
  }

  // ── How an operation runs ────────────────────────────────────────────────────────────────────────────

  async #run<T>(operation: Operation, path: string, effect: Effect<T>): Promise<T> {
    if (this.#halted) return NEVER
    const fault = this.onOperation(operation, path, ++this.#operations) ?? {}
    if (fault.halt === 'before') this.halt()
    if (this.#halted) return NEVER
    const moment = this.#ticks.last
    await this.#wait(fault.delayMs)
    if (this.#halted) return NEVER
    try {
      const result = effect(fault, moment)
      fault.done?.()
      if (fault.halt === undefined) return result
      this.halt()
      return NEVER
    } catch (error) {
      throw storageError(operation, path, error)
    }
  }

  async #wait(delayMs: number | undefined): Promise<void> {
    const { clock, turns = 1 } = this.#options
    assert(clock !== undefined || delayMs === undefined, 'a delay needs a clock')
    if (clock === undefined) return
    if (delayMs !== undefined) await new Promise<void>((resolve) => clock.setTimer(resolve, delayMs))
    for (let left = 1 + this.#dice.below(turns); left > 0; left--) {
      await new Promise<void>((resolve) => clock.nextTurn(resolve))
    }
  }
}

class SimHandle implements DataFile {
  readonly file: SimFile
  readonly #system: System
  readonly #path: string
  readonly #mode: OpenMode

  constructor(system: System, file: SimFile, path: string, mode: OpenMode) {
    this.#system = system
    this.file = file
    this.#path = path
    this.#mode = mode
  }

  read(into: Uint8Array, position: number): Promise<number> {
    return this.#run('read', () => this.file.read(into, position))
  }

  write(bytes: Uint8Array, position: number): Promise<void> {
    return this.writeAll([bytes], position)
  }

  async writeAll(pieces: readonly Uint8Array[], position: number): Promise<void> {
    const sizeBytes = totalBytes(pieces)
    for (let done = 0; done < sizeBytes; ) {
      done += await this.#run('write', ({ shortBytes }) => {
        this.#mustWrite()
        const left = concatenated(pieces).subarray(done)
        const taken = this.file.fits(
          position + done,
          Math.min(left.length, shortBytes ?? left.length),
          this.#system.free(),
        )
        if (taken === 0) throw new SystemFailure('ENOSPC')
        this.file.write(left.subarray(0, taken), position + done, this.#system.ticks)
        return taken
      })
    }
  }

  sync(): Promise<void> {
    return this.#system.run('sync', this.#path, ({ fail }, moment) => {
      this.#mustBeOpen()
      if (fail !== undefined) this.file.forget(moment)
      check(fail)
      if (!this.#system.missingSync) this.file.sync(moment)
    })
  }

  truncate(sizeBytes: number): Promise<void> {
    return this.#run('truncate', () => {
      this.#mustWrite()
      this.file.truncate(sizeBytes, this.#system.ticks)
    })
  }

  size(): Promise<number> {
    return this.#run('size', () => this.file.size)
  }

  async close(): Promise<void> {
    if (!this.#system.handles.has(this)) return
    await this.#system.run('close', this.#path, ({ fail }) => {
      this.#system.handles.delete(this)
      check(fail)
    })
  }

  #run<T>(operation: Operation, effect: Effect<T>): Promise<T> {
    return this.#system.run(operation, this.#path, (fault, moment) => {
      this.#mustBeOpen()
      check(fault.fail)
      return effect(fault, moment)
    })
  }

  #mustBeOpen(): void {
    if (!this.#system.handles.has(this)) throw new SystemFailure('EBADF')
  }

  #mustWrite(): void {
    if (this.#mode === 'read') throw new SystemFailure('EBADF')
  }
}

function check(fail: string | undefined): void {
  if (fail !== undefined) throw new SystemFailure(fail)
}

function concatenated(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(totalBytes(pieces))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}
