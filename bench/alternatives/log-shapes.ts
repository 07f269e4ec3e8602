/**
 * How a log in memory keeps 65,536 records with fresh objects as values. A ring of record objects is the
 * obvious shape and the slow one: each record is an object that lives long enough to be copied twice by the
 * collector, 100 bytes beside its value. Columns keep one array per field in chunks that die as a whole.
 */
import { type Order, orders } from '../contenders/payload.ts'
import { type Contender, race, type Session } from '../race.ts'
import { type Scenario, speed } from '../scenario.ts'
import { ordered, Tally } from '../tally.ts'

const RETAINED = 65_536
const CHUNK = 1_024
const NO_HEADERS: readonly string[] = []

/** Appends in bursts of a chunk and reads each burst back, as a reader at the tail does. */
function log(name: string, open: () => { append(value: Order): void; read(tally: Tally): void }): Contender {
  return {
    name,
    open(): Session {
      const { append, read } = open()
      const tally = new Tally()
      return {
        tallies: [tally],
        run(count) {
          for (let i = 0; i < count; ) {
            for (const end = Math.min(count, i + CHUNK); i < end; i++) append(orders.make(i))
            read(tally)
          }
        },
      }
    },
  }
}

interface LogRecord {
  readonly offset: number
  readonly timestamp: number
  readonly key: string | null
  readonly value: Order
  readonly headers: readonly string[]
}

function ringOfObjects(now: () => number) {
  return () => {
    const ring = new Array<LogRecord | undefined>(RETAINED).fill(undefined)
    let end = 0
    let next = 0
    return {
      append(value: Order): void {
        const record = { offset: end, timestamp: now(), key: null, value, headers: NO_HEADERS }
        ring[end++ & (RETAINED - 1)] = record
      },
      read(tally: Tally): void {
        for (; next < end; next++) tally.add((ring[next & (RETAINED - 1)] as LogRecord).value.id)
      },
    }
  }
}

class Columns {
  readonly values: Order[] = []
  timestamp = 0
  timestamps: Float64Array | null = null
}

/** Rows that share a timestamp need no column for it; the first that differs makes one. */
function stamp(columns: Columns, row: number, timestamp: number): void {
  if (row === 0) columns.timestamp = timestamp
  if (columns.timestamps !== null) columns.timestamps[row] = timestamp
  else if (columns.timestamp !== timestamp) {
    columns.timestamps = new Float64Array(CHUNK).fill(columns.timestamp, 0, row)
    columns.timestamps[row] = timestamp
  }
}

function columns(now: () => number) {
  return () => {
    const chunks = new Array<Columns>(RETAINED / CHUNK)
    let tail = new Columns()
    let end = 0
    let next = 0
    return {
      append(value: Order): void {
        const row = end & (CHUNK - 1)
        if (row === 0) {
          tail = new Columns()
          chunks[(end / CHUNK) & (RETAINED / CHUNK - 1)] = tail
        }
        stamp(tail, row, now())
        tail.values.push(value)
        end++
      },
      read(tally: Tally): void {
        while (next < end) {
          const { values } = chunks[Math.floor(next / CHUNK) & (RETAINED / CHUNK - 1)] as Columns
          for (let row = next & (CHUNK - 1); row < values.length; row++, next++) {
            tally.add((values[row] as Order).id)
          }
        }
      },
    }
  }
}

/** One reading of the clock serves 64 records, as `model/clock` does it. */
function coarseClock(): () => number {
  let left = 0
  let now = 0
  return () => {
    if (left-- === 0) {
      left = 64
      now = Date.now()
    }
    return now
  }
}

export const logShapes: Scenario = {
  name: 'log-shapes',
  title: 'A log of 65,536 fresh objects in memory',
  moved: 'records',
  rows: [
    speed('columns, coarse clock', 'record objects'),
    speed('columns', 'record objects'),
    speed('record objects, coarse clock', 'record objects'),
  ],
  sample: race({
    expectation: ordered((i) => i),
    contenders: [
      log('record objects', ringOfObjects(Date.now)),
      log('record objects, coarse clock', ringOfObjects(coarseClock())),
      log('columns', columns(Date.now)),
      log('columns, coarse clock', columns(coarseClock())),
    ],
  }),
}
