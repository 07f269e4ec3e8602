/**
 * Apache Kafka for comparison: brought by Maven once, into bench/.cache, which is nobody's but this machine's. One node
 * that is broker and controller, on loopback, with a fresh directory.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BrokerProcess, freePort } from './process.ts'

const VERSION = '4.1.1'
const CACHE = fileURLToPath(new URL(`../../.cache/kafka-${VERSION}`, import.meta.url))
const MAVEN_LIMIT_MS = 300_000
const CLUSTER_ID = 'AAAAAAAAAAAAAAAAAAAAAA'

/** What kafka-server-start.sh and kafka-run-class.sh of the distribution give a broker. */
const JVM = [
  '-Xmx1G',
  '-Xms1G',
  '-server',
  '-XX:+UseG1GC',
  '-XX:MaxGCPauseMillis=20',
  '-XX:InitiatingHeapOccupancyPercent=35',
  '-XX:+ExplicitGCInvokesConcurrent',
  '-XX:MaxInlineLevel=15',
  '-Djava.awt.headless=true',
]

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>${VERSION}</version>
    </dependency>
  </dependencies>
</project>
`

export interface Kafka {
  readonly name: string
  readonly java: string
}

/** What is missing here, for people, or Kafka. */
export function bringKafka(): Kafka | string {
  const asked = spawnSync('java', ['-version'], { encoding: 'utf8' })
  if (asked.status !== 0) return 'there is no Java on this machine'
  if (!existsSync(join(CACHE, 'complete'))) {
    const problem = download()
    if (problem !== undefined) return problem
  }
  return { name: `Kafka ${VERSION}`, java: /"([^"]+)"/.exec(asked.stderr)?.[1] ?? 'unknown' }
}

function download(): string | undefined {
  mkdirSync(CACHE, { recursive: true })
  writeFileSync(join(CACHE, 'pom.xml'), POM)
  const args = ['-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${join(CACHE, 'libs')}`]
  const { status, error, stdout } = spawnSync('mvn', args, {
    cwd: CACHE,
    encoding: 'utf8',
    timeout: MAVEN_LIMIT_MS,
  })
  if (error !== undefined) return 'there is no Maven on this machine to bring Kafka'
  if (status !== 0) return `Maven could not bring Kafka: ${stdout.slice(0, 200)}`
  writeFileSync(join(CACHE, 'complete'), '')
  return undefined
}

/** Its storage is formatted before the clock of its start runs. */
export async function startKafka(directory: string): Promise<BrokerProcess> {
  const port = await freePort()
  let controller = await freePort()
  while (controller === port) controller = await freePort()
  const properties = join(directory, 'server.properties')
  writeFileSync(properties, settings(port, controller, join(directory, 'data')))
  const classpath = ['-cp', join(CACHE, 'libs', '*')]
  const format = ['kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', properties]
  const formatted = spawnSync('java', [...classpath, ...format], { encoding: 'utf8' })
  if (formatted.status !== 0) throw new Error(`Kafka's storage: ${formatted.stdout}${formatted.stderr}`)
  return BrokerProcess.start(port, {
    command: 'java',
    args: [...JVM, ...classpath, 'kafka.Kafka', properties],
  })
}

function settings(port: number, controller: number, data: string): string {
  return `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${controller}
listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller}
advertised.listeners=PLAINTEXT://127.0.0.1:${port}
controller.listener.names=CONTROLLER
log.dirs=${data}
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.segment.delete.delay.ms=1000
`
}
