/** Who may come in: TLS, passwords, certificates of clients, and what a client says when it is not let in, or will not go in. */
import { expect } from 'vitest'
import type { Feature } from './feature.ts'
import { type ClientSecurity, client, type ServerSecurity, server, withoutOpenssl } from './security.ts'
import type { Trial } from './trial.ts'
import { all, TOPIC, untilAllSeen, untilProduced } from './values.ts'

const COUNT = 20

/** Produces, and consumes in a group: several connections, each of which shows who it is. */
function comesIn(security: () => ClientSecurity): Feature['run'] {
  return async (trial) => {
    await trial.broker.createTopic(TOPIC)
    const args = { topic: TOPIC, security: security() }
    await trial.did('produce', { ...args, count: COUNT, prefix: 'v' })
    await untilProduced(trial, COUNT)
    const member = trial.run('consume', { ...args, group: 'shippers', count: COUNT })
    await untilAllSeen(trial, [member], 0, COUNT)
    expect(member.records.map(({ value }) => value)).toEqual(all(0, COUNT))
  }
}

function staysOut(security: () => ClientSecurity, says: RegExp): Feature['run'] {
  return async (trial: Trial) => {
    await trial.broker.createTopic(TOPIC)
    const args = { topic: TOPIC, count: 1, prefix: 'v', security: security() }
    expect(await trial.refused('produce', args)).toMatch(says)
    expect(trial.broker.describe(TOPIC).partitions[0]?.high).toBe(0)
  }
}

function feature(name: string, security: () => ServerSecurity, run: Feature['run']): Feature {
  return { name, group: 'security', server: { security }, needs: withoutOpenssl, run }
}

export const SECURITY: readonly Feature[] = [
  feature('TLS', server.tls, comesIn(client.tls)),
  ...(['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const).map((mechanism) =>
    feature(
      `TLS and SASL ${mechanism}`,
      server.both,
      comesIn(() => ({ ...client.tls(), ...client.user(mechanism) })),
    ),
  ),
  ...(['SCRAM-SHA-256', 'SCRAM-SHA-512'] as const).map((mechanism) =>
    feature(
      `SASL ${mechanism} without TLS`,
      server.sasl,
      comesIn(() => client.user(mechanism)),
    ),
  ),
  feature('certificate of the client', server.mutual, comesIn(client.certified)),
  feature('refused: a wrong password', server.sasl, staysOut(client.wrongPassword, /authenticat/i)),
  feature(
    'refused: no certificate where one is wanted',
    server.mutual,
    // TLS 1.3 tells it after the handshake: to librdkafka that is a connection that broke.
    staysOut(client.tls, /certificate|handshake|ssl|tls|transport/i),
  ),
  feature(
    'refused by the client: a server that somebody else certified',
    server.tls,
    staysOut(client.stranger, /certificate|ssl|tls/i),
  ),
]
