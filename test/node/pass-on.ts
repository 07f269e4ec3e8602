/**
 * Passes a data directory on from one Node to another: checks all that is in it, adds to it, and closes or dies, as the
 * second argument says. Whoever comes first finds nothing.
 *
 *   node --import tsx test/node/pass-on.ts <directory> close|kill
 */
import assert from 'node:assert/strict'
import process from 'node:process'
import { openBroker } from '../../src/index.ts'
import { contentOf, corruptionOf, tokenOf } from '../torture/file/values.ts'

const MORE = 40
const PARTITIONS = 2

const [directory, ending] = process.argv.slice(2)
const broker = await openBroker(`file:${directory}`, { segmentBytes: 2_048, journalBytes: 65_536 })
const topic = await broker.createTopic('passed', { partitions: PARTITIONS, dedupe: true })

let found = 0
for (let partition = 0; partition < PARTITIONS; partition++) {
  const records = await broker.read('passed', partition)
  for (const [i, record] of records.entries()) {
    assert.equal(corruptionOf(record), undefined)
    assert.equal(tokenOf(record.value), `record ${i * PARTITIONS + partition}`)
    assert.equal(record.offset, i)
  }
  found += records.length
}
assert.equal(found % MORE, 0)

const delivered: unknown[] = []
const reader = await topic.subscribe(({ value }) => delivered.push(tokenOf(value)), {
  id: 'heir',
  from: 'earliest',
})
for (let i = Math.max(0, found - 1); i < found + MORE; i++) {
  const { value, key, headers } = contentOf(`record ${i}`)
  const published = await topic.publish(value, { key, headers, partition: i % PARTITIONS, id: `id ${i}` })
  // The newest one of before is a repeat.
  assert.equal(published.duplicate === true, i < found)
}
await reader.drained()
assert.equal(delivered.length, MORE)
await reader.close()
console.log(`Node ${process.version} found ${found} records, and leaves ${found + MORE}`)
if (ending === 'kill') process.kill(process.pid, 'SIGKILL')
await broker.close()
