/** The options of `odradek serve`: what it takes, refuses and says. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { describeConfigs } from '../../src/wire/messages/32-describe-configs.ts'
import { WireClient } from '../server/wire-client.ts'
import { Captured, folder, forgetFolders, odradekWith, type Ran, ROOT } from './kit.ts'

afterAll(forgetFolders)

const fixture = (name: string): string => join(ROOT, 'test', 'fixtures', 'tls', name)
const TLS = ['--tls-cert', fixture('server.crt'), '--tls-key', fixture('server.key')]

const ended = { interrupted: () => AbortSignal.abort() }

/** Starts, and is asked to end at once. */
function served(...args: string[]): Promise<Ran> {
  return odradekWith(ended, 'serve', '--port', '0', '--log-level', 'error', ...args)
}

async function fileOf(text: string): Promise<string> {
  const path = join(await folder(), 'users')
  await writeFile(path, text)
  return path
}

describe('odradek serve', () => {
  it('says what clients need beside the address', async () => {
    const { code, stdout, stderr } = await served(...TLS, '--user', 'alice:se:cret', '--user', 'bob:x')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('security.protocol=SASL_SSL\n')
    expect(stdout).toContain('sasl.username=alice\n')
    expect(stdout).not.toContain('se:cret')
  })

  it('takes TLS alone, and users alone', async () => {
    expect((await served(...TLS)).stdout).toContain('security.protocol=SSL\n')
    expect((await served('--user', 'alice:x')).stdout).toContain('security.protocol=SASL_PLAINTEXT\n')
  })

  it('takes users from a file', async () => {
    const users = await fileOf('# who\nalice:x\r\n\nbob:y\n')
    const { code, stdout } = await served('--users', users)
    expect(code).toBe(0)
    expect(stdout).toContain('sasl.username=alice\n')
  })

  it('serves other machines with TLS and users, with certificates of clients, or if told to', async () => {
    const all = ['--host', '0.0.0.0']
    expect((await served(...all, ...TLS, '--user', 'a:b')).code).toBe(0)
    expect((await served(...all, ...TLS, '--tls-client-ca', fixture('ca.crt'))).code).toBe(0)
    expect((await served(...all, '--insecure')).code).toBe(0)
    const { code, stderr } = await served(...all)
    expect(code).toBe(2)
    expect(stderr).toContain(
      'odradek: --host 0.0.0.0 can be reached by other machines: give --tls-cert and --tls-key, and --users, or say --insecure',
    )
    expect((await served(...all, ...TLS)).stderr).toContain('give --users, or say --insecure')
    expect((await served(...all, '--user', 'a:b')).stderr).toContain('give --tls-cert and --tls-key, or')
  })

  it('says where metrics are, for this machine or for others', async () => {
    expect((await served('--metrics-port', '0')).stdout).toMatch(
      /Metrics are at http:\/\/127\.0\.0\.1:\d+\/metrics\./,
    )
    const all = ['--host', '0.0.0.0', '--insecure', '--metrics-port', '0']
    expect((await served(...all)).stdout).toMatch(/Metrics are at http:\/\/0\.0\.0\.0:\d+\/metrics\./)
    expect((await served(...TLS, '--metrics-port', '0')).stdout).toMatch(/Metrics are at http/)
  })

  it('says where faults are ordered, if it is asked for that', async () => {
    expect((await served('--faults-port', '0')).stdout).toMatch(
      /Faults are ordered at http:\/\/127\.0\.0\.1:\d+\/faults: for tests alone\./,
    )
    expect((await served()).stdout).not.toContain('Faults')
  })

  it('takes configs of groups by Kafka’s names', async () => {
    const configs = ['-c', 'group.min.session.timeout.ms=1000', '--config', 'group.max.size=5']
    expect((await served(...configs)).code).toBe(0)
    expect((await served('-c', 'group.max.session.timeout.ms=5')).stderr).toContain(
      'groups.minSessionTimeoutMs is at most maxSessionTimeoutMs',
    )
  })

  it('goes by the configs, and tells clients so', async () => {
    const [stop, stdout] = [new AbortController(), new Captured()]
    const write = stdout.write.bind(stdout)
    const port = new Promise<number>((resolve) => {
      stdout.write = (text, done) => {
        write(text, done)
        resolve(Number(/127\.0\.0\.1:(\d+)/.exec(stdout.text)?.[1]))
      }
    })
    const configs = ['-c', 'offsets.retention.minutes=5', '-c', 'group.max.size=7']
    const io = { stdout, interrupted: () => stop.signal }
    const running = odradekWith(io, 'serve', '-p', '0', '--log-level', 'error', ...configs)
    using client = await WireClient.connect({ host: '127.0.0.1', port: await port })
    const resources = [{ resourceType: 4, resourceName: '0', configurationKeys: null }]
    const { results } = await client.ask(describeConfigs, 4, {
      resources,
      includeSynonyms: false,
      includeDocumentation: false,
    })
    const told = new Map(results[0]?.configs.map(({ name, value }) => [name, value]))
    expect(told.get('offsets.retention.minutes')).toBe('5')
    expect(told.get('group.max.size')).toBe('7')
    stop.abort()
    expect((await running).code).toBe(0)
  })

  it('keeps things in a directory, as durable as it is told', async () => {
    const data = await folder()
    expect((await served('--data', data)).stdout).toContain(`Everything is in ${data}.`)
    expect((await served('-d', data, '--durability', 'os')).code).toBe(0)
    expect((await served()).stdout).toContain('Everything is in memory, until it ends')
    const { code, stderr } = await served('-d', ROOT)
    expect(code).toBe(2)
    expect(stderr).toContain(`INVALID_ARGUMENT: ${ROOT} is not empty and no data directory of Odradek`)
  })

  it('has several nodes, and tells clients of another address', async () => {
    const { stdout } = await served('--nodes', '2', '--advertised', 'kafka.example:19092')
    expect(stdout).toContain("new Kafka({ brokers: ['kafka.example:19092', 'kafka.example:19093'] })")
    expect((await served('--advertised', '[::1]')).stdout).toMatch(/protocol at \[::1\]:\d+\./)
    expect((await served('--partitions', '3', '--no-auto-create')).code).toBe(0)
  })

  it('logs text for people and JSON for everything else, from a level on', async () => {
    const json = await served('--log-level', 'info')
    const lines = json.stderr.trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).message)).toEqual(['listening', 'closing', 'closed'])
    expect(JSON.parse(lines[0] as string)).toMatchObject({ level: 'info', addresses: [{ node: 0 }] })
    const text = await served('--log-level', 'info', '--log', 'text')
    expect(text.stderr).toMatch(
      /^\S+Z INFO {2}listening addresses=\[\{.*\n\S+Z INFO {2}closing connections=0\n/,
    )
    const stderr = new Captured({ tty: true })
    await odradekWith({ ...ended, stderr }, 'serve', '-p', '0')
    expect(stderr.text).toMatch(/^\S+Z INFO {2}listening/)
  })

  it('says that clients elsewhere need another address, if they were to come', async () => {
    const all = ['--host', '0.0.0.0', '--insecure', '--log-level', 'warn']
    const { stdout, stderr } = await served(...all)
    expect(stdout).toContain('\nClients elsewhere need --advertised <a name of this machine>.\n')
    expect(stderr).toContain('they are told to connect to localhost')
    for (const args of [[], [...all, '--advertised', 'kafka.example'], ['--host', 'localhost']]) {
      const other = await served(...args)
      expect({ code: other.code, stderr: other.stderr }).toEqual({ code: 0, stderr: '' })
      expect(other.stdout).not.toContain('elsewhere')
    }
  })

  it('may say that it is an older Kafka', async () => {
    expect((await served('--as', '2.8')).code).toBe(0)
  })

  it.each([
    [['--tls-cert', fixture('server.crt')], '--tls-cert and --tls-key go together'],
    [['--tls-key', fixture('server.key')], '--tls-cert and --tls-key go together'],
    [['--tls-client-ca', fixture('ca.crt')], '--tls-client-ca goes with --tls-cert and --tls-key'],
    [['--tls-cert', 'nowhere', '--tls-key', 'nowhere'], '--tls-cert cannot be read: ENOENT'],
    [['--users', 'nowhere'], '--users cannot be read: ENOENT'],
    [['--metrics-port', 'x'], '--metrics-port is a whole number from 0 to 65535; not "x"'],
    [['--as', '2.7'], '--as is one of 0.11, 1.0, 2.0, 2.8, 3.9, 4.1; not "2.7"'],
    [['--faults-port', 'x'], '--faults-port is a whole number from 0 to 65535; not "x"'],
    [['-c', 'group.max.size'], '--config is name=value; not "group.max.size"'],
    [['-c', 'group.max.size=x'], '--config group.max.size is a whole number from 0 to 2147483647; not "x"'],
    [['-c', 'group.max.sise=5'], '--config: there is no "group.max.sise" here; group.max.size?'],
    [['-c', 'offsets.retention.minutes=0'], '--config offsets.retention.minutes is a whole number from 1 to'],
    [
      ['-c', 'offset.retention.minutes=5'],
      '--config: there is no "offset.retention.minutes" here; offsets.ret',
    ],
    [['-c', 'zzz=5'], '--config: there is no "zzz" here; there are group.consumer.heartbeat'],
    [['--log', 'xml'], '--log is text or json; not "xml"'],
    [['--log-level', 'loud'], '--log-level is debug, info, warn or error; not "loud"'],
    [['--durability', 'os'], '--durability goes with --data'],
    [['--durability', 'none'], '--durability is fsync or os; not "none"'],
    [
      ['--advertised', 'a:0'],
      '--advertised is a host, with a port or without, such as broker.local:9092; not "a:0"',
    ],
    [
      ['--advertised', '0.0.0.0'],
      'INVALID_ARGUMENT: serve: advertised.host is one that clients can reach, not 0.0.0.0',
    ],
    [['--user', 'alice'], '--user is name:password; not "alice"'],
    [['--user', ':x'], '--user is name:password; not ":x"'],
    [['--user', 'alice:'], '--user is name:password; not "alice:"'],
  ])('refuses %j', async (args, complaint) => {
    const { code, stderr } = await served(...args)
    expect(code).toBe(2)
    expect(stderr).toContain(`odradek: ${complaint}`)
  })

  it('names the line of a file that is none, and not what is in it', async () => {
    const { code, stderr } = await served('--users', await fileOf('alice:x\nsecret\n'))
    expect(code).toBe(2)
    expect(stderr).toContain('--users: line 2 is not name:password\n')
  })
})
