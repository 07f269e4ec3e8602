/**
 * `broker.metrics()` is plain data: here it becomes Prometheus' text format, with the names that kafka_exporter
 * gives to offsets and lag, so that dashboards made for Kafka fit. Nothing is bundled for it.
 */
import { type MetricsSnapshot, openBroker } from 'odradek'

type Labels = Readonly<Record<string, string | number>>

/** One metric in Prometheus' text format. */
function metric(name: string, type: 'gauge' | 'counter', help: string, samples: [Labels, number][]): string {
  const escaped = (text: string) => text.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`))
  const lines = samples.map(([labels, value]) => {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(String(text))}"`)
    return `${name}{${pairs.join(',')}} ${value}`
  })
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines].join('\n')
}

/** Offsets and lag under kafka_exporter's names; what Kafka does not count, under our own. */
function exposition({ topics, readers }: MetricsSnapshot): string {
  const partitions = topics.flatMap(({ name: topic, partitions }) =>
    partitions.map((each) => ({ labels: { topic, partition: each.partition }, ...each })),
  )
  // A broadcast reader is a group of one: Kafka's dashboards see it as odradek.reader.<id>.
  const cursors = readers.flatMap(({ name, kind, cursors }) =>
    cursors.map(({ topic, partition, committed, lag }) => ({
      labels: { consumergroup: kind === 'broadcast' ? `odradek.reader.${name}` : name, topic, partition },
      committed,
      lag,
    })),
  )
  const outcomes = (['acked', 'redelivered', 'deadLettered', 'dropped'] as const).flatMap((outcome) =>
    readers.map(({ name, counters }): [Labels, number] => [{ reader: name, outcome }, counters[outcome]]),
  )
  return [
    metric(
      'kafka_topic_partition_current_offset',
      'gauge',
      'Next offset to be written',
      partitions.map(({ labels, end }) => [labels, end]),
    ),
    metric(
      'kafka_topic_partition_oldest_offset',
      'gauge',
      'Oldest offset kept',
      partitions.map(({ labels, start }) => [labels, start]),
    ),
    metric(
      'kafka_consumergroup_current_offset',
      'gauge',
      'Lowest unsettled offset',
      cursors.map(({ labels, committed }) => [labels, committed]),
    ),
    metric(
      'kafka_consumergroup_lag',
      'gauge',
      'Records accepted and not settled',
      cursors.map(({ labels, lag }) => [labels, lag]),
    ),
    metric('odradek_deliveries_total', 'counter', 'Deliveries by outcome', outcomes),
  ].join('\n')
}

await using broker = await openBroker()
const orders = await broker.createTopic<string>('orders', { partitions: 2 })
await orders.subscribe(() => {}, { group: 'shippers' })
// Receives three and no more: its lag grows.
const audit = await orders.subscribe(() => {}, { id: 'audit', credit: 'manual' })
audit.request(3)
for (let i = 0; i < 10; i++) await orders.publish(`order ${i}`, { partition: i % 2 })
await broker.idle()
console.log(exposition(broker.metrics()))
