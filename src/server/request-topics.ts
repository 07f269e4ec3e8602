/**
 * Whether a request names a topic, and a partition of it. Messages call the same things by different names; what they
 * have in common is a list with `topic` in its name, whose items have a name or an id, and partitions or numbers.
 */
type Values = { readonly [name: string]: unknown }

export interface TopicRef {
  readonly name: string
  /** Where there is such a topic. */
  readonly id: string | undefined
}

const INDEXES = ['index', 'partition', 'partitionIndex'] as const

export function mentions(body: unknown, topic: TopicRef, partition: number | undefined): boolean {
  return Object.entries(body as Values).some(([field, value]) => {
    if (!Array.isArray(value)) return false
    const ofTopics = /topic/i.test(field)
    return value.some((item: unknown) => {
      if (typeof item === 'string') return ofTopics && partition === undefined && item === topic.name
      if (typeof item !== 'object' || item === null) return false
      const values = item as Values
      return ofTopics && isTopic(values, topic)
        ? partition === undefined || hasPartition(values, partition)
        : mentions(values, topic, partition)
    })
  })
}

function isTopic({ name, topic: called, topicId }: Values, topic: TopicRef): boolean {
  return name === topic.name || called === topic.name || (topic.id !== undefined && topicId === topic.id)
}

function hasPartition(topic: Values, partition: number): boolean {
  return Object.values(topic).some(
    (list) =>
      Array.isArray(list) &&
      list.some((each) => each === partition || INDEXES.some((name) => (each as Values)[name] === partition)),
  )
}
