/**
 * Configs as DescribeConfigs and CreateTopics tell them: the value that holds, and all that it could come from, what wins
 * first. That is what was set for a topic; what this broker asks for instead of Kafka's default; that default.
 */
import type { ConfigDefinition } from './config-definitions.ts'
import { TOPIC_CONFIGS } from './config-definitions.ts'
import { CONFIG_SOURCES, CONFIG_TYPES, type ConfigType } from './config-values.ts'
import { GROUP_CONFIGS, OFFSET_RETENTION, offsetRetentionMinutes } from './group-options.ts'
import type { ConfigTexts, TopicConfigs } from './topic-configs.ts'
import type { World } from './world.ts'

interface Synonym {
  readonly name: string
  readonly value: string
  readonly source: number
}

export interface ConfigEntry {
  readonly name: string
  readonly value: string
  readonly readOnly: boolean
  readonly configSource: number
  readonly isSensitive: boolean
  readonly synonyms: readonly Synonym[]
  readonly configType: number
  readonly documentation: string
}

/** Of a topic for which that is set, in the order of names. */
export function topicEntries({ defaults }: TopicConfigs, set: ConfigTexts): ConfigEntry[] {
  return [...TOPIC_CONFIGS.values()].map((definition) => {
    const { name, type, broker, documentation } = definition
    const others = synonymsOf(definition, broker ?? name, defaults)
    const value = set[name]
    const synonyms = value === undefined ? others : [{ name, value, source: CONFIG_SOURCES.topic }, ...others]
    return entry(name, type, synonyms, documentation, false)
  })
}

/** What holds for a topic that says nothing. */
function synonymsOf(
  { name, fallback }: ConfigDefinition,
  as: string,
  defaults: ReadonlyMap<string, string>,
): Synonym[] {
  const value = defaults.get(name) as string
  const kafkas = { name: as, value: fallback, source: CONFIG_SOURCES.default }
  return value === fallback ? [kafkas] : [{ name: as, value, source: CONFIG_SOURCES.staticBroker }, kafkas]
}

type Given = readonly [name: string, type: ConfigType, value: string, documentation: string]

/** Of a node. They are options of the process: none of them changes while it runs. */
export function brokerEntries({ cluster, options, configs, parts }: World, id: number): ConfigEntry[] {
  const node = cluster.nodes.find((each) => each.id === id)
  const listeners = [...(node?.advertised ?? [])].map(([name, { host, port }]) => `${name}://${host}:${port}`)
  const given: readonly Given[] = [
    ['advertised.listeners', 'list', listeners.join(','), 'Where clients reach this broker.'],
    [
      'auto.create.topics.enable',
      'boolean',
      String(options.autoCreateTopics),
      'Whether topics that are asked for come to be.',
    ],
    ['broker.id', 'int', String(id), 'The number of this broker.'],
    ['default.replication.factor', 'int', '1', 'Replicas of a partition. Here there is one.'],
    ['delete.topic.enable', 'boolean', 'true', 'Whether topics can be deleted.'],
    ['node.id', 'int', String(id), 'The number of this broker.'],
    [
      'num.partitions',
      'int',
      String(options.defaultPartitions),
      'Partitions of a topic that says nothing of them.',
    ],
    [
      OFFSET_RETENTION.name,
      'int',
      String(offsetRetentionMinutes(parts.groups.offsetRetentionMs)),
      OFFSET_RETENTION.documentation,
    ],
    ...GROUP_CONFIGS.map(({ name, option, documentation }): Given => {
      return [name, 'int', String(parts.groups.limits[option]), documentation]
    }),
  ]
  const own = given.map(([name, type, value, documentation]) =>
    entry(name, type, [{ name, value, source: CONFIG_SOURCES.staticBroker }], documentation, true),
  )
  const ofTopics = [...TOPIC_CONFIGS.values()].flatMap((definition) => {
    const { broker, type, documentation } = definition
    if (broker === null) return []
    return [entry(broker, type, synonymsOf(definition, broker, configs.defaults), documentation, true)]
  })
  return [...own, ...ofTopics].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function entry(
  name: string,
  type: ConfigType,
  synonyms: readonly Synonym[],
  documentation: string,
  readOnly: boolean,
): ConfigEntry {
  const { value, source } = synonyms[0] as Synonym
  const configType = CONFIG_TYPES[type]
  return {
    name,
    value,
    readOnly,
    configSource: source,
    isSensitive: false,
    synonyms,
    configType,
    documentation,
  }
}
