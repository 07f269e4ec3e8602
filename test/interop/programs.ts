/** What Apache Kafka's own programs are tried with. */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type Program, program } from './program.ts'
import type { Trial } from './trial.ts'
import { all, publish, TOPIC, text } from './values.ts'

export interface ProgramTrial {
  readonly name: string
  readonly run: (trial: Trial) => Promise<void>
}

type Tool = (name: Program, ...given: string[]) => Promise<string>

/** With the address said, as every one of them wants it. */
function toolOf({ server }: Trial): Tool {
  return (name, ...given) => program(name, ['--bootstrap-server', server.bootstrap, ...given])
}

function words(output: string): string[][] {
  const lines = output.trim().split('\n')
  return lines.map((line) => line.trim().split(/\s+/))
}

async function topics(trial: Trial): Promise<void> {
  const tool = toolOf(trial)
  const topic = ['--topic', TOPIC]
  await tool('kafka-topics', '--create', ...topic, '--partitions', '3', '--config', 'retention.ms=3600000')
  expect(trial.broker.describe(TOPIC).partitions).toHaveLength(3)
  expect((await tool('kafka-topics', '--list')).trim()).toBe(TOPIC)
  const described = await tool('kafka-topics', '--describe', ...topic)
  expect(described).toMatch(/PartitionCount: 3\s+ReplicationFactor: 1\s+Configs: .*retention\.ms=3600000/)
  await tool('kafka-topics', '--alter', ...topic, '--partitions', '5')
  expect(trial.broker.describe(TOPIC).partitions).toHaveLength(5)
  await tool('kafka-topics', '--delete', ...topic)
  expect(() => trial.broker.describe(TOPIC)).toThrow()
}

async function configs(trial: Trial): Promise<void> {
  const tool = toolOf(trial)
  await trial.broker.createTopic(TOPIC)
  const entity = ['--entity-type', 'topics', '--entity-name', TOPIC]
  await tool('kafka-configs', '--alter', ...entity, '--add-config', 'retention.ms=7200000')
  expect(await tool('kafka-configs', '--describe', ...entity)).toContain('retention.ms=7200000')
  await tool('kafka-configs', '--alter', ...entity, '--delete-config', 'retention.ms')
  expect(await tool('kafka-configs', '--describe', ...entity)).not.toContain('7200000')
  const everything = await tool('kafka-configs', '--describe', '--all', '--entity-type', 'brokers')
  expect(everything).toContain('sensitive=')
}

async function consoles(trial: Trial): Promise<void> {
  const tool = toolOf(trial)
  await trial.broker.createTopic(TOPIC)
  const input = all(0, 20)
    .map((value) => `k:${value}\n`)
    .join('')
  const bootstrap = ['--bootstrap-server', trial.server.bootstrap, '--topic', TOPIC]
  const keyed = ['--property', 'parse.key=true', '--property', 'key.separator=:']
  await program('kafka-console-producer', [...bootstrap, ...keyed], input)
  const records = await trial.broker.read(TOPIC)
  expect(records.map(({ value }) => text(value))).toEqual(all(0, 20))
  const printed = ['--property', 'print.key=true', '--max-messages', '20', '--timeout-ms', '30000']
  const output = await tool('kafka-console-consumer', '--topic', TOPIC, '--from-beginning', ...printed)
  expect(words(output)).toEqual(all(0, 20).map((value) => ['k', value]))
}

async function groups(trial: Trial): Promise<void> {
  const tool = toolOf(trial)
  await trial.broker.createTopic(TOPIC)
  await publish(trial.broker, 0, 20)
  const some = ['--from-beginning', '--max-messages', '20', '--timeout-ms', '30000']
  await tool('kafka-console-consumer', '--topic', TOPIC, '--group', 'shippers', ...some)
  await publish(trial.broker, 20, 25)
  expect((await tool('kafka-consumer-groups', '--list')).trim()).toBe('shippers')
  expect(await tool('kafka-groups', '--list')).toMatch(/shippers\s+Classic\s+consumer/)
  const group = ['--group', 'shippers']
  const described = await tool('kafka-consumer-groups', '--describe', ...group)
  expect(words(described).at(-1)?.slice(0, 6)).toEqual(['shippers', TOPIC, '0', '20', '25', '5'])
  expect(await tool('kafka-consumer-groups', '--describe', '--state', ...group)).toContain('Empty')
  const back = ['--reset-offsets', '--to-offset', '7', '--topic', TOPIC, '--execute']
  await tool('kafka-consumer-groups', ...group, ...back)
  const { cursors } = trial.broker.describeGroup('shippers')
  expect(cursors.map(({ committed }) => committed)).toEqual([7])
  await tool('kafka-consumer-groups', '--delete', ...group)
  expect((await tool('kafka-consumer-groups', '--list')).trim()).toBe('')
}

async function offsets(trial: Trial): Promise<void> {
  const tool = toolOf(trial)
  await trial.broker.createTopic(TOPIC)
  await publish(trial.broker, 0, 20)
  expect((await tool('kafka-get-offsets', '--topic', TOPIC)).trim()).toBe(`${TOPIC}:0:20`)
  const file = join(tmpdir(), `odradek-offsets-${process.pid}.json`)
  writeFileSync(file, JSON.stringify({ version: 1, partitions: [{ topic: TOPIC, partition: 0, offset: 4 }] }))
  expect(await tool('kafka-delete-records', '--offset-json-file', file)).toMatch(/low_watermark: 4/)
  expect((await tool('kafka-get-offsets', '--topic', TOPIC, '--time', 'earliest')).trim()).toBe(
    `${TOPIC}:0:4`,
  )
}

async function transactions(trial: Trial): Promise<void> {
  const tool = toolOf(trial)
  await trial.broker.createTopic(TOPIC)
  const sending = ['--topic', TOPIC, '--num-records', '50', '--record-size', '100', '--throughput', '-1']
  const settings = ['--producer-props', `bootstrap.servers=${trial.server.bootstrap}`]
  const transactional = ['--transactional-id', 'till', '--transaction-duration-ms', '100']
  await program('kafka-producer-perf-test', [...sending, ...settings, ...transactional])
  expect(await trial.broker.read(TOPIC)).toHaveLength(50)
  expect(await tool('kafka-transactions', 'list')).toMatch(/till\s+\d+\s+\d+\s+CompleteCommit/)
  const described = await tool('kafka-transactions', 'describe', '--transactional-id', 'till')
  expect(described).toContain('CompleteCommit')
  const place = ['--topic', TOPIC, '--partition', '0']
  expect(words(await tool('kafka-transactions', 'describe-producers', ...place))).toHaveLength(2)
  const hanging = await tool('kafka-transactions', 'find-hanging', '--broker-id', '0').catch(String)
  expect(hanging).not.toMatch(/UNSUPPORTED|UnsupportedVersion/i)
}

async function cluster(trial: Trial): Promise<void> {
  const tool = toolOf(trial)
  await trial.broker.createTopic(TOPIC)
  await publish(trial.broker, 0, 20)
  const bootstrap = ['--bootstrap-server', trial.server.bootstrap]
  expect(await program('kafka-cluster', ['cluster-id', ...bootstrap])).toMatch(/Cluster ID: \S{22}/)
  expect(await program('kafka-cluster', ['list-endpoints', ...bootstrap])).toContain('127.0.0.1')
  expect(await tool('kafka-features', 'describe')).toContain('transaction.version')
  expect(await tool('kafka-log-dirs', '--describe')).toContain(`"partition":"${TOPIC}-0"`)
}

export const PROGRAMS: readonly ProgramTrial[] = [
  { name: 'kafka-topics: create, list, describe, alter, delete', run: topics },
  { name: 'kafka-configs: describe, add, delete', run: configs },
  { name: 'kafka-console-producer, kafka-console-consumer', run: consoles },
  { name: 'kafka-consumer-groups, kafka-groups: list, describe, reset offsets, delete', run: groups },
  { name: 'kafka-get-offsets, kafka-delete-records', run: offsets },
  { name: 'kafka-producer-perf-test with transactions, kafka-transactions', run: transactions },
  { name: 'kafka-cluster, kafka-features, kafka-log-dirs', run: cluster },
]
