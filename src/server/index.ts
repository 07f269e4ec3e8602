/** `odradek/server`: a broker at a port, for Kafka's clients. */
export { type KafkaServer, type ServerAddress, serve } from './server.ts'
export type { ListenerOptions, ServeOptions } from './server-options.ts'
