import { defineConfig } from 'vitest/config'

/**
 * `npm run test:engines`: the suites of core and coordinator again, once for each engine other than memory. What says
 * something of memory alone is left out by name, with the reason: test/support/not-on.ts.
 */
const ENGINES = ['bytes', 'file']

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    projects: ENGINES.map((name) => ({
      test: {
        name,
        include: ['test/core/**/*.test.ts', 'test/coordinator/**/*.test.ts'],
        env: { ODRADEK_ENGINE: name },
        setupFiles: ['test/support/on-engine.ts'],
        testTimeout: 60_000,
        restoreMocks: true,
        unstubGlobals: true,
      },
    })),
  },
})
