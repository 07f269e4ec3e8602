/** What `odradek serve` says once it listens: where, what becomes of the data, and how to connect. */
import type { KafkaServer } from '../server/server.ts'
import { table } from './table.ts'

const EVERYWHERE: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** Although others could reach it. */
function isForThisMachine({ addresses, bootstrap }: KafkaServer): boolean {
  return bootstrap.startsWith('localhost:') && addresses.some(({ host }) => EVERYWHERE.has(host))
}

/** Ports beside Kafka's. */
function otherPorts({ metricsAddress }: KafkaServer, faultsUrl: string | undefined): string[] {
  return [
    ...(metricsAddress === undefined
      ? []
      : [`Metrics are at http://${metricsAddress.host}:${metricsAddress.port}/metrics.`]),
    ...(faultsUrl === undefined ? [] : [`Faults are ordered at ${faultsUrl}/faults: for tests alone.`]),
  ]
}

/** `settings`: what clients have to be told beside the address. */
export function banner(
  server: KafkaServer,
  faultsUrl: string | undefined,
  data: string | undefined,
  settings: readonly string[],
): string[] {
  const { bootstrap } = server
  const kept = data === undefined ? 'in memory, until it ends; --data <directory> keeps it' : `in ${data}`
  const head = [
    `Odradek serves Kafka's protocol at ${bootstrap}. Everything is ${kept}.`,
    ...(isForThisMachine(server) ? ['Clients elsewhere need --advertised <a name of this machine>.'] : []),
    ...otherPorts(server, faultsUrl),
    '',
  ]
  const told = settings.length > 0 ? secured(bootstrap, settings) : plain(bootstrap)
  return [...head, ...told, '', 'Ctrl-C ends it.']
}

function secured(bootstrap: string, settings: readonly string[]): string[] {
  return ['Clients need:', `  bootstrap.servers=${bootstrap}`, ...settings.map((setting) => `  ${setting}`)]
}

function plain(bootstrap: string): string[] {
  const list = bootstrap
    .split(',')
    .map((address) => `'${address}'`)
    .join(', ')
  return table([
    [`  kcat -b ${bootstrap} -L`, 'topics and partitions'],
    [`  echo hello | kcat -b ${bootstrap} -P -t greetings`, 'a record'],
    [`  kcat -b ${bootstrap} -C -t greetings -e`, 'all records'],
    [`  new Kafka({ brokers: [${list}] })`, 'KafkaJS'],
    [`  bootstrap.servers=${bootstrap}`, 'any other client'],
  ])
}
