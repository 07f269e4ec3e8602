/**
 * Reads everything that a broker has, and writes it down: once after every start, when nobody else is at work. Of
 * topics that come and go it is looked whether they are there, with what is in them.
 */
import type { Broker } from '../../../src/broker.ts'
import type { LogRecord } from '../../../src/model/record.ts'
import { LATEST_TOPIC, lookAtLatest } from './latest.ts'
import type { Ledger, TopicState } from './ledger.ts'
import { placeName } from './left.ts'
import { corruptionOf, tokenOf } from './values.ts'

/** Topics that come and go. */
export const PASSING = 'passing-'
/** Records that each of those gets before it counts as created. */
export const PASSING_RECORDS = 3
const LETTERS = 'dlq.'

export interface Lookout {
  readonly broker: Broker
  readonly ledger: Ledger
  /** Topics that come and go, as the lives before left them. */
  readonly topics?: ReadonlyMap<string, TopicState>
}

export async function look({ broker, ledger, topics = new Map() }: Lookout): Promise<void> {
  for (const name of broker.listTopics().sort()) {
    const isSpecial = name.startsWith(LETTERS) || name.startsWith(PASSING) || name === LATEST_TOPIC
    if (!isSpecial) await readTopic(broker, ledger, name)
  }
  await lookAtLatest(broker, ledger)
  for (const [name, state] of topics) await lookFor(broker, ledger, name, state)
}

async function readTopic(broker: Broker, ledger: Ledger, topic: string): Promise<void> {
  const { history } = ledger
  for (const { partition, start, high } of broker.describe(topic).partitions) {
    if (start > 0) history.evict(topic, partition, start)
    const scan = history.scan(topic, partition)
    const records = await broker.read(topic, partition)
    const read = records.map((record) => ({ offset: record.offset, value: checked(ledger, record) }))
    history.scanOk(scan, start, high, read)
  }
}

/** The token of a record. */
export function checked(ledger: Ledger, record: LogRecord): string {
  const text = corruptionOf(record)
  if (text !== undefined) ledger.note({ fact: 'corrupt', text })
  return tokenOf(record.value) ?? `nothing at ${record.topic}/${record.partition}/${record.offset}`
}

/**
 * Dead letters as what they are. At the very end: a letter counts as the end of its record, which after a crash may
 * come again all the same, and leave a second one.
 */
export async function readLetters(broker: Broker, ledger: Ledger): Promise<void> {
  const known = new Set<string>()
  for (const topic of broker.listTopics().filter((name) => name.startsWith(LETTERS))) {
    for (const record of await broker.read(topic, 0)) {
      checked(ledger, record)
      const { headers } = record
      const [group, from, partition, offset] = ['group', 'topic', 'partition', 'offset'].map(
        (name) => headers.get(`__dlq.errors.${name}`) ?? '',
      ) as [string, string, string, string]
      const name = `${placeName(group, from, Number(partition))}/${offset}`
      if (!known.has(name)) ledger.history.deadLetter(group, from, Number(partition), Number(offset))
      known.add(name)
    }
  }
}

async function lookFor(broker: Broker, ledger: Ledger, topic: string, state: TopicState): Promise<void> {
  const there = broker.listTopics().includes(topic)
  if (state === 'creating') {
    // Until that is done it may be there or not, with some of its records.
    if (there) await broker.deleteTopic(topic)
    ledger.note({ fact: 'topic', topic, state: 'deleted' })
  } else if (state === 'deleting') {
    ledger.note({ fact: 'topic', topic, state: there ? 'created' : 'deleted' })
  } else if (there !== (state === 'created')) {
    ledger.fault(`topic ${topic} was ${state}, and is ${there ? 'there' : 'not there'}`)
  }
  if (!there || state === 'creating') return
  const records = await broker.read(topic, 0)
  if (records.length !== PASSING_RECORDS) {
    ledger.fault(`topic ${topic} had ${PASSING_RECORDS} records, and has ${records.length}`)
  }
}
