/** Asks a broker at `host:port` for its topics, as a client would: whether it is there. */
import { KafkaCluster } from '../src/client/cluster.ts'
import { SystemClock } from '../src/model/clock.ts'

const [host = '', port = ''] = (process.argv[2] ?? '').split(':')
const options = { clientId: 'say-hello', clock: new SystemClock(), timeoutMs: 5_000, version: '0.0.0' }
const cluster = new KafkaCluster([{ host, port: Number(port) }], options)
const { brokers, clusterId } = await cluster.metadata(null)
await cluster.close()
console.log(`cluster ${clusterId}, ${brokers.length} broker`)
