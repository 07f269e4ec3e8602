import { describe, expect, it } from 'vitest'
import {
  readRequest,
  readRequestHeader,
  readResponse,
  writeRequest,
  writeResponse,
} from '../../src/wire/api.ts'
import { APIS } from '../../src/wire/apis.ts'
import { KAFKA_ERRORS, kafkaErrorName } from '../../src/wire/errors.ts'
import { heartbeat } from '../../src/wire/messages/12-heartbeat.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { WireReader } from '../../src/wire/reader.ts'
import { bytesOf, hexOf, refusal } from './kit.ts'

const BEAT = { groupId: 'g', generationId: 1, memberId: 'm' }
const HEADER = { correlationId: 7, clientId: 'c' }

describe('a request', () => {
  it('has a header without tags where its version is not flexible, and with them where it is', () => {
    expect(hexOf(writeRequest(heartbeat, 3, HEADER, BEAT))).toBe(
      `${'00000017 000c 0003 00000007 000163'} 000167 00000001 00016d ffff`.replaceAll(' ', ''),
    )
    expect(hexOf(writeRequest(heartbeat, 4, HEADER, BEAT))).toBe(
      `${'00000016 000c 0004 00000007 000163 00'} 0267 00000001 026d 00 00`.replaceAll(' ', ''),
    )
  })

  it('may come from a client without a name', () => {
    const from = new WireReader(bytesOf('000c 0003 00000007 ffff'))
    expect(readRequestHeader(from)).toEqual({ apiKey: 12, apiVersion: 3, correlationId: 7, clientId: null })
  })

  it('may have tags in its header that nobody knows', () => {
    const from = new WireReader(bytesOf('000c 0004 00000007 000163 01 0902ffff 0267 00000001 026d 00 00'))
    readRequestHeader(from)
    expect(readRequest(heartbeat, 4, from)).toEqual({ ...BEAT, groupInstanceId: null })
  })

  it('is read whatever follows it, as Kafka does', () => {
    const from = new WireReader(bytesOf('000c 0003 00000007 000163 000167 00000001 00016d ffff 0102'))
    readRequestHeader(from)
    expect(readRequest(heartbeat, 3, from)).toEqual({ ...BEAT, groupInstanceId: null })
    expect(from.left).toBe(2)
  })

  it('is refused where its header is cut anywhere', () => {
    const frame = bytesOf('000c 0004 00000007 000163 00')
    for (let sizeBytes = 0; sizeBytes < frame.length - 1; sizeBytes++) {
      const from = new WireReader(frame.subarray(0, sizeBytes))
      expect(refusal(() => readRequestHeader(from))).toContain('should follow')
    }
  })
})

describe('a response', () => {
  it('has tags in its header where its version is flexible', () => {
    expect(hexOf(writeResponse(heartbeat, 3, 7, { errorCode: 27 }))).toBe('0000000a0000000700000000001b')
    expect(hexOf(writeResponse(heartbeat, 4, 7, { errorCode: 27 }))).toBe('0000000c000000070000000000001b00')
  })

  it('to ApiVersions never has: a client reads it before it knows what the broker can do', () => {
    const body = { errorCode: 35, apiKeys: [{ apiKey: 18, minVersion: 0, maxVersion: 4 }] }
    expect(hexOf(writeResponse(apiVersions, 4, 7, body))).toBe(
      '00000013 00000007 0023 02 0012 0000 0004 00 00000000 00'.replaceAll(' ', ''),
    )
    // In version 0, as it is answered to a version that is not known.
    expect(hexOf(writeResponse(apiVersions, 0, 7, body))).toBe(
      '00000010 00000007 0023 00000001 0012 0000 0004'.replaceAll(' ', ''),
    )
    for (const version of [0, 1, 2, 3, 4]) {
      const frame = new Uint8Array(Buffer.concat(writeResponse(apiVersions, version, 7, body)))
      expect(readResponse(apiVersions, version, frame.subarray(4))).toMatchObject({ correlationId: 7, body })
    }
  })

  it('is refused where anything follows it', () => {
    expect(refusal(() => readResponse(heartbeat, 3, bytesOf('00000007 00000000 001b 00')))).toContain(
      '1 bytes too many',
    )
  })
})

describe('the APIs', () => {
  it('stand in the order of their keys, each once', () => {
    const keys = APIS.map(({ key }) => key)
    expect(keys).toEqual([...new Set(keys)].sort((a, b) => a - b))
    expect(new Set(APIS.map(({ name }) => name)).size).toBe(APIS.length)
  })

  it('are spoken from their first version to their last', () => {
    for (const api of APIS) {
      const spoken = [api.min - 1, api.min, api.max, api.max + 1].map((version) => api.isSpoken(version))
      expect(spoken, api.name).toEqual([false, true, true, false])
    }
  })
})

describe('an error code', () => {
  it('has a name, also where it is not known', () => {
    expect(kafkaErrorName(KAFKA_ERRORS.NOT_COORDINATOR)).toBe('NOT_COORDINATOR')
    expect(kafkaErrorName(-1)).toBe('UNKNOWN_SERVER_ERROR')
    expect(kafkaErrorName(9_999)).toBe('error 9999')
  })

  it('belongs to one name', () => {
    const codes = Object.values(KAFKA_ERRORS)
    expect(new Set(codes).size).toBe(codes.length)
  })
})
