/**
 * Closing several things that belong together: one that fails keeps none of the others open. A handle that leaks is gone
 * for the process, and a lock that is not let go of keeps the next broker out.
 */

/** Takes all of the steps, one after the other; then throws what failed first. */
export async function closeAll(steps: readonly (() => Promise<void> | undefined)[]): Promise<void> {
  const failures: unknown[] = []
  for (const step of steps) {
    try {
      await step()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}

/** The same, on the way out of a failure that is to be told of instead. */
export async function closeQuietly(steps: readonly (() => Promise<void> | undefined)[]): Promise<void> {
  await closeAll(steps).catch(() => {
    // What failed before is why they are closed, and what the caller hears of.
  })
}
