/**
 * The directories of a simulated machine: what processes see, what the disk has, and the changes between.
 *
 *   now       what is where, every change at once
 *   changes   ● create a.new   ● rename a.new → a   ● remove b     each waits for a sync of its directories
 *   disk      what surely survives
 *
 * After a power loss any of the changes that wait are lost, in any order, with two limits that real file systems
 * keep too: a rename happened or did not, and of the changes to one file none survives without those before it. A
 * rename from one directory to another waits for both.
 */
import { type Pending, SimFile, type Survival } from './sim-file.ts'

export class SimDirectory {
  readonly now: Map<string, Node> = new Map()
  readonly disk: Map<string, Node> = new Map()
}

export type Node = SimDirectory | SimFile

interface Place {
  readonly directory: SimDirectory
  readonly name: string
}

interface Change extends Pending {
  readonly node: Node
  readonly from: Place | undefined
  readonly to: Place | undefined
  /** Directories whose sync it still needs. */
  readonly waiting: Set<SimDirectory>
}

/** An error of the system's, as far as anybody looks at it. */
export class SystemFailure extends Error {
  readonly code: string

  constructor(code: string) {
    super(`${code}: simulated`)
    this.code = code
  }
}

export class SimNames {
  readonly root: SimDirectory
  readonly #changes: Change[]

  constructor(root: SimDirectory = new SimDirectory(), changes: Change[] = []) {
    this.root = root
    this.#changes = changes
  }

  at(path: string): Node | undefined {
    let node: Node | undefined = this.root
    for (const name of partsOf(path)) {
      if (node === undefined) return undefined
      if (node instanceof SimFile) throw new SystemFailure('ENOTDIR')
      node = node.now.get(name)
    }
    return node
  }

  /** @throws SystemFailure ENOENT, EISDIR */
  file(path: string): SimFile {
    const node = this.#existing(path)
    if (node instanceof SimDirectory) throw new SystemFailure('EISDIR')
    return node
  }

  /** @throws SystemFailure ENOENT, ENOTDIR */
  directory(path: string): SimDirectory {
    const node = this.#existing(path)
    if (node instanceof SimFile) throw new SystemFailure('ENOTDIR')
    return node
  }

  #existing(path: string): Node {
    const node = this.at(path)
    if (node === undefined) throw new SystemFailure('ENOENT')
    return node
  }

  #place(path: string): Place {
    const parts = partsOf(path)
    return { directory: this.directory(parts.slice(0, -1).join('/')), name: parts.at(-1) as string }
  }

  add(path: string, node: Node, seq: number): void {
    this.#change({ seq, node, from: undefined, to: this.#place(path) })
  }

  remove(path: string, seq: number): void {
    this.#change({ seq, node: this.#existing(path), from: this.#place(path), to: undefined })
  }

  rename(from: string, to: string, seq: number): void {
    const node = this.#existing(from)
    const place = this.#place(to)
    const replaced = place.directory.now.get(place.name)
    if (replaced === node) return
    if (replaced instanceof SimDirectory) throw new SystemFailure('EISDIR')
    this.#change({ seq, node, from: this.#place(from), to: place })
  }

  #change(change: Omit<Change, 'waiting'>): void {
    const places = [change.from, change.to].filter((place) => place !== undefined)
    this.#changes.push({ ...change, waiting: new Set(places.map(({ directory }) => directory)) })
    apply(change, ({ now }) => now)
  }

  sync(directory: SimDirectory, until: number): void {
    for (const { seq, waiting } of this.#changes) if (seq <= until) waiting.delete(directory)
    while (this.#changes[0]?.waiting.size === 0) apply(this.#changes.shift() as Change, ({ disk }) => disk)
  }

  /** Sequences of what may be lost. */
  *pending(): Generator<number> {
    for (const { seq, waiting } of this.#changes) if (waiting.size > 0) yield seq
    for (const [, file] of this.list()) yield* file.pending()
  }

  /** Paths of all files, sorted, with the files. */
  list(): [path: string, file: SimFile][] {
    return [...walk(this.root, ({ now }) => now)].sort(([a], [b]) => (a < b ? -1 : 1))
  }

  /** What the next boot finds. */
  survivor(survival: Survival): SimNames {
    const layers = new Map<SimDirectory, Map<string, Node>>()
    const layerOf = (directory: SimDirectory): Map<string, Node> => {
      const layer = layers.get(directory) ?? new Map(directory.disk)
      layers.set(directory, layer)
      return layer
    }
    for (const change of this.#surviving(survival)) apply(change, layerOf)
    const boot = (directory: SimDirectory): SimDirectory => {
      const next = new SimDirectory()
      for (const [name, node] of layerOf(directory)) {
        const survivor = node instanceof SimFile ? node.survivor(survival) : boot(node)
        next.now.set(name, survivor)
        next.disk.set(name, survivor)
      }
      return next
    }
    return new SimNames(boot(this.root))
  }

  #surviving(survival: Survival): Change[] {
    const byNode = new Map<Node, Change[]>()
    for (const change of this.#changes) byNode.set(change.node, [...(byNode.get(change.node) ?? []), change])
    const kept: Change[] = []
    for (const changes of byNode.values()) {
      const durable = changes.findLastIndex(({ waiting }) => waiting.size === 0) + 1
      kept.push(...changes.slice(0, Math.max(durable, survival(changes))))
    }
    return kept.sort((a, b) => a.seq - b.seq)
  }

  /** The same for the next process, on the same machine without a boot between them. */
  copy(): SimNames {
    const copies = new Map<Node, Node>()
    const copyOf = <T extends Node>(node: T): T => {
      const known = copies.get(node)
      if (known !== undefined) return known as T
      const copy = node instanceof SimFile ? node.copy() : new SimDirectory()
      copies.set(node, copy)
      if (node instanceof SimDirectory && copy instanceof SimDirectory) {
        for (const [name, child] of node.now) copy.now.set(name, copyOf(child))
        for (const [name, child] of node.disk) copy.disk.set(name, copyOf(child))
      }
      return copy as T
    }
    const place = (old: Place | undefined): Place | undefined =>
      old && { directory: copyOf(old.directory), name: old.name }
    const root = copyOf(this.root)
    const changes = this.#changes.map(({ seq, node, from, to, waiting }) => ({
      seq,
      node: copyOf(node),
      from: place(from),
      to: place(to),
      waiting: new Set([...waiting].map(copyOf)),
    }))
    return new SimNames(root, changes)
  }
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '')
}

function apply(
  { node, from, to }: Omit<Change, 'waiting'>,
  layerOf: (directory: SimDirectory) => Map<string, Node>,
): void {
  if (from !== undefined && layerOf(from.directory).get(from.name) === node) {
    layerOf(from.directory).delete(from.name)
  }
  if (to !== undefined) layerOf(to.directory).set(to.name, node)
}

function* walk(
  directory: SimDirectory,
  layerOf: (directory: SimDirectory) => Map<string, Node>,
  prefix = '',
): Generator<[string, SimFile]> {
  for (const [name, node] of layerOf(directory)) {
    if (node instanceof SimFile) yield [prefix + name, node]
    else yield* walk(node, layerOf, `${prefix}${name}/`)
  }
}
