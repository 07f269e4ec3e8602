/** Work on many files side by side: each waits for the disk most of the time, and all of them one after the other for long. */
const FEW = 8

/**
 * Does `work` for each of the items, a few at once, and answers what came of it in the order of the items. After a failure
 * nothing more is begun; it is thrown when nothing is under way any more.
 */
export async function fewAtOnce<T, R>(items: Iterable<T>, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const rest = [...items].entries()
  let failed = false
  const worker = async (): Promise<void> => {
    for (const [i, item] of rest) {
      if (failed) return
      try {
        results[i] = await work(item)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: FEW }, worker))
  for (const each of ended) if (each.status === 'rejected') throw each.reason
  return results
}
