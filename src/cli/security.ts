/** From the options of `odradek serve` to TLS and users, with the files that they name read; and how clients then connect. */
import { readFile } from 'node:fs/promises'
import { messageOf } from '../model/errors.ts'
import { isLoopback } from '../server/addresses.ts'
import type { serve } from '../server/server.ts'
import type { Arguments, OptionTypes } from './arguments.ts'
import { UsageError } from './command.ts'

export const SECURITY_OPTIONS = {
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  'tls-client-ca': { type: 'string' },
  user: { type: 'string', multiple: true },
  users: { type: 'string' },
  insecure: { type: 'boolean' },
} as const satisfies OptionTypes

export const SECURITY_HELP = `  --tls-cert <file>        certificate in PEM; clients then connect by TLS (with --tls-key)
  --tls-key <file>         its key
  --tls-client-ca <file>   clients have to show a certificate of this authority
  --user <name:password>   who may connect, by SASL: SCRAM-SHA-256, SCRAM-SHA-512, or PLAIN where there is TLS;
                           may be repeated. Others on this machine can read it; better:
  --users <file>           the same from a file, one name:password a line
  --insecure               other machines may connect without TLS and users, and passwords be sent as they are`

type Security = Pick<NonNullable<Parameters<typeof serve>[1]>, 'tls' | 'sasl' | 'insecure'>

/** The same rule as that of the server, which speaks of its options: these have other names. @throws UsageError */
function assertSecured(host: string, { tls, sasl, insecure }: Security): void {
  if (insecure === true || isLoopback(host)) return
  const missing = [
    ...(tls === undefined ? ['--tls-cert and --tls-key'] : []),
    ...(sasl === undefined && tls?.requestCert !== true ? ['--users'] : []),
  ]
  if (missing.length === 0) return
  const what = missing.join(', and ')
  throw new UsageError(`--host ${host} can be reached by other machines: give ${what}, or say --insecure`)
}

/** @throws UsageError */
export async function securityOptions(given: Arguments): Promise<Security> {
  const security = await securityOf(given)
  if (given.options.host !== undefined) assertSecured(String(given.options.host), security)
  return security
}

async function securityOf({ options, lists }: Arguments): Promise<Security> {
  const tls = await tlsOf(options)
  const users = new Map([
    ...(options.users === undefined ? [] : usersIn(await contentOf('users', options.users))),
    ...(lists.user ?? []).map((text) => userOf(text, `--user is name:password; not "${text}"`)),
  ])
  return {
    ...(tls === undefined ? {} : { tls }),
    ...(users.size === 0 ? {} : { sasl: { users: Object.fromEntries(users) } }),
    ...(options.insecure === true ? { insecure: true } : {}),
  }
}

/** What a client of librdkafka has to be told beside the address; empty where that is nothing. */
export function clientSettings({ tls, sasl }: Security): string[] {
  if (tls === undefined && sasl === undefined) return []
  const protocol = sasl === undefined ? 'SSL' : tls === undefined ? 'SASL_PLAINTEXT' : 'SASL_SSL'
  const [user = 'name'] = Object.keys(sasl?.users ?? {})
  return [
    `security.protocol=${protocol}`,
    ...(tls === undefined ? [] : ['ssl.ca.location=<the authority of --tls-cert>']),
    ...(sasl === undefined
      ? []
      : ['sasl.mechanism=SCRAM-SHA-256', `sasl.username=${user}`, 'sasl.password=<its password>']),
  ]
}

async function tlsOf(options: Arguments['options']): Promise<Security['tls']> {
  const [cert, key, ca] = [options['tls-cert'], options['tls-key'], options['tls-client-ca']]
  if (cert === undefined && key === undefined) {
    if (ca !== undefined) throw new UsageError('--tls-client-ca goes with --tls-cert and --tls-key')
    return undefined
  }
  if (cert === undefined || key === undefined) throw new UsageError('--tls-cert and --tls-key go together')
  const own = { cert: await contentOf('tls-cert', cert), key: await contentOf('tls-key', key) }
  return ca === undefined ? own : { ...own, ca: await contentOf('tls-client-ca', ca), requestCert: true }
}

function usersIn(text: string): [string, string][] {
  return text
    .split(/\r?\n/)
    .map((line, i): [string, number] => [line, i + 1])
    .filter(([line]) => line.trim() !== '' && !line.startsWith('#'))
    .map(([line, at]) => userOf(line, `--users: line ${at} is not name:password`))
}

function userOf(text: string, complaint: string): [string, string] {
  const at = text.indexOf(':')
  if (at < 1 || at === text.length - 1) throw new UsageError(complaint)
  return [text.slice(0, at), text.slice(at + 1)]
}

async function contentOf(option: string, path: string | boolean): Promise<string> {
  try {
    return await readFile(String(path), 'utf8')
  } catch (error) {
    throw new UsageError(`--${option} cannot be read: ${messageOf(error)}`)
  }
}
