/** Responses that say nothing but an error, for every API and version. */
import { describe, expect, it } from 'vitest'
import { errorResponse } from '../../src/server/error-response.ts'
import { HANDLERS } from '../../src/server/handlers.ts'
import { eachError } from '../../src/server/response-errors.ts'
import { type Api, readResponse, writeResponse } from '../../src/wire/api.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { produce } from '../../src/wire/messages/00-produce.ts'
import { fetch } from '../../src/wire/messages/01-fetch.ts'
import { metadata } from '../../src/wire/messages/03-metadata.ts'
import { offsetFetch } from '../../src/wire/messages/09-offset-fetch.ts'
import { findCoordinator } from '../../src/wire/messages/10-find-coordinator.ts'
import { describeGroups } from '../../src/wire/messages/15-describe-groups.ts'
import { deleteTopics } from '../../src/wire/messages/20-delete-topics.ts'
import { addPartitionsToTxn } from '../../src/wire/messages/24-add-partitions-to-txn.ts'

const CODE = KAFKA_ERRORS.UNKNOWN_SERVER_ERROR

/** As a client reads it. */
function read(api: Api, version: number, request: object, code: number = CODE): unknown {
  const frame = Buffer.concat(writeResponse(api, version, 7, errorResponse(api, request, code) as never))
  return readResponse(api, version, frame.subarray(4)).body
}

describe('an error to a request that names nothing', () => {
  it.each(HANDLERS.map(({ api }) => [api.name, api] as const))('is in the response: %s', (_, api) => {
    for (let version = api.min; version <= api.max; version++) {
      const codes: number[] = []
      eachError(api, read(api, version, {}), (code) => codes.push(code))
      // Some have a place for errors only beside what was asked for.
      const place = api.response.type.fields.errorCode?.options
      const hasPlace = place !== undefined && version >= place.since && version <= place.until
      expect(codes).toEqual(hasPlace ? [CODE] : [])
    }
  })
})

describe('an error to a request that names something is beside that', () => {
  it('partitions of a produce', () => {
    const partitions = [
      { index: 0, records: null },
      { index: 3, records: null },
    ]
    const body = { acks: 1, timeoutMs: 1, topicData: [{ name: 'a', partitionData: partitions }] }
    expect(read(produce, 9, body)).toMatchObject({
      responses: [
        {
          name: 'a',
          partitionResponses: [
            { index: 0, errorCode: CODE },
            { index: 3, errorCode: CODE },
          ],
        },
      ],
    })
  })

  it('partitions of a fetch, by the name that this version has', () => {
    const topics = [{ topic: 'a', topicId: 'AAAAAAAAAAAAAAAAAAAAAQ', partitions: [{ partition: 2 }] }]
    const errors = { errorCode: 0, responses: [{ partitions: [{ partitionIndex: 2, errorCode: CODE }] }] }
    expect(read(fetch, 12, { topics })).toMatchObject(errors)
    expect(read(fetch, 12, { topics })).toMatchObject({ responses: [{ topic: 'a' }] })
    expect(read(fetch, 13, { topics })).toMatchObject({ responses: [{ topicId: topics[0]?.topicId }] })
  })

  it('a fetch of a session that names nothing', () => {
    expect(read(fetch, 12, { topics: [] })).toMatchObject({ errorCode: CODE, responses: [] })
  })

  it('topics of metadata', () => {
    const body = { topics: [{ name: 'a', topicId: 'AAAAAAAAAAAAAAAAAAAAAA' }] }
    expect(read(metadata, 12, body)).toMatchObject({
      topics: [{ name: 'a', errorCode: CODE, partitions: [] }],
    })
  })

  it('partitions that are only numbers', () => {
    const body = { topics: [{ name: 'a', partitionIndexes: [4, 5] }], groups: [] }
    expect(read(offsetFetch, 5, body)).toMatchObject({
      topics: [{ name: 'a', partitions: [{ partitionIndex: 4, errorCode: CODE }, { partitionIndex: 5 }] }],
    })
  })

  it('topics and groups that are only names', () => {
    expect(read(deleteTopics, 5, { topicNames: ['a', 'b'] })).toMatchObject({
      responses: [{ name: 'a', errorCode: CODE }, { name: 'b' }],
    })
    expect(read(describeGroups, 5, { groups: ['g'] })).toMatchObject({
      groups: [{ groupId: 'g', errorCode: CODE }],
    })
    expect(read(findCoordinator, 4, { coordinatorKeys: ['g'] })).toMatchObject({
      coordinators: [{ key: 'g', errorCode: CODE }],
    })
  })

  it('partitions of a transaction', () => {
    const topics = [{ name: 'a', partitions: [1] }]
    const body = { v3AndBelowTopics: topics, transactions: [] }
    expect(read(addPartitionsToTxn, 3, body)).toMatchObject({
      resultsByTopicV3AndBelow: [
        { name: 'a', resultsByPartition: [{ partitionIndex: 1, partitionErrorCode: CODE }] },
      ],
    })
  })
})
