/**
 * The client that does no harm, beside those that do: it produces, fetches and commits, and must be answered at once,
 * rightly, whatever the others do. What it was told is there stays there.
 */
import {
  type Api,
  type RequestInputOf,
  type ResponseOf,
  readResponse,
  writeRequest,
} from '../../../src/wire/api.ts'
import { produce } from '../../../src/wire/messages/00-produce.ts'
import { fetch } from '../../../src/wire/messages/01-fetch.ts'
import { metadata } from '../../../src/wire/messages/03-metadata.ts'
import { offsetCommit } from '../../../src/wire/messages/08-offset-commit.ts'
import { offsetFetch } from '../../../src/wire/messages/09-offset-fetch.ts'
import { batchOf, recordsOf } from '../../support/record-batches.ts'
import type { PipeClient } from './pipe.ts'
import { HONEST_PARTITIONS, HONEST_TOPIC, type Rig } from './rig.ts'

const GROUP = 'honest-group'

export class Honest {
  /** Values that were acknowledged, by partition, in order. */
  readonly acknowledged: string[][] = Array.from({ length: HONEST_PARTITIONS }, () => [])
  readonly #rig: Rig
  readonly #client: PipeClient
  readonly #fault: (what: string) => void
  #frame: Uint8Array | undefined
  #produced = 0

  constructor(rig: Rig, fault: (what: string) => void) {
    this.#rig = rig
    this.#fault = fault
    this.#client = rig.connect((frame) => {
      this.#frame = frame
    })
  }

  get dead(): boolean {
    return this.#client.closed
  }

  async #ask<A extends Api>(
    api: A,
    body: RequestInputOf<A>,
    version: number,
  ): Promise<ResponseOf<A> | undefined> {
    this.#frame = undefined
    const header = { correlationId: 1, clientId: 'honest' }
    this.#client.send(new Uint8Array(Buffer.concat(writeRequest(api, version, header, body as never))))
    for (let turns = 0; this.#frame === undefined && turns < 5; turns++) await this.#rig.settle()
    const frame = this.#frame as Uint8Array | undefined
    if (frame !== undefined) return readResponse(api, version, frame).body as ResponseOf<A>
    this.#fault(`the honest client was not answered (${api.name})`)
    return undefined
  }

  async produce(): Promise<void> {
    const partition = this.#produced % HONEST_PARTITIONS
    const value = `honest ${this.#produced++}`
    const all = this.acknowledged[partition] as string[]
    const records = batchOf({ values: [value], timestamp: this.#rig.clock.now() })
    const topicData = [{ name: HONEST_TOPIC, partitionData: [{ index: partition, records }] }]
    const response = await this.#ask(produce, { acks: -1, timeoutMs: 1_000, topicData }, 9)
    const told = response?.responses[0]?.partitionResponses[0]
    if (told === undefined) return
    if (told.errorCode !== 0 || told.baseOffset !== all.length) {
      this.#fault(
        `an honest record was answered ${told.errorCode} at ${told.baseOffset}, not 0 at ${all.length}`,
      )
    }
    all.push(value)
  }

  /** Everything that was acknowledged is there, in its place. */
  async check(): Promise<void> {
    const partitions = this.acknowledged.map((_, partition) => {
      return { partition, fetchOffset: 0, partitionMaxBytes: 2 ** 24 }
    })
    const topics = [{ topic: HONEST_TOPIC, partitions }]
    const fetched = await this.#ask(
      fetch,
      { isolationLevel: 0, maxWaitMs: 0, minBytes: 0, maxBytes: 2 ** 25, topics },
      12,
    )
    this.acknowledged.forEach((values, index) => {
      const told = fetched?.responses[0]?.partitions.find(({ partitionIndex }) => partitionIndex === index)
      const found = told?.records ? recordsOf(told.records).map(({ value }) => value) : []
      if (found.join() !== values.join()) this.#fault(`partition ${index} has lost or changed honest records`)
    })
    const offset = this.acknowledged[0]?.length ?? 0
    const commit = { partitionIndex: 0, committedOffset: offset, committedMetadata: '' }
    await this.#ask(
      offsetCommit,
      { groupId: GROUP, memberId: '', topics: [{ name: HONEST_TOPIC, partitions: [commit] }] } as never,
      8,
    )
    const asked = [{ groupId: GROUP, topics: [{ name: HONEST_TOPIC, partitionIndexes: [0] }] }]
    const stored = await this.#ask(offsetFetch, { groups: asked } as never, 8)
    const told = stored?.groups[0]?.topics[0]?.partitions[0]?.committedOffset
    if (told !== offset) this.#fault(`the honest group is at ${told}, not at ${offset}`)
    const described = await this.#ask(metadata, { topics: [{ name: HONEST_TOPIC }] }, 9)
    if (described?.topics[0]?.partitions.length !== HONEST_PARTITIONS) {
      this.#fault('the honest topic is described wrongly')
    }
  }
}
