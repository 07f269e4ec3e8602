/** What a server may be told, and what it takes where nothing is said. */
import { describe, expect, it } from 'vitest'
import { type ServeOptions, serverSettings } from '../../src/server/server-options.ts'
import { codeThrown } from '../support/world.ts'

describe('defaults', () => {
  it("are Kafka's port, on this machine alone", () => {
    expect(serverSettings({}).listeners).toEqual([
      {
        name: 'PLAINTEXT',
        host: '127.0.0.1',
        port: 9092,
        advertised: { host: '127.0.0.1' },
        isGuessed: false,
      },
    ])
  })

  it('are one node, topics made when asked for, and bounds for everything', () => {
    const { nodes, world, limits } = serverSettings({})
    expect(nodes).toBe(1)
    expect(world).toEqual({
      autoCreateTopics: true,
      defaultPartitions: 1,
      bounds: {
        maxPartitions: 50_000,
        maxGroups: 50_000,
        maxCommittedOffsets: 1_000_000,
        maxTransactionalIds: 50_000,
        maxMemberBytes: 134_217_728,
      },
      groups: {
        minSessionTimeoutMs: 6_000,
        maxSessionTimeoutMs: 1_800_000,
        initialRebalanceDelayMs: 0,
        maxSize: 10_000,
        consumerSessionTimeoutMs: 45_000,
        consumerHeartbeatIntervalMs: 5_000,
      },
    })
    expect(limits).toEqual({
      maxRequestBytes: 104_857_600,
      maxPlainRequestBytes: 8_388_608,
      maxBufferedBytes: 268_435_456,
      maxConnections: 10_000,
      maxConnectionsPerAddress: 10_000,
      maxIdleMs: 600_000,
    })
  })

  it('of the bound for an address is the one for all', () => {
    expect(serverSettings({ maxConnections: 5 }).limits.maxConnectionsPerAddress).toBe(5)
  })
})

describe('listeners', () => {
  it.each(['0.0.0.0', '::'])('on all addresses, %s, advertise localhost where nothing is said', (host) => {
    expect(serverSettings({ host, insecure: true }).listeners[0]).toMatchObject({
      advertised: { host: 'localhost' },
      isGuessed: true,
    })
  })

  it('advertise what they are told', () => {
    const advertised = { host: 'kafka.example', port: 19_092 }
    const options = { host: '0.0.0.0', advertised, insecure: true }
    expect(serverSettings(options).listeners[0]).toMatchObject({ advertised, isGuessed: false })
  })

  it('may be several, each with its own', () => {
    const { listeners } = serverSettings({
      listeners: [
        { name: 'A', port: 1 },
        { name: 'B', port: 2 },
      ],
    })
    expect(listeners.map(({ name, port }) => [name, port])).toEqual([
      ['A', 1],
      ['B', 2],
    ])
  })
})

describe('options that cannot be', () => {
  it.each<[string, unknown]>([
    ['unknown ones', { prot: 9092 }],
    ['no object', 9092],
    ['a port that is text', { port: '9092' }],
    ['a port that is negative', { port: -1 }],
    ['half a port', { port: 9.5 }],
    ['a port too high', { port: 65_536 }],
    ['ports too high for all nodes', { port: 65_535, nodes: 2 }],
    ['an empty host', { host: '' }],
    ['a host that is a number', { host: 127 }],
    ['no node', { nodes: 0 }],
    ['too many nodes', { nodes: 1_001 }],
    ['to advertise any port', { advertised: { port: 0 } }],
    ['to advertise all addresses', { advertised: { host: '0.0.0.0' } }],
    ['to advertise something else', { advertised: { name: 'x' } }],
    ['no listeners', { listeners: [] }],
    ['listeners that are no list', { listeners: { port: 1 } }],
    ['a listener with an unknown option', { listeners: [{ prot: 1 }] }],
    ['a port beside listeners', { listeners: [{ port: 1 }], port: 2 }],
    ['two listeners of one name', { listeners: [{ port: 1 }, { port: 2 }] }],
    ['an empty name', { listeners: [{ name: '' }] }],
    ['requests of no bytes', { maxRequestBytes: 0 }],
    ['no connections', { maxConnections: 0 }],
    ['idle at once', { maxIdleMs: 0 }],
    ['groups of nobody', { groups: { maxSize: 0 } }],
    ['half a session', { groups: { minSessionTimeoutMs: 0.5 } }],
    ['sessions without an end', { groups: { maxSessionTimeoutMs: 2 ** 31 } }],
    ['half a delay', { groups: { initialRebalanceDelayMs: 0.5 } }],
    ['the shortest longer than the longest', { groups: { maxSessionTimeoutMs: 5_999 } }],
    ['heartbeats that come too late', { groups: { consumerHeartbeatIntervalMs: 45_000 } }],
    ['unknown bounds of groups', { groups: { sessionTimeoutMs: 1 } }],
    ['neither yes nor no', { autoCreateTopics: 'yes' }],
    ['no partitions', { defaultPartitions: 0 }],
    ['too many partitions', { defaultPartitions: 100_001 }],
  ])('are refused: %s', (_, options) => {
    expect(codeThrown(() => serverSettings(options as ServeOptions))).toBe('INVALID_ARGUMENT')
  })
})
