/** The W3C trace context of a record, handed on with what its handler publishes. */

import type { PublishOptions } from '../model/options.ts'
import { type HeaderValue, RecordHeaders } from '../model/record.ts'
import type { DeliveryRecord } from './delivery.ts'

const TRACE_HEADERS = ['traceparent', 'tracestate', 'baggage'] as const

/** Adds the record's trace headers to those of a publish, except where the caller set them. */
export function withTraceOf(
  record: DeliveryRecord,
  options: PublishOptions | undefined,
): PublishOptions | undefined {
  const source = record.columns.headersAt(record.row)
  if (source === null) return options
  const given = options?.headers === undefined ? undefined : RecordHeaders.from(options.headers)
  const added: (readonly [string, HeaderValue])[] = []
  for (const name of TRACE_HEADERS) {
    const value = source.get(name)
    if (value !== undefined && given?.has(name) !== true) added.push([name, value])
  }
  if (added.length === 0) return options
  return { ...options, headers: new RecordHeaders([...(given ?? []), ...added]) }
}
