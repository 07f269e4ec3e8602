/**
 * An authority, a server's certificate and a client's of it, and another authority that signed neither, made by openssl for
 * one run. Clients are told of them by the names of files:
 *
 *   {tls, ca, cert, key, pair}          pair: key and certificates in one file, as Java's clients take them
 *   {mechanism, user, password}         of SASL
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServeOptions } from '../../src/server/index.ts'

/** What a driver is told. */
export interface ClientSecurity {
  readonly tls?: boolean
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly pair?: string
  readonly mechanism?: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512'
  readonly user?: string
  readonly password?: string
}

export type ServerSecurity = Pick<ServeOptions, 'tls' | 'sasl'>

const USER = { user: 'alice', password: 'sesame, open' }
const ELLIPTIC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']

export function withoutOpenssl(): string | undefined {
  return spawnSync('openssl', ['version']).status === 0
    ? undefined
    : 'there is no openssl to make certificates'
}

class Certificates {
  readonly #folder = mkdtempSync(join(tmpdir(), 'odradek-certificates-'))

  constructor() {
    process.once('exit', () => rmSync(this.#folder, { recursive: true, force: true }))
    for (const authority of ['authority', 'stranger']) {
      this.#openssl('req', '-x509', ...ELLIPTIC, '-subj', `/CN=${authority}`, ...this.#out(authority))
    }
    for (const name of ['server', 'client']) this.#signed(name)
  }

  path(name: string): string {
    return join(this.#folder, name)
  }

  text(name: string): string {
    return readFileSync(this.path(name), 'utf8')
  }

  #signed(name: string): void {
    const [request, extensions] = [this.path(`${name}.csr`), this.path(`${name}.ext`)]
    writeFileSync(extensions, 'subjectAltName=DNS:localhost,IP:127.0.0.1\n')
    const key = ['-keyout', this.path(`${name}.key`)]
    this.#openssl('req', '-new', ...ELLIPTIC.slice(0, -2), '-subj', `/CN=${name}`, ...key, '-out', request)
    const authority = [
      '-CA',
      this.path('authority.pem'),
      '-CAkey',
      this.path('authority.key'),
      '-CAcreateserial',
    ]
    const out = ['-days', '2', '-extfile', extensions, '-out', this.path(`${name}.pem`)]
    this.#openssl('x509', '-req', '-in', request, ...authority, ...out)
    writeFileSync(this.path(`${name}.pair`), this.text(`${name}.key`) + this.text(`${name}.pem`))
  }

  #out(name: string): string[] {
    return ['-keyout', this.path(`${name}.key`), '-out', this.path(`${name}.pem`)]
  }

  #openssl(...args: string[]): void {
    const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${stderr}`)
  }
}

let made: Certificates | undefined

function certificates(): Certificates {
  made ??= new Certificates()
  return made
}

export const server = {
  tls: (): ServerSecurity => ({
    tls: { key: certificates().text('server.key'), cert: certificates().text('server.pem') },
  }),
  mutual: (): ServerSecurity => ({
    tls: {
      key: certificates().text('server.key'),
      cert: certificates().text('server.pem'),
      ca: certificates().text('authority.pem'),
      requestCert: true,
    },
  }),
  sasl: (): ServerSecurity => ({ sasl: { users: { [USER.user]: USER.password } } }),
  both: (): ServerSecurity => ({ ...server.tls(), ...server.sasl() }),
}

export const client = {
  tls: (): ClientSecurity => ({ tls: true, ca: certificates().path('authority.pem') }),
  /** Trusts somebody else. */
  stranger: (): ClientSecurity => ({ tls: true, ca: certificates().path('stranger.pem') }),
  certified: (): ClientSecurity => ({
    ...client.tls(),
    cert: certificates().path('client.pem'),
    key: certificates().path('client.key'),
    pair: certificates().path('client.pair'),
  }),
  user: (mechanism: ClientSecurity['mechanism'] & string): ClientSecurity => ({ mechanism, ...USER }),
  wrongPassword: (): ClientSecurity => ({ mechanism: 'SCRAM-SHA-256', ...USER, password: 'open, sesame' }),
}
