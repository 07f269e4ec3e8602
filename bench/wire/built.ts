/**
 * The protocol's codecs, which are no part of the package's surface: they are taken from what was built. That a broker of
 * somebody else understands them is what the other broker in every table shows.
 */
type Apis = typeof import('../../dist/wire/api.js')
type Checksum = typeof import('../../dist/log/format/crc32c.js')

export const root: URL = new URL('../../../', import.meta.url)

async function built<T>(name: string): Promise<T> {
  return (await import(new URL(`dist/${name}.js`, root).href)) as T
}

export const { readResponse, writeRequest }: Apis = await built<Apis>('wire/api')
export const { crc32c }: Checksum = await built<Checksum>('log/format/crc32c')
export const { produce } =
  await built<typeof import('../../dist/wire/messages/00-produce.js')>('wire/messages/00-produce')
export const { fetch } =
  await built<typeof import('../../dist/wire/messages/01-fetch.js')>('wire/messages/01-fetch')
export const { listOffsets } = await built<typeof import('../../dist/wire/messages/02-list-offsets.js')>(
  'wire/messages/02-list-offsets',
)
export const { metadata } =
  await built<typeof import('../../dist/wire/messages/03-metadata.js')>('wire/messages/03-metadata')
export const { apiVersions } = await built<typeof import('../../dist/wire/messages/18-api-versions.js')>(
  'wire/messages/18-api-versions',
)
export const { createTopics } = await built<typeof import('../../dist/wire/messages/19-create-topics.js')>(
  'wire/messages/19-create-topics',
)
export const { deleteTopics } = await built<typeof import('../../dist/wire/messages/20-delete-topics.js')>(
  'wire/messages/20-delete-topics',
)
