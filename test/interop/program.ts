/** Programs as they come with Apache Kafka: run by their command line, judged by what they print and what the broker has. */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, 'clients', 'tools', 'target')
const JAVA = [
  '-cp',
  join(FOLDER, '*'),
  '-XX:TieredStopAtLevel=1',
  '-Xshare:auto',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=error',
]
const DEADLINE_MS = 60_000

/** Of its scripts, those that are tried, and what each of them starts. */
const CLASSES = {
  'kafka-topics': 'org.apache.kafka.tools.TopicCommand',
  'kafka-configs': 'kafka.admin.ConfigCommand',
  'kafka-console-producer': 'org.apache.kafka.tools.ConsoleProducer',
  'kafka-console-consumer': 'org.apache.kafka.tools.consumer.ConsoleConsumer',
  'kafka-consumer-groups': 'org.apache.kafka.tools.consumer.group.ConsumerGroupCommand',
  'kafka-groups': 'org.apache.kafka.tools.GroupsCommand',
  'kafka-get-offsets': 'org.apache.kafka.tools.GetOffsetShell',
  'kafka-delete-records': 'org.apache.kafka.tools.DeleteRecordsCommand',
  'kafka-transactions': 'org.apache.kafka.tools.TransactionsCommand',
  'kafka-log-dirs': 'org.apache.kafka.tools.LogDirsCommand',
  'kafka-cluster': 'org.apache.kafka.tools.ClusterTool',
  'kafka-features': 'org.apache.kafka.tools.FeatureCommand',
  'kafka-producer-perf-test': 'org.apache.kafka.tools.ProducerPerformance',
} as const

export type Program = keyof typeof CLASSES

/** Why they cannot be tried here; undefined where they can. */
export function withoutPrograms(): string | undefined {
  if (spawnSync('java', ['-version']).status !== 0) return 'java is not on this machine'
  return existsSync(join(FOLDER, 'word-count.jar')) ? undefined : 'they are not here (Maven)'
}

/** A command for Drivers. */
export function javaCommand(name: string): string[] {
  return ['java', ...JAVA, name]
}

/** Resolves with what it prints once it has ended well. */
export function program(name: Program, given: readonly string[], input = ''): Promise<string> {
  const child = spawn('java', [...JAVA, CLASSES[name], ...given], { stdio: ['pipe', 'pipe', 'pipe'] })
  let [output, errors] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const timer = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS)
  return new Promise((resolve, reject) => {
    child.on('close', (status) => {
      clearTimeout(timer)
      if (status === 0) resolve(output)
      else reject(new Error(`${name} ${given.join(' ')} ended with ${status}\n${output}\n${errors}`))
    })
  })
}
