/**
 * The whole system in one job: orders from a file (or standard input) through one topic to five subscribers,
 * a dead letter, a replay, and a replay that is refused.
 *
 *   npm run quickstart                        the sample orders
 *   npm run quickstart -- my-orders.ndjson    your file, one JSON object a line
 *   cat orders.ndjson | npm run quickstart -- -
 *   npm run quickstart -- --data ./data       everything on disk: kill it in the middle, start it again, and it goes on
 */
import { createReadStream } from 'node:fs'
import { relative } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Broker, type Delivery, OdradekError, openBroker, type Subscription } from 'odradek'

interface Order {
  readonly id?: unknown
  readonly customer?: unknown
  readonly amount?: unknown
}

const SAMPLE = fileURLToPath(new URL('data/orders.ndjson', import.meta.url))
/** Deliveries shown per subscriber; with a large file the rest is counted. */
const SHOWN = 4
const SLOW_MS = 20

const say = (line = ''): void => void process.stdout.write(`${line}\n`)
const title = (text: string): void => say(`\n${text}\n${'─'.repeat(text.length)}`)
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const ms = (since: number): string => `${(performance.now() - since).toFixed(1)} ms`

/** What one subscriber saw: the first deliveries are printed as they come, the others counted. */
class Seen {
  readonly #name: string
  count = 0

  constructor(name: string) {
    this.#name = name
  }

  show({ offset, value, attempt }: Delivery<Order>, note = ''): void {
    this.count++
    if (this.count > SHOWN) return
    const again = attempt > 1 ? `, attempt ${attempt}` : ''
    say(`  ${this.#name.padEnd(9)} offset ${String(offset).padStart(3)}  ${describe(value)}${again}${note}`)
  }

  rest(): void {
    if (this.count > SHOWN) say(`  ${this.#name.padEnd(9)} … and ${this.count - SHOWN} more`)
  }
}

function describe({ id, customer, amount }: Order): string {
  return `${String(id ?? '(no id)')} for ${String(customer ?? '(nobody)')}, ${String(amount ?? '(no amount)')}`
}

/** One JSON object a line. A line that is none is reported, with its number, and skipped. */
async function* readOrders(source: string): AsyncGenerator<Order> {
  const input = source === '-' ? process.stdin : createReadStream(source)
  let number = 0
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
  // An error of the file ends the iteration of its lines, but does not surface there.
  let failure: Error | undefined
  input.once('error', (error: Error) => {
    failure = error
    lines.close()
  })
  for await (const line of lines) {
    number++
    if (line.trim() === '') continue
    const order = parse(line)
    if (order !== undefined) {
      yield order
      continue
    }
    process.stderr.write(
      `${source === '-' ? 'standard input' : source}:${number}: not a JSON object, skipped\n`,
    )
    process.exitCode = 1
  }
  if (failure !== undefined) throw failure
}

function parse(line: string): Order | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

async function main(source: string, data: string | undefined): Promise<void> {
  await using broker = await openBroker(data === undefined ? 'memory:' : `file:${data}`)
  process.once('SIGINT', () => void broker.close({ drainMs: 0 }).then(() => process.exit(130)))
  const orders = await broker.createTopic<Order>('orders')
  const before = broker.describe('orders').partitions[0]?.end ?? 0
  if (before > 0) {
    title(`${data} has ${before} orders of an earlier run`)
    say('  every reader goes on where it was; what it had not finished comes again')
  }

  title('Who listens to the topic "orders"')
  say('  alice     broadcast: sees every order')
  say('  worker-1  the group "shippers": every order goes to exactly one of the two,')
  say('  worker-2  and the orders of one customer stay in order')
  say('  billing   broadcast: throws on an amount that is not positive; three attempts,')
  say('            then the order becomes a dead letter and billing goes on')
  say(`  snail     broadcast: takes ${SLOW_MS} ms for every order; nobody waits for it`)

  const seen = {
    alice: new Seen('alice'),
    'worker-1': new Seen('worker-1'),
    'worker-2': new Seen('worker-2'),
    billing: new Seen('billing'),
    snail: new Seen('snail'),
  }
  const shippers = { group: 'shippers', retry: { attempts: 3, delayMs: 5 } } as const
  const fast = [
    await orders.subscribe((d) => seen.alice.show(d), { id: 'alice' }),
    await orders.subscribe((d) => seen['worker-1'].show(d), { id: 'worker-1', ...shippers }),
    await orders.subscribe((d) => seen['worker-2'].show(d), { id: 'worker-2', ...shippers }),
    await orders.subscribe(bill(seen.billing), { id: 'billing', retry: { attempts: 3, delayMs: 5 } }),
  ]
  const snail = await orders.subscribe(
    async (d) => {
      await sleep(SLOW_MS)
      seen.snail.show(d)
    },
    // Freshness before completeness: at most 100 orders behind, then the oldest are skipped and counted.
    { id: 'snail', overflow: 'drop-oldest', maxLag: { records: 100 } },
  )

  title(`Publishing ${source === '-' ? 'standard input' : relative(process.cwd(), source)}`)
  const start = performance.now()
  let published = 0
  for await (const order of readOrders(source)) {
    // An offset is never used twice, so the log's end is the number of orders that are in.
    if (published++ < before) continue
    await orders.publish(order, { key: String(order.customer ?? '') })
  }
  await Promise.all(fast.map((subscription) => subscription.drained()))
  for (const each of Object.values(seen)) each.rest()
  const known = before === 0 ? '' : ` (${Math.min(before, published)} of them were in already)`
  say(`  ${published} orders${known}; alice, the shippers and billing were done after ${ms(start)},`)
  say(`  while snail had handled ${seen.snail.count}`)
  await snail.drained()
  say(`  snail was done after ${ms(start)}`)

  await showDeadLetters(broker)
  await replay(broker, fast[0] as Subscription, seen.alice)
  summary(broker)
}

function bill(seen: Seen): (delivery: Delivery<Order>) => void {
  return (d) => {
    const { amount } = d.value
    if (!(typeof amount === 'number' && amount > 0)) throw new Error(`bad amount: ${JSON.stringify(amount)}`)
    seen.show(d)
  }
}

async function showDeadLetters(broker: Broker): Promise<void> {
  title('Dead letters: what failed for good, with the reason, ready for broker.redrive()')
  if (!broker.listTopics().includes('dlq.orders')) {
    say('  none')
    return
  }
  const letters = await broker.read('dlq.orders')
  for (const { value, headers } of letters.slice(0, SHOWN)) {
    const of = (name: string): string => headers.get(`__dlq.errors.${name}`) ?? ''
    say(`  ${describe(value as Order)}`)
    say(
      `    from ${of('topic')} offset ${of('offset')}, after ${of('delivery.count')} attempts: ${of('message')}`,
    )
  }
  if (letters.length > SHOWN) say(`  … and ${letters.length - SHOWN} more`)
}

async function replay(broker: Broker, subscription: Subscription, alice: Seen): Promise<void> {
  title("Replay: alice's cursor goes back to the start; nobody else notices")
  alice.count = 0
  await broker.resetOffset('orders', 'alice', 'earliest')
  await subscription.drained()
  alice.rest()
  try {
    await broker.resetOffset('orders', 'ghost', 'earliest')
  } catch (error) {
    if (!(error instanceof OdradekError)) throw error
    say(`  a replay of "ghost" is rejected: ${error.code}, ${error.message}`)
  }
}

function summary(broker: Broker): void {
  title('What the broker counted')
  say('  reader    delivered  acked  retried  dead letters  dropped  lag')
  for (const { name, counters, cursors } of broker.metrics().readers) {
    const { delivered, acked, redelivered, deadLettered, dropped } = counters
    const lag = cursors.reduce((sum, cursor) => sum + cursor.lag, 0)
    const column = (value: number, width: number): string => String(value).padStart(width)
    say(
      `  ${name.padEnd(9)} ${column(delivered, 9)} ${column(acked, 6)} ${column(redelivered, 8)} ` +
        `${column(deadLettered, 13)} ${column(dropped, 8)} ${column(lag, 4)}`,
    )
  }
}

// A reader that has seen enough (`npm run quickstart | head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
try {
  const { values, positionals } = parseArgs({ options: { data: { type: 'string' } }, allowPositionals: true })
  await main(positionals[0] ?? SAMPLE, values.data)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}
`)
  process.exitCode = 1
}
