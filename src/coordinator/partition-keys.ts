/** Partitions as text, so that sets and maps can hold them: `<topic id>/<partition>`. */

export function partitionKey(topicId: string, partition: number): string {
  return `${topicId}/${partition}`
}

/** Partitions by topic id, in their order. */
export function byTopic(keys: Iterable<string>): Map<string, number[]> {
  const topics = new Map<string, number[]>()
  for (const key of keys) {
    const slash = key.lastIndexOf('/')
    const topicId = key.slice(0, slash)
    const partitions = topics.get(topicId)
    const partition = Number(key.slice(slash + 1))
    if (partitions === undefined) topics.set(topicId, [partition])
    else partitions.push(partition)
  }
  for (const partitions of topics.values()) partitions.sort((a, b) => a - b)
  return topics
}
