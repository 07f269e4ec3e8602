/** `odradek/server`: a broker at a port, for Kafka's clients. */

export type { GroupOptions } from './group-options.ts'
export type { SaslMechanism, SaslOptions, ScramCredential } from './sasl-options.ts'
export type { ScramMechanism } from './scram-hashes.ts'
export { type KafkaServer, RELEASES, type Release, type ServerAddress, serve } from './server.ts'
export type { ListenerOptions, MetricsOptions, ServeOptions } from './server-options.ts'
export type { TlsOptions } from './tls-options.ts'
