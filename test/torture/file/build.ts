/** Bundles a script and what it imports, so that a process of it starts as fast as Node does. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'

export interface Built {
  readonly path: string
  remove(): Promise<void>
}

export async function built(script: string): Promise<Built> {
  const folder = await mkdtemp(join(tmpdir(), 'odradek-built-'))
  const path = join(folder, 'script.mjs')
  await build({
    entryPoints: [script],
    outfile: path,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    // Optional, and found or not as they are by a user.
    external: ['@node-rs/crc32', '@bokuweb/zstd-wasm', 'lz4-napi', 'snappy'],
  })
  return { path, remove: () => rm(folder, { recursive: true, force: true }) }
}
