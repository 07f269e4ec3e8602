/** How kcat and node-rdkafka are told of TLS, passwords and certificates: both are librdkafka. */

/** Its settings. */
export function securityOf({ tls, ca, cert, key, mechanism, user, password } = {}) {
  return {
    ...(tls || mechanism
      ? { 'security.protocol': `${mechanism ? 'sasl_' : ''}${tls ? 'ssl' : 'plaintext'}` }
      : {}),
    ...(tls ? { 'ssl.ca.location': ca } : {}),
    ...(cert ? { 'ssl.certificate.location': cert, 'ssl.key.location': key } : {}),
    ...(mechanism ? { 'sasl.mechanisms': mechanism, 'sasl.username': user, 'sasl.password': password } : {}),
  }
}
