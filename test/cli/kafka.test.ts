/** topic, produce, consume and group, in this process, at a broker of the test's own. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Io } from '../../src/cli/command.ts'
import { startTestServer, type TestServer } from '../../src/testing/test-server.ts'
import { consumerGroupHeartbeat } from '../../src/wire/messages/68-consumer-group-heartbeat.ts'
import { WireClient } from '../server/wire-client.ts'
import { Captured, odradekWith, type Ran } from './kit.ts'

let kafka: TestServer

beforeAll(async () => {
  kafka = await startTestServer({ nodes: 2 })
})
afterAll(() => kafka.close())

async function* input(...chunks: readonly string[]): AsyncGenerator<Uint8Array, void, void> {
  for (const chunk of chunks) yield new TextEncoder().encode(chunk)
}

function odradek(args: string, io: Partial<Io> = {}): Promise<Ran> {
  return odradekWith({ env: { ODRADEK_BROKERS: kafka.bootstrap }, ...io }, ...args.split(' '))
}

async function produce(args: string, text: string, io: Partial<Io> = {}): Promise<Ran> {
  return odradek(`produce ${args}`, { stdin: () => input(text), ...io })
}

const json = ({ stdout }: Ran) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('odradek topic', () => {
  it('makes, lists, describes and deletes topics', async () => {
    expect(await odradek('topic create t-a t-b -p 3 -c retention.ms=60000')).toEqual({
      code: 0,
      stdout: 'created t-a with 3 partitions\ncreated t-b with 3 partitions\n',
      stderr: '',
    })
    const again = await odradek('topic create t-a t-c')
    expect(again).toMatchObject({ code: 1, stdout: 'created t-c with 1 partition\n' })
    expect(again.stderr).toBe('odradek: TOPIC_EXISTS: topic "t-a" exists\n')
    expect(await odradek('topic create t-a --if-not-exists')).toEqual({ code: 0, stdout: '', stderr: '' })
    expect((await odradek('topic create t-d --dry-run')).stdout).toMatch(/^could create t-d/)
    const { stdout } = await odradek('topic list')
    expect(stdout).toMatch(/^TOPIC +PARTITIONS +REPLICAS\nt-a +3 +1\nt-b +3 +1\nt-c +1 +1\n$/)
    expect(json(await odradek('topic list --json'))[0]).toMatchObject({
      topic: 't-a',
      partitions: 3,
      internal: false,
    })
    await produce('t-a -p 1', 'x\ny\n')
    const described = await odradek('topic describe t-a t-b')
    expect(described.stdout).toMatch(
      /^t-a\nid +\S{22}\npartitions +3 partitions, 2 offsets\nconfigs\n {2}retention.ms +60000\n/,
    )
    expect(described.stdout).toMatch(/\n +1 +\d +\d +\d +0 +2 +2\n/)
    expect(json(await odradek('topic describe t-c --json'))).toMatchObject([
      { topic: 't-c', configs: {}, partitions: [{ partition: 0, start: 0, end: 0 }] },
    ])
    expect((await odradek('topic describe t-c')).stdout).toContain('the defaults')
    expect((await odradek('topic delete t-a t-b t-c')).stdout).toBe('deleted t-a\ndeleted t-b\ndeleted t-c\n')
    expect(await odradek('topic delete t-a')).toMatchObject({ code: 1, stdout: '' })
    expect(await odradek('topic delete t-a --if-exists')).toEqual({ code: 0, stdout: '', stderr: '' })
    expect((await odradek('topic list')).stdout).toBe('')
  })

  it('shows and changes configs', async () => {
    await odradek('topic create cfg')
    expect((await odradek('topic config set cfg retention.ms=5000 segment.bytes=1048576')).stdout).toBe(
      'cfg: retention.ms=5000\ncfg: segment.bytes=1048576\n',
    )
    expect((await odradek('topic config get cfg retention.ms')).stdout).toBe('5000\n')
    expect((await odradek('topic config get cfg')).stdout).toMatch(/\nretention.ms +5000 +set\n/)
    const all = json(await odradek('topic config get cfg --json'))
    expect(all.find(({ name }) => name === 'retention.ms')).toMatchObject({ value: '5000', default: false })
    expect((await odradek('topic config delete cfg retention.ms')).stdout).toBe(
      'cfg: retention.ms is the default again\n',
    )
    expect(await odradek('topic config set cfg retention.ms=x')).toMatchObject({ code: 1, stdout: '' })
    expect((await odradek('topic config get cfg retention.mss')).stderr).toMatch(
      /there is no config .*; retention.ms\?/,
    )
    expect((await odradek('topic config get cfg zzz')).stderr).toMatch(/there is no config "zzz"\n/)
    expect((await odradek('topic config set cfg x')).stderr).toMatch(/a config is key=value; not "x"/)
    await odradek('topic delete cfg')
  })
})

describe('odradek produce and consume', () => {
  it('take lines as values and give them back, with keys, headers and formats', async () => {
    const made = await produce('lines', 'a\n\nc')
    expect(made).toEqual({ code: 0, stdout: '', stderr: '3 records produced\n' })
    expect(
      (
        await odradekWith(
          { env: { ODRADEK_BROKERS: kafka.bootstrap } },
          'consume',
          'lines',
          '-e',
          '-f',
          '%o=%s\\n',
        )
      ).stdout,
    ).toBe('0=a\n1=\n2=c\n')
    expect(await produce('keyed -K : -H h=1 -H i=2 -z gzip -q', 'k:v\n')).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    })
    expect(json(await odradek('consume keyed -e'))).toMatchObject([
      {
        key: 'k',
        value: 'v',
        headers: [
          ['h', '1'],
          ['i', '2'],
        ],
      },
    ])
    expect((await produce('tabbed -K \\t -q', 'k\tv\n')).code).toBe(0)
    expect((await odradek('consume tabbed -e -f %k-%s')).stdout).toBe('k-v')
  })

  it('give JSON back unchanged', async () => {
    const lines = [
      '{"topic":"round","partition":0,"offset":0,"timestamp":1700000000000,"key":null,"value":null,"headers":[]}',
      '{"topic":"round","partition":0,"offset":1,"timestamp":1700000000001,"key":{"base64":"/w=="},"value":"","headers":[["a","1"],["a",null],["content-type","x"],["__odradek.untyped",null]]}',
    ]
    const text = `${lines.join('\n')}\n`
    expect((await produce('--json', text)).code).toBe(0)
    expect((await odradek('consume round -e')).stdout).toBe(text)
    expect((await odradek('consume round -e --json -n 1')).stdout).toBe(`${lines[0]}\n`)
    expect((await odradek('consume round -o 1:2')).stdout).toBe(`${lines[1]}\n`)
    expect((await odradek('consume round -e -o -1')).stdout).toBe(`${lines[1]}\n`)
    expect((await odradek('consume round -e -o @1700000000001')).stdout).toBe(`${lines[1]}\n`)
    expect((await odradek('consume round -o :end --uncommitted')).stdout).toBe(text)
  })

  it('print values on a terminal', async () => {
    await produce('tty', 'plain\n')
    const stdout = new Captured({ tty: true })
    await odradek('consume tty -e', { stdout })
    expect(stdout.text).toBe('plain\n')
  })

  it('read some partitions, and several topics', async () => {
    await odradek('topic create p-a -p 3')
    for (const partition of [0, 1, 2]) await produce(`p-a -p ${partition} -q`, `${partition}\n`)
    const { stdout } = await odradek('consume p-a tty -p 0 -e -f %t%s,')
    expect(stdout.split(',').sort()).toEqual(['', 'p-a0', 'ttyplain'])
    expect(await odradek('consume p-a -p 0,3')).toMatchObject({ code: 1, stdout: '' })
  })

  it('go on until they are interrupted, and end what they do then', async () => {
    const stop = new AbortController()
    const stdout = new Captured()
    const write = stdout.write.bind(stdout)
    stdout.write = (text, done) => {
      write(text, done)
      stop.abort()
    }
    await produce('going -q', 'x\n')
    expect(await odradek('consume going', { stdout, interrupted: () => stop.signal })).toMatchObject({
      code: 0,
      stderr: '',
    })
    expect(stdout.text).toContain('"value":"x"')
    const ended = new AbortController()
    async function* typed(signal: AbortSignal): AsyncGenerator<Uint8Array, void, void> {
      yield* input('last words')
      ended.abort()
      if (!signal.aborted) throw new Error('not told')
    }
    const made = await odradek('produce going', { stdin: typed, interrupted: () => ended.signal })
    expect(made).toMatchObject({ code: 0, stderr: '1 record produced\n' })
  })

  it('name the line that is wrong, and say what was produced before it', async () => {
    expect(await produce('bad -K :', 'k:v\nkv\n')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'odradek: line 2: it has no ":" between a key and a value\n1 record produced\n',
    })
    expect((await produce('bad --json', '{"value":"1"}\n\n')).stderr).toMatch(
      /^odradek: line 2: it is no JSON/,
    )
    expect((await produce('bad -p 9', 'x\n')).stderr).toMatch(
      /^odradek: line 1: INVALID_ARGUMENT: .*not 9\n0 records/,
    )
    await odradek('topic create tiny -c max.message.bytes=200')
    const refused = await produce('tiny', `ok\n`)
    expect(refused.code).toBe(0)
    expect((await produce('tiny', `${'x'.repeat(500)}\n`)).stderr).toMatch(/^odradek: line 1: TOO_LARGE/)
  })

  it('show how many on a terminal', async () => {
    let now = 0
    const stderr = new Captured({ tty: true })
    const io = { stderr, monotonic: () => (now += 300) }
    await produce('many', 'x\n'.repeat(3), io)
    const clear = '\r\x1b[K'
    const shown = stderr.text.split(clear)
    expect(shown.length).toBeGreaterThan(2)
    expect(shown[1]).toMatch(/^\d records?$/)
    expect(shown.at(-1)).toBe('3 records produced\n')
  })
})

describe('odradek consume --group, and odradek group', () => {
  it('goes on where the group is, and shows how far that is behind', async () => {
    await odradek('topic create work -p 2')
    await produce('work -p 0 -q', 'a\nb\nc\n')
    expect((await odradek('consume work -g crew -n 2 -f %s')).stdout).toBe('ab')
    const [described] = json(await odradek('group describe crew --json'))
    expect(described).toMatchObject({ group: 'crew', state: 'Empty', lag: 1, members: [] })
    expect((await odradek('group describe crew')).stdout).toMatch(
      /^crew\ntype +classic\nstate +Empty\n[\s\S]*\nwork +0 +2 +3 +1 +- +- +-\n$/,
    )
    expect((await odradek('consume work -g crew -e -f %s')).stdout).toBe('c')
    expect((await odradek('consume work -g crew -e -f %s')).stdout).toBe('')
    expect((await odradek('group list')).stdout).toMatch(
      /^GROUP +TYPE +STATE +PROTOCOL\ncrew +classic +Empty +consumer\n/,
    )
    expect(json(await odradek('group list --json'))).toEqual([
      { group: 'crew', type: 'classic', state: 'Empty', protocolType: 'consumer' },
    ])
  })

  it('commits and leaves when it is interrupted', async () => {
    const stop = new AbortController()
    const stdout = new Captured()
    const write = stdout.write.bind(stdout)
    stdout.write = (text, done) => {
      write(text, done)
      stop.abort()
    }
    await produce('held -q', 'x\ny\n')
    const ran = await odradek('consume held -g night', { stdout, interrupted: () => stop.signal })
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect(json(await odradek('group describe night --json'))).toMatchObject([{ state: 'Empty', lag: 0 }])
  })

  it('refuses to move a group with members, and moves one without', async () => {
    await produce('moved -q', 'a\nb\nc\n')
    const plan = await odradek('group reset mover --to 1 --topic moved')
    expect(plan).toMatchObject({ code: 0, stderr: 'Nothing is changed. To do it: --execute\n' })
    expect(plan.stdout).toMatch(/\nmoved +0 +- +1\n$/)
    expect(await odradek('group describe mover')).toMatchObject({ code: 1 })
    expect((await odradek('group reset mover --to 1 --topic moved --execute')).code).toBe(0)
    expect((await odradek('consume moved -g mover -e -f %s')).stdout).toBe('bc')
    expect(json(await odradek('group reset mover --to start --json'))).toEqual([
      { topic: 'moved', partition: 0, from: 3, to: 0 },
    ])
    const stop = new AbortController()
    const member = odradek('consume moved -g mover', { interrupted: () => stop.signal })
    for (let members = 0; members === 0; ) {
      members = json(await odradek('group describe mover --json'))[0].members.length
    }
    const refused = await odradek('group reset mover --to start --execute')
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^odradek: GROUP_NOT_EMPTY: .*end them first/),
    })
    expect(await odradek('group delete mover')).toMatchObject({ code: 1, stdout: '' })
    stop.abort()
    await member
    expect(await odradek('group delete mover nobody')).toMatchObject({ code: 1, stdout: 'deleted mover\n' })
  })
})

describe('odradek group, of those whose broker assigns', () => {
  const heartbeat = {
    groupId: 'modern',
    memberId: 'AAAAAAAAAAAAAAAAAAAAAQ',
    memberEpoch: 0,
    instanceId: 'i-1',
    rackId: null,
    rebalanceTimeoutMs: 60_000,
    subscribedTopicNames: ['fleet'],
    subscribedTopicRegex: null,
    serverAssignor: null,
    topicPartitions: [],
  }

  /** Joins at the coordinator of the group. */
  async function join(): Promise<WireClient> {
    const { id } = kafka.server.world.cluster.coordinatorOf('group', 'modern')
    const client = await WireClient.connect(kafka.server.addresses[id] as { host: string; port: number })
    expect((await client.ask(consumerGroupHeartbeat, 1, heartbeat)).errorCode).toBe(0)
    return client
  }

  it('shows members, epochs and what they are to have, and leaves those with members alone', async () => {
    await odradek('topic create fleet -p 2')
    await produce('fleet -p 1 -q', 'a\n')
    using member = await join()
    const [described] = json(await odradek('group describe modern --json'))
    expect(described).toMatchObject({
      group: 'modern',
      type: 'consumer',
      assignor: 'uniform',
      lag: 1,
      members: [
        {
          memberId: heartbeat.memberId,
          instanceId: 'i-1',
          clientId: 'test',
          target: [
            { topic: 'fleet', partition: 0 },
            { topic: 'fleet', partition: 1 },
          ],
        },
      ],
    })
    expect(described.epoch).toBeGreaterThanOrEqual(1)
    expect(described.assignmentEpoch).toBe(described.epoch)
    const { stdout } = await odradek('group describe modern')
    expect(stdout).toMatch(/\nepoch +\d+, assigned \d+\nmembers +1 member\nassignor +uniform\n/)
    expect(stdout).toMatch(
      /\nMEMBER +INSTANCE +CLIENT +EPOCH +HAS +TO HAVE\nA+Q +i-1 +test +\d .* fleet 0,1\n$/,
    )
    expect((await odradek('group list')).stdout).toMatch(/\nmodern +consumer +\w+ +consumer\n/)
    expect((await odradek('group reset modern --to start')).stderr).toMatch(
      /GROUP_NOT_EMPTY: group "modern" has members: test on 127/,
    )
    expect(await odradek('group delete modern')).toMatchObject({ code: 1 })
    await member.ask(consumerGroupHeartbeat, 1, { ...heartbeat, instanceId: null, memberEpoch: -1 })
    await member.ask(consumerGroupHeartbeat, 1, { ...heartbeat, memberEpoch: -1 })
    const [{ state, members }] = json(await odradek('group describe modern --json'))
    expect({ state, members }).toEqual({ state: 'Empty', members: [] })
    expect((await odradek('group reset modern --to end --topic fleet --execute')).code).toBe(0)
    expect(json(await odradek('group describe modern --json'))).toMatchObject([{ lag: 0 }])
    expect((await odradek('group delete modern')).stdout).toBe('deleted modern\n')
  })

  it('are not asked for of a broker that knows none', async () => {
    kafka.faults.pretend('2.8')
    try {
      expect(await odradek('group describe nobody')).toMatchObject({
        code: 1,
        stderr: 'odradek: UNKNOWN_CONSUMER: group "nobody": there is no such group\n',
      })
      expect((await odradek('group list')).stdout).toMatch(/\ncrew +- +Empty +consumer\n/)
    } finally {
      kafka.faults.pretend()
    }
  })
})

describe('what is wrong', () => {
  it.each([
    ['topic', 'name a command: list, create, describe, delete, config', 'topic'],
    ['topic lst', 'unknown command "lst"; list?', 'topic'],
    ['topic config foo', 'unknown command "foo"; there are get, set, delete', 'topic config'],
    ['topic create', 'name a topic', 'topic create'],
    ['topic create x -p 0', '--partitions is a whole number from 1 to 100000; not "0"', 'topic create'],
    ['topic create x -c y', '--config is name=value; not "y"', 'topic create'],
    ['topic list x', '"x" is too much: there are options only', 'topic list'],
    ['produce', 'name a topic', 'produce'],
    ['produce x -z lzma', '--compression is gzip, snappy, lz4, zstd or none; not "lzma"', 'produce'],
    ['consume x -o y', '--offset is start, end, an offset, +N, -N or @time; not "y"', 'consume'],
    ['consume x --ofset 1', 'unknown option --ofset; --offset?', 'consume'],
    ['consume x -p y', '--partitions is a list such as 0,2; not "y"', 'consume'],
    ['consume x -f a --json', '--format and --json: one of them', 'consume'],
    ['consume x -g g -p 0', '--partitions does not go with --group: the group has its own', 'consume'],
    ['consume x -g g -o 1:2', 'the end of a range does not go with --group', 'consume'],
    ['consume x -b a:b', '--brokers is host:port, several with commas between; not "a:b"', 'consume'],
    ['consume x --user a', '--user needs a password: put it into $ODRADEK_PASSWORD', 'consume'],
    ['consume x --password a', '--sasl and --password go with --user', 'consume'],
    ['consume x --user a --sasl MD5', '--sasl is SCRAM-SHA-256, SCRAM-SHA-512, PLAIN; not "MD5"', 'consume'],
    ['group reset g', '--to says where: start, end, an offset or @time', 'group reset'],
  ])('%s: %s', async (args, message, page) => {
    const { code, stdout, stderr } = await odradek(args)
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: `odradek: ${message}\nTry: odradek ${page} --help\n`,
    })
  })

  it('in a certificate that cannot be read, is said', async () => {
    expect(await odradek('topic list --ca /nowhere')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('cannot be read'),
    })
  })

  it.each([
    ['consume none', 'UNKNOWN_TOPIC: topic "none": there is no such topic'],
    ['topic describe none', 'UNKNOWN_TOPIC: topic "none": there is no such topic'],
    ['group describe none', 'UNKNOWN_CONSUMER: there is no group "none"'],
    ['topic list -b 127.0.0.1:1', 'CONNECTION_FAILED: 127.0.0.1:1: nobody listens there'],
    [
      'topic list --user a --password b',
      'AUTHENTICATION_FAILED: authentication failed: the broker does not offer SCRAM-SHA-256; it offers nothing',
    ],
    [
      'group reset none --to end',
      'UNKNOWN_CONSUMER: group "none" has committed nothing: name topics with --topic',
    ],
  ])('at the broker, is exit code 1: %s', async (args, message) => {
    expect(await odradek(args)).toEqual({ code: 1, stdout: '', stderr: `odradek: ${message}\n` })
  })
})

describe('pages', () => {
  const commands = ['topic', 'topic list', 'topic create', 'topic describe', 'topic delete', 'topic config']
  const more = ['topic config get', 'topic config set', 'topic config delete', 'produce', 'consume', 'group']
  const groups = ['group list', 'group describe', 'group reset', 'group delete', 'serve']
  it.each([...commands, ...more, ...groups])('%s has one that fits', async (command) => {
    const { code, stdout, stderr } = await odradek(`${command} --help`)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(new RegExp(`^odradek ${command}: .*\n\nUsage\n  odradek ${command} `))
    expect(stdout.split('\n').filter((line) => line.length > 120)).toEqual([])
  })
})
