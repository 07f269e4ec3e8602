/** DescribeConfigs: configs of topics and brokers, with where each value comes from. */
import { api } from '../api.ts'
import { array, boolean, int8, int16, int32, string, words } from '../schema.ts'

export const describeConfigs = api({
  key: 32,
  name: 'DescribeConfigs',
  versions: [1, 4],
  flexibleSince: 4,
  request: {
    resources: array({
      resourceType: int8,
      resourceName: string,
      configurationKeys: array(string).nullable(),
    }),
    includeSynonyms: boolean,
    includeDocumentation: boolean.since(3),
  },
  response: {
    throttleTimeMs: int32,
    results: array({
      errorCode: int16,
      errorMessage: words.nullable(),
      resourceType: int8,
      resourceName: string,
      configs: array({
        name: string,
        value: string.nullable(),
        readOnly: boolean,
        configSource: int8.or(-1),
        isSensitive: boolean,
        synonyms: array({
          name: string,
          value: string.nullable(),
          source: int8,
        }),
        configType: int8.since(3),
        documentation: string.nullable().since(3),
      }),
    }),
  },
})
