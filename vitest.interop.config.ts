import { defineConfig } from 'vitest/config'

/**
 * `npm run interop`: unmodified Kafka clients against the server. Each trial starts processes of its own and mostly waits
 * for them, so several go at once.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    maxConcurrency: 3,
    include: ['test/interop/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 60_000,
  },
})
