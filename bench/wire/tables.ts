/**
 * The tables of docs/benchmarks-wire.md: what of the samples is set against what, and what is to be reached. Samples have
 * the name of their broker in front, and what it did behind it. Where there is no Kafka, figures stand alone.
 */
import { absolute, atLeast, atMost, type Row, speed, type Table, type Target, time } from '../scenario.ts'
import { FILE_OS, MEMORY } from './contenders.ts'

/** Kafka acknowledges what its process has; so does `os`. A sync for each group of batches is another promise. */
const ALIKE: readonly string[] = [MEMORY, FILE_OS]

/** A load that all brokers are given. */
export interface Cell {
  readonly valueBytes: number
  readonly partitions: number
}

export const CELLS: readonly Cell[] = [
  { valueBytes: 100, partitions: 1 },
  { valueBytes: 100, partitions: 6 },
  { valueBytes: 1_024, partitions: 1 },
  { valueBytes: 1_024, partitions: 6 },
]

export function keyOf(broker: string, { valueBytes, partitions }: Cell, what: string): string {
  return `${broker}: ${what}, ${nameOf({ valueBytes, partitions })}`
}

function nameOf({ valueBytes, partitions }: Cell): string {
  return `${valueBytes} B, ${partitions} partition${partitions === 1 ? '' : 's'}`
}

/** Who is measured. */
export interface Field {
  readonly ours: readonly string[]
  readonly kafka: string | undefined
}

type Compare = (subject: string, against: string, target: Target | null) => Row

/** Each of ours against Kafka, for one thing that was measured. */
function against({ ours, kafka }: Field, what: string, compare: Compare, target: Target): Row[] {
  if (kafka === undefined) return []
  return ours.map((name) =>
    compare(`${name}: ${what}`, `${kafka}: ${what}`, ALIKE.includes(name) ? target : null),
  )
}

function alone({ ours, kafka }: Field, what: string, unit: Row['unit']): Row[] {
  const all = kafka === undefined ? ours : [...ours, kafka]
  return all.map((name) => absolute(`${name}: ${what}`, unit))
}

function cellsOf(what: string): string[] {
  return CELLS.map((cell) => `${what}, ${nameOf(cell)}`)
}

function costTable(field: Field, name: string, what: string, title: string): Table {
  const rows = cellsOf(what).flatMap((cell) => [
    ...against(field, cell, time, atMost(1)),
    ...alone(field, cell, 's/GB'),
  ])
  return { name, title, moved: '', rows }
}

function rateTable(field: Field, name: string, what: string, title: string): Table {
  const rows = cellsOf(what).flatMap((cell) => {
    const rates = against(field, cell, speed, atLeast(1))
    // Without anybody else, a ratio of one shows the rate.
    return rates.length > 0 ? rates : field.ours.map((each) => speed(`${each}: ${cell}`, `${each}: ${cell}`))
  })
  return { name, title, moved: 'bytes', rows }
}

export function loadTables(field: Field): Table[] {
  const frames = 'batches of 16 KiB made before, 4 connections'
  return [
    costTable(
      field,
      'wire-produce-cpu',
      'produce CPU',
      `Processor time of the broker's process to take a gigabyte: ${frames}, 5 requests on their way in each, acks all`,
    ),
    rateTable(
      field,
      'wire-produce',
      'produce',
      `The same by the clock; the load generator has its share of the machine`,
    ),
    costTable(
      field,
      'wire-fetch-cpu',
      'fetch CPU',
      "Processor time of the broker's process to send a gigabyte: 64 MB that are in everybody's memory, read again and again by 4 connections, with Java's limits",
    ),
    rateTable(field, 'wire-fetch', 'fetch', 'The same by the clock'),
  ]
}

export function librdkafkaTables(field: Field): Table[] {
  return [
    rateTable(
      field,
      'wire-librdkafka-produce',
      'kcat produce',
      'librdkafka with its defaults, by kcat: the lines of a file, from the start of its process to its end; acks all. Bytes of values',
    ),
    rateTable(
      field,
      'wire-librdkafka-consume',
      'kcat consume',
      'The same records consumed by kcat, with room in its queue for all of them (by default it stops asking for a second when that is full, of whichever broker, by luck)',
    ),
    costTable(
      field,
      'wire-librdkafka-cpu',
      'kcat produce CPU',
      "Processor time of the broker's process, for a gigabyte of values that librdkafka produces",
    ),
  ]
}

export function roundTripTable(field: Field, kinds: readonly string[]): Table {
  const rows = kinds.flatMap((kind) =>
    ['p50', 'p99'].flatMap((quantile) => [
      ...against(field, `${kind} ${quantile}`, time, atMost(1)),
      ...alone(field, `${kind} ${quantile}`, 'ms'),
    ]),
  )
  return {
    name: 'wire-round-trip',
    title:
      'From producing one record of 100 bytes, without linger, until a consumer that waits for it has it: by frames made before, and by librdkafka',
    moved: '',
    rows,
  }
}

/** `connections`: how many were opened. */
export function lifeTable(field: Field, connections: number): Table {
  const open = `with ${connections} connections`
  return {
    name: 'wire-life',
    title:
      'From the start of the process until ApiVersions and Metadata are answered; resident memory at rest, and with connections that have asked for metadata and are silent',
    moved: '',
    rows: [
      ...against(field, 'start', time, atMost(0.05)),
      ...alone(field, 'start', 'ms'),
      ...against(field, 'idle', time, atMost(0.125)),
      ...alone(field, 'idle', 'MiB'),
      ...against(field, open, time, atMost(1)),
      ...alone(field, open, 'MiB'),
    ],
  }
}
