import { defineConfig } from 'vitest/config'

/** `npm run interop`: unmodified Kafka clients against the server. Each trial starts processes of its own. */
export default defineConfig({
  test: {
    pool: 'forks',
    include: ['test/interop/*.test.ts'],
    sequence: { concurrent: false },
    testTimeout: 120_000,
  },
})
