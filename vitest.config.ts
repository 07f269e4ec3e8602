import { defineConfig } from 'vitest/config'

/**
 * `unit` is everything that needs nothing but Node (`npm test`). `package` needs the built package, and a
 * browser where there is one (`npm run test:package`). What takes minutes is no test but a command: torture, bench.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/package/**', 'test/interop/**'],
          testTimeout: 20_000,
          // A spy or stub that one test leaves behind must not decide another one.
          restoreMocks: true,
          unstubGlobals: true,
        },
      },
      {
        test: {
          name: 'package',
          include: ['test/package/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
    ],
    coverage: {
      provider: 'v8',
      include: ['core', 'coordinator', 'log', 'wire', 'server', 'client'].map((part) => `src/${part}/**`),
      reporter: ['text', 'json-summary'],
      thresholds: { lines: 95, branches: 95, functions: 95, statements: 95 },
    },
  },
})
