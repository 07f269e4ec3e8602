/** Fills a directory in a process of its own, whose memory is nobody's then: `node fill.js <directory> <bytes> <options>` */
import { openBroker } from 'odradek'
import { allRecords, publishBurst, UNBOUNDED } from './files.ts'

const [directory, bytes, recordBytes] = process.argv.slice(2)
const broker = await openBroker(`file:${directory}`, { durability: 'os' })
const topic = await broker.createTopic<Uint8Array>('orders', { retention: UNBOUNDED })
await publishBurst(topic, allRecords(Number(recordBytes)), 0, Math.ceil(Number(bytes) / Number(recordBytes)))
await broker.close()
