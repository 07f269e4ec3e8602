import { defineConfig } from 'vitest/config'

/**
 * `npm test` is everything under test/ that needs nothing but Node. What needs a browser, a built package or
 * minutes of time has its own command (see CONTRIBUTING.md) and its own folder, left out here.
 */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/package/**', 'test/torture/**'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 20_000,
    // A leaked spy or clock of one test must not decide another one.
    restoreMocks: true,
    unstubGlobals: true,
    coverage: {
      provider: 'v8',
      include: ['src/core/**', 'src/coordinator/**', 'src/log/**'],
      reporter: ['text', 'json-summary'],
      thresholds: { lines: 95, branches: 95, functions: 95, statements: 95 },
    },
  },
})
