/**
 * The command line in few files: `dist/cli`, beside what tsc makes of everything else. Node finds, reads and links the
 * 200 modules of `odradek serve` one by one, which took longer than all else up to its first answer
 * (docs/decisions/039-start-and-idle.md).
 *
 *   main.js ─► serve-*.js ─► open-files-*.js, …      each with the chunks that it shares with others
 *          └─► others-*.js                           every other command
 *
 * Names stay, lines stay short, and there are source maps: a stack trace can be read without them too. The public modules
 * are not bundled: users bundle them, and their declarations lie beside them.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { root } from './package.ts'

const cli = join(root, 'src', 'cli')
const OTHERS = 'others'
const COMMAND = /^\.\/commands\/[a-z]+\.ts$/
const SERVE = './commands/serve.ts'

/** One file for all commands but `serve`: alone, esbuild makes one for each set of commands that share a module. */
const othersTogether: Plugin = {
  name: OTHERS,
  setup(building) {
    building.onResolve({ filter: COMMAND }, ({ path, kind }) =>
      kind === 'dynamic-import' && path !== SERVE ? { path: OTHERS, namespace: OTHERS } : undefined,
    )
    building.onLoad({ filter: /^/, namespace: OTHERS }, () => ({ contents: others(), resolveDir: cli }))
  },
}

function others(): string {
  const run = readFileSync(join(cli, 'run.ts'), 'utf8')
  const commands = [...run.matchAll(/import\('([^']+)'\)/g)].map(([, path]) => path)
  return commands
    .filter((path) => path !== SERVE)
    .map((path) => `export * from '${path}'`)
    .join('\n')
}

await build({
  absWorkingDir: root,
  entryPoints: ['src/cli/main.ts'],
  outdir: 'dist/cli',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  packages: 'external',
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 120,
  legalComments: 'none',
  sourcemap: true,
  sourcesContent: false,
  plugins: [othersTogether],
  logLevel: 'warning',
})
