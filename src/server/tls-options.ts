/** TLS of a listener as it is given, checked: what cannot be a key or a certificate is refused before anybody connects. */
import { flag, invalid, known } from '../core/settings.ts'
import { messageOf } from '../model/errors.ts'

/** Of a listener: everything in PEM, as node:tls takes it. */
export interface TlsOptions {
  readonly key: string | Uint8Array
  /** The certificate, and those between it and the authority. */
  readonly cert: string | Uint8Array
  /** Of `key`, where it is encrypted. */
  readonly passphrase?: string
  /** Whose certificates clients have to show, with `requestCert`. */
  readonly ca?: string | Uint8Array
  /** Whether clients have to show a certificate of `ca`. Default false. */
  readonly requestCert?: boolean
}

export interface TlsSettings extends TlsOptions {
  readonly requestCert: boolean
}

/** @throws OdradekError INVALID_ARGUMENT */
export function tlsSettings(where: string, options: TlsOptions): TlsSettings {
  const given = known(where, options, ['key', 'cert', 'passphrase', 'ca', 'requestCert'])
  const { key, cert, ca, passphrase } = given
  if (key === undefined || cert === undefined) throw invalid(`${where} has key and cert, in PEM`)
  const requestCert = flag(`${where}.requestCert`, given.requestCert, false)
  // Without one, node:tls would take certificates of any public authority.
  if (requestCert && ca === undefined) throw invalid(`${where}.requestCert goes with ca: whose certificates`)
  const settings: TlsSettings = {
    key: copied(key),
    cert: copied(cert),
    ...(ca === undefined ? {} : { ca: copied(ca) }),
    ...(passphrase === undefined ? {} : { passphrase }),
    requestCert,
  }
  // Not imported above: most servers have no TLS, and should not pay 2 MiB for it.
  const { createSecureContext } = process.getBuiltinModule('node:tls')
  try {
    createSecureContext(settings as Parameters<typeof createSecureContext>[0])
  } catch (error) {
    throw invalid(`${where} cannot be used: ${messageOf(error)}`)
  }
  return settings
}

function copied(pem: string | Uint8Array): string | Uint8Array {
  return typeof pem === 'string' ? pem : Buffer.from(pem)
}
