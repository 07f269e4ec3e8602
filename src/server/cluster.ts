/**
 * The brokers that clients see. One process is one node, or several virtual ones: then partitions and coordinators are
 * spread over them by a hash, and whoever asks the wrong one is told so, as in a real cluster. All nodes share one
 * world; only who answers for what differs.
 */
import { murmur2 } from '../model/key-hash.ts'

export interface Address {
  readonly host: string
  readonly port: number
}

/** One broker of the cluster, as clients know it. */
export interface Node {
  readonly id: number
  /** Where clients of a listener reach it, by the listener's name. */
  readonly advertised: ReadonlyMap<string, Address>
}

const encoder = new TextEncoder()

export class Cluster {
  /** 22 characters of base64url, the same after a restart. */
  readonly id: string
  readonly nodes: readonly Node[]
  /** Moved by fault control: what is here goes before the hash. */
  readonly #moved = new Map<string, Node>()
  /** Grows when coordinators are to be spread anew. */
  #spread = 0

  constructor(id: string, nodes: readonly Node[]) {
    this.id = id
    this.nodes = nodes
  }

  /** There is one, always the first. */
  get controller(): Node {
    return this.nodes[0] as Node
  }

  leaderOf(topicId: string, partition: number): Node {
    // Asked for every partition of every request: a name to hash costs more than the rest of it.
    if (this.nodes.length === 1) return this.controller
    return this.#nodeOf(`partition/${topicId}/${partition}`)
  }

  /** `kind`: the key types of FindCoordinator. */
  coordinatorOf(kind: 'group' | 'transaction' | 'share', key: string): Node {
    return this.#nodeOf(this.#coordinated(kind, key))
  }

  moveLeader(topicId: string, partition: number, to: Node): void {
    this.#moved.set(`partition/${topicId}/${partition}`, to)
  }

  moveCoordinator(kind: 'group' | 'transaction' | 'share', key: string, to: Node): void {
    this.#moved.set(this.#coordinated(kind, key), to)
  }

  /** Spreads all groups and transactions anew, also those that were moved. */
  rehashCoordinators(): void {
    this.#spread++
  }

  #coordinated(kind: string, key: string): string {
    return this.#spread === 0 ? `${kind}/${key}` : `${kind}/${key}/${this.#spread}`
  }

  #nodeOf(what: string): Node {
    const { nodes } = this
    if (nodes.length === 1) return nodes[0] as Node
    return this.#moved.get(what) ?? (nodes[(murmur2(encoder.encode(what)) >>> 0) % nodes.length] as Node)
  }
}
