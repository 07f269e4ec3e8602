/**
 * An HTTP port for machines that watch: `/metrics` for Prometheus, `/healthz` (the process answers) and `/readyz`
 * (clients are taken, and what they send can be stored). GET and HEAD, these paths, nothing else.
 */
import type { Address } from './cluster.ts'
import { CONTENT_TYPE } from './exposition.ts'
import { HttpPort, type HttpRequest, type Page, plain } from './http-port.ts'

export interface Watched {
  metrics(): string
  /** Why clients are not to be sent here; undefined where they are. */
  unready(): string | undefined
}

/** Port 0: a free one. @throws OdradekError LISTEN_ERROR */
export function openMetrics(address: Address, watched: Watched): Promise<HttpPort> {
  return HttpPort.open(address, (request) => pageOf(request, watched))
}

function pageOf({ method, path }: HttpRequest, watched: Watched): Page {
  if (method !== 'GET' && method !== 'HEAD') return { ...plain(405, 'GET and HEAD only'), allow: 'GET, HEAD' }
  if (path === '/metrics') return { status: 200, type: CONTENT_TYPE, text: watched.metrics() }
  if (path === '/healthz') return plain(200, 'ok')
  if (path !== '/readyz') return plain(404, 'there are /metrics, /healthz and /readyz')
  const unready = watched.unready()
  return unready === undefined ? plain(200, 'ok') : plain(503, unready)
}
